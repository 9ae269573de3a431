//! Tools that agents call: MCP servers, Python functions, the shell, skills and stubs.

mod bytes_output;
mod combined_host;
mod inherited_variables;
mod input_command;
mod mcp;
mod parallel_limits;
#[cfg_attr(
    not(any(test, all(feature = "mcp", feature = "python"))),
    expect(dead_code, reason = "parts of it are only for MCP servers, or only for Python")
)]
mod process_group;
mod python;
mod shell;
mod skills;
mod stub;
mod survivors;
mod unknown_tool;

pub use combined_host::{CombinedToolHost, HostToolNames};
pub use input_command::{CommandFailure, run_command_with_input};
pub use mcp::{
    AuthorizationSettings, ClientCredentials, DurationSetting, IdempotentConfig, IdempotentTools,
    InteractiveSignIn, McpClientCredentialsConfig, McpHost, McpParallelLimit, McpParallelLimitConfig,
    McpPrimitive, McpProtocolChoice, McpProtocolMode, McpServerConfig, McpServerSettings, McpSettings,
    McpSignIn, McpTool, McpTransport, NameFilter, ReconnectPolicy, ServerView, SignInMethod, begin_sign_in,
    forget_tokens, read_sign_in_tokens, token_path,
};
pub use parallel_limits::ParallelLimits;
pub use python::{
    AgentHook, Entrypoint, ProcessMoment, PythonFunctionTool, PythonLifecycleHook, PythonSettings,
    PythonTool, PythonToolHost, START_TIMEOUT, SchemaModelAnswerChecker, SchemaModelCheckSettings,
    SchemaModelDescription, SchemaModelDescriptionFailure, describe_schema_model,
};
pub use shell::ShellHost;
pub use skills::SkillHost;
pub use stub::{StubHost, StubTool, ToolRecorder};
