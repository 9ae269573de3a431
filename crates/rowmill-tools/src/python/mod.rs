//! Python functions as tools and as hooks, and Python models that check answers.

mod model_description;
#[cfg_attr(not(feature = "python"), path = "without_processes.rs")]
mod processes;
mod settings;

pub use model_description::{SchemaModelDescription, SchemaModelDescriptionFailure};
pub use processes::{
    PythonTool, PythonToolHost, SchemaModelAnswerChecker, SchemaModelCheckSettings, describe_schema_model,
};
pub use settings::{
    AgentHook, Entrypoint, ProcessMoment, PythonFunctionTool, PythonLifecycleHook, PythonSettings,
    START_TIMEOUT,
};
