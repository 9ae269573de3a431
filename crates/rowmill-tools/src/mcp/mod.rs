//! MCP servers as a tool host.
//!
//! [`McpHost`] starts the servers of a run, offers their tools under names that models accept, and calls them. A
//! connection is shared by all rows unless its server keeps rows separate (`per_row`); a broken one is made
//! again.

mod access;
mod catalogue;
mod config;
mod connect;
mod frame;
mod host;
mod http;
mod interactive_sign_in;
mod login;
mod lost_call;
mod message_redactor;
mod name_filter;
mod output;
mod pipe;
mod process;
mod reconnector;
mod sent_requests;
mod server;
mod session;
mod single_file_servers;
mod tail;
mod tasks;
mod token_client;
mod token_file;
mod tool_names;
mod view;

pub use catalogue::{McpTool, McpToolKind};
pub use config::{
    AuthConfig, DurationSetting, IdempotentConfig, MaxParallelConfig, McpServerConfig, ProtocolConfig,
};
pub use host::{McpHost, McpSettings};
pub use interactive_sign_in::InteractiveSignIn;
pub use login::{AuthorizationSettings, McpSignIn, begin_sign_in, forget_tokens, read_tokens, token_path};
pub use name_filter::NameFilter;
pub use server::{
    IdempotentTools, MaxParallel, McpServer, McpTransport, OAuth, ProtocolMode, ReconnectPolicy, SignInMethod,
};
pub use view::ServerView;

/// The maximum size of one message of a server. A larger one fails only its call.
const MAX_FRAME: usize = 64 * 1024 * 1024;
