//! The processes that run Python.

mod describe_schema_model;
mod host;
mod launch;
mod pool;
mod problems;
mod process;
mod schema_model;
mod wire;

pub use describe_schema_model::describe_schema_model;
pub use host::{PythonTool, PythonToolHost};
pub use schema_model::{SchemaModelAnswerChecker, SchemaModelCheckSettings};
