//! The parts of a server that one agent sees.

use super::name_filter::NameFilter;
use super::server::McpServerSettings;

/// What some agents are offered of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerView {
    /// Which of the tools that the server's entry admits.
    pub tools: NameFilter,
    /// Which of its resources.
    pub resources: NameFilter,
    /// Which of its prompts.
    pub prompts: NameFilter,
}

impl McpServerSettings {
    /// The view that the server's own entry defines.
    #[must_use]
    pub fn default_view(&self) -> ServerView {
        ServerView {
            tools: self.tools.clone(),
            resources: self.resources.clone(),
            prompts: self.prompts.clone(),
        }
    }
}
