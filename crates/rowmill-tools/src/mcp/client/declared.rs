//! What the client reads of the servers' entries.

use std::time::Duration;

use crate::mcp::name_filter::NameFilter;
use crate::mcp::server::{McpServerSettings, McpTransport, ReconnectPolicy};
use crate::mcp::view::ServerView;

impl NameFilter {
    /// The plain names among the patterns that match none of `known`, which are probably typos.
    pub(super) fn unknown_name<'a>(&'a self, known: &[&str]) -> Option<&'a str> {
        let Self::Only(patterns) = self else { return None };
        let plain = patterns.iter().filter(|pattern| !pattern.contains(['*', '?', '[']));
        plain.map(String::as_str).find(|name| !known.contains(name))
    }
}

impl McpTransport {
    /// Whether a header authorizes rowmill.
    pub(super) fn has_credential(&self) -> bool {
        match self {
            Self::Stdio { .. } => false,
            Self::Http { headers, .. } => {
                headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
            }
        }
    }
}

impl McpServerSettings {
    /// The view of the server's own entry, and the views that agents see instead of it.
    pub(super) fn all_views(&self) -> Vec<ServerView> {
        let mut views = vec![self.default_view()];
        for view in &self.views {
            if !views.contains(view) {
                views.push(view.clone());
            }
        }
        views
    }
}

impl ReconnectPolicy {
    /// The wait before an attempt, counted from 0.
    pub(super) fn wait_before(&self, made: u32) -> Duration {
        let Some(doublings) = made.checked_sub(1) else { return Duration::ZERO };
        self.first_wait.saturating_mul(2_u32.saturating_pow(doublings)).min(self.longest_wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let reconnect = ReconnectPolicy::default();
        let waits: Vec<_> = (0..8).map(|made| reconnect.wait_before(made).as_millis()).collect();
        assert_eq!(waits, [0, 250, 500, 1000, 2000, 4000, 5000, 5000]);
    }

    #[test]
    fn a_plain_name_that_nobody_bears_is_found() {
        let filter = NameFilter::Only(vec!["read*".to_owned(), "add".to_owned(), "sub".to_owned()]);
        assert_eq!(filter.unknown_name(&["add"]), Some("sub"));
        assert_eq!(filter.unknown_name(&["add", "sub"]), None);
        assert_eq!(NameFilter::Everything.unknown_name(&[]), None);
    }
}
