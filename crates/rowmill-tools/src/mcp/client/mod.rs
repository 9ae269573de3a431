//! Starts MCP servers, and talks to them.

mod access;
mod catalogue;
mod connect;
mod declared;
mod frame;
mod host;
mod http;
mod interactive_sign_in;
mod login;
mod lost_call;
mod message_redactor;
mod output;
mod pipe;
mod process;
mod reconnector;
mod sent_requests;
mod session;
mod tail;
mod tasks;
mod token_client;
mod token_file;
mod tool_names;

pub use catalogue::{McpPrimitive, McpTool};
pub use host::{McpHost, McpSettings};
pub use interactive_sign_in::InteractiveSignIn;
pub use login::{AuthorizationSettings, McpSignIn, begin_sign_in};

/// The maximum size of one message of a server. A larger one fails only its call.
const MAX_FRAME: usize = 64 * 1024 * 1024;
