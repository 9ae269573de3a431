//! MCP servers as a tool host.
//!
//! [`Mcp`] starts the servers of a run, offers their tools under names that models accept, and
//! calls them. A connection is shared by all rows unless its server keeps rows apart
//! (`per_row`); one that breaks is made anew.

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
mod names;
mod output;
mod pipe;
mod process;
mod sent;
mod server;
mod session;
mod tail;
mod view;

pub use catalogue::{OfferedKind, OfferedTool};
pub use config::{AuthConfig, IdempotentConfig, McpServerConfig, ProtocolConfig, Span};
pub use filter::Filter;
pub use host::{Mcp, McpSettings};
pub use server::{Idempotent, McpServer, OAuth, ProtocolMode, Reconnect, Transport};
pub use view::View;

/// The most bytes of one message of a server. A larger one fails its call and nothing else.
const MAX_FRAME: usize = 64 * 1024 * 1024;
