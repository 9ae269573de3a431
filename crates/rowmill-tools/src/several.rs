//! Several hosts as one.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use rowmill_core::ports::{ToolFailure, ToolHost, ToolPermit, ToolRequest};
use rowmill_types::ToolOutput;

use crate::unknown::unknown;

/// Which tools a host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// One tool, by the name that the host knows it by.
    Exact(String),
    /// One tool under another name: `name` is asked for, and the host is asked for `tool`. Two
    /// hosts may so have tools of the same name.
    As {
        /// What is asked for.
        name: String,
        /// What the host knows it by.
        tool: String,
    },
    /// All tools whose names begin so. The longest beginning wins; exact names win over all.
    Prefix(String),
}

/// A host that hands each call to the host that has the tool.
#[derive(Debug, Default)]
pub struct Tools {
    hosts: Vec<Arc<dyn ToolHost>>,
    exact: HashMap<String, (usize, Option<String>)>,
    prefixes: Vec<(String, usize)>,
}

impl Tools {
    /// All of these hosts, each with its tools. A name that two hosts have is the first one's.
    #[must_use]
    pub fn new(hosts: Vec<(Vec<Names>, Arc<dyn ToolHost>)>) -> Self {
        let mut tools = Self::default();
        for (names, host) in hosts {
            let number = tools.hosts.len();
            for name in names {
                match name {
                    Names::Exact(name) => {
                        tools.exact.entry(name).or_insert((number, None));
                    }
                    Names::As { name, tool } => {
                        tools.exact.entry(name).or_insert((number, Some(tool)));
                    }
                    Names::Prefix(prefix) => tools.prefixes.push((prefix, number)),
                }
            }
            tools.hosts.push(host);
        }
        tools.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        tools
    }

    /// The host of a tool, and what the host calls it.
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

impl ToolHost for Tools {
    fn ready<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        match self.route(request.tool) {
            Some((host, tool)) => host.ready(ToolRequest { tool, ..request }),
            None => Box::pin(std::future::ready(Err(unknown(request.tool)))),
        }
    }

    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        match self.route(request.tool) {
            Some((host, tool)) => host.call(ToolRequest { tool, ..request }),
            None => Box::pin(std::future::ready(Err(unknown(request.tool)))),
        }
    }

    fn release(&self, row: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            join_all(self.hosts.iter().map(|host| host.release(row))).await;
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            join_all(self.hosts.iter().map(|host| host.close())).await;
        })
    }
}
