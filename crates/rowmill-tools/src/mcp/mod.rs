//! MCP servers as a tool host.
//!
//! [`McpHost`] starts the servers of a run, offers their tools under names that models accept, and calls them. A
//! connection is shared by all rows unless its server keeps rows separate (`per_row`); a broken one is made
//! again.

#[cfg_attr(not(feature = "mcp"), path = "without_client.rs")]
mod client;
mod config;
mod name_filter;
mod server;
mod single_file_servers;
mod tokens;
mod view;

pub use client::{
    AuthorizationSettings, InteractiveSignIn, McpHost, McpSettings, McpSignIn, McpTool, McpToolKind,
    begin_sign_in,
};
pub use config::{
    AuthConfig, DurationSetting, IdempotentConfig, MaxParallelConfig, McpServerConfig, ProtocolConfig,
};
pub use name_filter::NameFilter;
pub use server::{
    IdempotentTools, MaxParallel, McpServer, McpTransport, OAuth, ProtocolMode, ReconnectPolicy, SignInMethod,
};
pub use tokens::{forget_tokens, read_tokens, token_path};
pub use view::ServerView;
