//! Python functions as tools and as hooks, and Python models that check answers.

mod describe_model;
mod host;
mod launch;
mod pool;
mod problems;
mod schema_model;
mod settings;
mod wire;
mod worker;

pub use describe_model::{ModelDescription, ModelFailure, describe_model};
pub use host::{PythonTool, PythonTools};
pub use schema_model::{SchemaModel, SchemaModelSettings};
pub use settings::{
    AgentHook, Entrypoint, FunctionTool, LifecycleHook, Moment, PythonSettings, START_TIMEOUT,
};
