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
    AuthorizationSettings, InteractiveSignIn, McpHost, McpPrimitive, McpSettings, McpSignIn, McpTool,
    begin_sign_in,
};
pub use config::{
    DurationSetting, IdempotentConfig, McpClientCredentialsConfig, McpParallelLimitConfig, McpProtocolMode,
    McpServerConfig,
};
pub use name_filter::NameFilter;
pub use server::{
    ClientCredentials, IdempotentTools, McpParallelLimit, McpProtocolChoice, McpServerSettings, McpTransport,
    ReconnectPolicy, SignInMethod,
};
pub use tokens::{forget_tokens, read_sign_in_tokens, token_path};
pub use view::ServerView;
