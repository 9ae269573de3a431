//! The processes that run Python.

mod describe_model;
mod host;
mod launch;
mod pool;
mod problems;
mod process;
mod schema_model;
mod wire;

pub use describe_model::describe_model;
pub use host::{PythonTool, PythonToolHost};
pub use schema_model::{SchemaModelChecker, SchemaModelSettings};
