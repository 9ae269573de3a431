//! The parts of a server that one agent sees.

use super::filter::Filter;
use super::server::McpServer;

/// What some agents are offered of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Which of the tools that the server's entry admits.
    pub tools: Filter,
    /// Which of its resources.
    pub resources: Filter,
    /// Which of its prompts.
    pub prompts: Filter,
}

impl McpServer {
    /// The view that the server's own entry defines.
    #[must_use]
    pub fn view(&self) -> View {
        View { tools: self.tools.clone(), resources: self.resources.clone(), prompts: self.prompts.clone() }
    }

    /// That view, and the views that agents see instead of it.
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
