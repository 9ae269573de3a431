//! Python functions as tools and as hooks, and Python models that check answers.

mod host;
mod launch;
mod pool;
mod problems;
mod schema_model;
mod settings;
mod wire;
mod worker;

pub use host::{PythonTool, PythonTools};
pub use schema_model::{SchemaModel, SchemaModelSettings};
pub use settings::{
    AgentHook, Entrypoint, FunctionTool, LifecycleHook, Moment, PythonSettings, START_TIMEOUT,
};
