//! What one agent sees of a server.

use super::filter::Filter;
use super::server::McpServer;

/// What is offered of a server to some agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Which of the tools that the server's entry lets through.
    pub tools: Filter,
    /// Which of its resources.
    pub resources: Filter,
    /// Which of its prompts.
    pub prompts: Filter,
}

impl McpServer {
    /// What the server's own entry says.
    #[must_use]
    pub fn view(&self) -> View {
        View { tools: self.tools.clone(), resources: self.resources.clone(), prompts: self.prompts.clone() }
    }

    /// That, and what agents see instead of it.
    pub(super) fn all_views(&self) -> Vec<View> {
        let mut views = vec![self.view()];
        for view in &self.views {
            if !views.contains(view) {
                views.push(view.clone());
            }
        }
        views
    }
}
