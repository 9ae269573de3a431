//! Python functions as tools and as hooks, and Python models that check answers.

mod describe_model;
mod host;
mod launch;
mod pool;
mod problems;
mod process;
mod schema_model;
mod settings;
mod wire;

pub use describe_model::{DescribeFailure, ModelDescription, describe_model};
pub use host::{PythonTool, PythonToolHost};
pub use schema_model::{SchemaModelChecker, SchemaModelSettings};
pub use settings::{
    AgentHook, Entrypoint, ProcessMoment, PythonFunctionTool, PythonLifecycleHook, PythonSettings,
    START_TIMEOUT,
};
