//! Combines several hosts into one.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use rowmill_core::ports::{ToolFailure, ToolHost, ToolPermit, ToolRequest};
use rowmill_types::ToolOutput;

use crate::unknown_tool::unknown_tool_failure;

/// Which tools a host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostToolNames {
    /// One tool, by the name under which the host knows it.
    Exact(String),
    /// One tool under another name: calls of `name` are passed to the host as `tool`. This allows two hosts
    /// to have tools of the same name.
    As {
        /// The name in calls.
        name: String,
        /// The name under which the host knows it.
        tool: String,
    },
    /// All tools whose names start with this. The longest prefix wins; exact names take precedence.
    Prefix(String),
}

/// Passes each call to the host that has the tool.
#[derive(Debug, Default)]
pub struct CombinedToolHost {
    hosts: Vec<Arc<dyn ToolHost>>,
    exact: HashMap<String, (usize, Option<String>)>,
    prefixes: Vec<(String, usize)>,
}

impl CombinedToolHost {
    /// Combines these hosts, each with its tools. If two hosts have the same name, the first one gets it.
    #[must_use]
    pub fn new(hosts: Vec<(Vec<HostToolNames>, Arc<dyn ToolHost>)>) -> Self {
        let mut tools = Self::default();
        for (names, host) in hosts {
            let number = tools.hosts.len();
            for name in names {
                match name {
                    HostToolNames::Exact(name) => {
                        tools.exact.entry(name).or_insert((number, None));
                    }
                    HostToolNames::As { name, tool } => {
                        tools.exact.entry(name).or_insert((number, Some(tool)));
                    }
                    HostToolNames::Prefix(prefix) => tools.prefixes.push((prefix, number)),
                }
            }
            tools.hosts.push(host);
        }
        tools.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        tools
    }

    /// The host of a tool, and the host's name for it.
    fn route<'a>(&'a self, tool: &'a str) -> Option<(&'a dyn ToolHost, &'a str)> {
        let (number, tool) = match self.exact.get(tool) {
            Some((number, renamed)) => (*number, renamed.as_deref().unwrap_or(tool)),
            None => {
                let found = self.prefixes.iter().find(|(prefix, _)| tool.starts_with(prefix.as_str()));
                (found?.1, tool)
            }
        };
        self.hosts.get(number).map(|host| (&**host, tool))
    }
}

impl ToolHost for CombinedToolHost {
    fn wait_until_ready<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        match self.route(request.tool) {
            Some((host, tool)) => host.wait_until_ready(ToolRequest { tool, ..request }),
            None => Box::pin(std::future::ready(Err(unknown_tool_failure(request.tool)))),
        }
    }

    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        match self.route(request.tool) {
            Some((host, tool)) => host.call(ToolRequest { tool, ..request }),
            None => Box::pin(std::future::ready(Err(unknown_tool_failure(request.tool)))),
        }
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            join_all(self.hosts.iter().map(|host| host.release_row(row))).await;
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            join_all(self.hosts.iter().map(|host| host.close())).await;
        })
    }
}
