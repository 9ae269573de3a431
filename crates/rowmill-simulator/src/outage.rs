//! Times when no call is answered.

use std::str::FromStr;

/// What calls meet while the provider is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutageKind {
    /// An error status, immediately.
    Status(u16),
    /// The connection is reset once the call has been read.
    Reset,
    /// Connections are refused, and open ones are closed.
    Refuse,
}

impl FromStr for OutageKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "reset" => return Ok(Self::Reset),
            "refuse" => return Ok(Self::Refuse),
            _ => {}
        }
        match text.parse() {
            Ok(status @ 400..=599) => Ok(Self::Status(status)),
            _ => Err(format!("`{text}` is not a kind of outage; write `503`, `529`, `reset` or `refuse`")),
        }
    }
}
