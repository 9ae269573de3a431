//! MCP servers as a tool host.
//!
//! [`Mcp`] starts the servers of a run, offers their tools under names that models accept, and calls them. A
//! connection is shared by all rows unless its server keeps rows separate (`per_row`); a broken one is made
//! again.

mod access;
mod call;
mod catalogue;
mod config;
mod filter;
mod frame;
mod host;
mod http;
mod launch;
mod link;
mod login;
mod names;
mod one_file;
mod output;
mod person;
mod pipe;
mod process;
mod sent;
mod server;
mod session;
mod shown;
mod tail;
mod tasks;
mod token_client;
mod token_file;
mod view;

pub use catalogue::{OfferedKind, OfferedTool};
pub use config::{AuthConfig, IdempotentConfig, MaxParallelConfig, McpServerConfig, ProtocolConfig, Span};
pub use filter::Filter;
pub use host::{Mcp, McpSettings};
pub use login::{AuthorizationSettings, Login, begin_login, forget_tokens, kept_tokens, token_path};
pub use person::Person;
pub use server::{Idempotent, MaxParallel, McpServer, OAuth, ProtocolMode, Reconnect, SignIn, Transport};
pub use view::View;

/// The maximum size of one message of a server. A larger one fails only its call.
const MAX_FRAME: usize = 64 * 1024 * 1024;
