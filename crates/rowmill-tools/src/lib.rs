//! Tools that agents call: MCP servers, Python functions, the shell, skills and stubs.

mod bytes_output;
mod group;
mod inherited;
mod limited;
mod mcp;
mod python;
mod several;
mod shell;
mod skills;
mod stub;
mod survivors;
mod unknown;

pub use limited::ParallelLimits;
pub use mcp::{
    AuthConfig, AuthorizationSettings, Filter, Idempotent, IdempotentConfig, Login, MaxParallel,
    MaxParallelConfig, Mcp, McpServer, McpServerConfig, McpSettings, OAuth, OfferedKind, OfferedTool, Person,
    ProtocolConfig, ProtocolMode, Reconnect, SignIn, Span, Transport, View, begin_login, forget_tokens,
    kept_tokens, token_path,
};
pub use python::{
    AgentHook, Entrypoint, FunctionTool, LifecycleHook, ModelDescription, ModelFailure, Moment,
    PythonSettings, PythonTool, PythonTools, START_TIMEOUT, SchemaModel, SchemaModelSettings, describe_model,
};
pub use several::{Names, Tools};
pub use shell::Shell;
pub use skills::Skills;
pub use stub::{Recorder, StubTool, Stubs};
