//! Tools that agents call.

mod mcp;

pub use mcp::{
    AuthConfig, Filter, Idempotent, IdempotentConfig, Mcp, McpServer, McpServerConfig, McpSettings, OAuth,
    OfferedKind, OfferedTool, ProtocolConfig, ProtocolMode, Reconnect, Span, Transport,
};
