//! Python functions as tools and as hooks, and Python models that check answers.

#[cfg_attr(not(feature = "python"), path = "without_processes.rs")]
mod processes;
mod settings;

pub use processes::{
    DescribeFailure, ModelDescription, PythonTool, PythonToolHost, SchemaModelChecker, SchemaModelSettings,
    describe_model,
};
pub use settings::{
    AgentHook, Entrypoint, ProcessMoment, PythonFunctionTool, PythonLifecycleHook, PythonSettings,
    START_TIMEOUT,
};
