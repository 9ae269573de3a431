//! Python functions as tools, and as hooks.

mod host;
mod launch;
mod pool;
mod problems;
mod settings;
mod wire;
mod worker;

pub use host::{PythonTool, PythonTools};
pub use settings::{
    AgentHook, Entrypoint, FunctionTool, LifecycleHook, Moment, PythonSettings, START_TIMEOUT,
};
