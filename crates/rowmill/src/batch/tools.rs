//! Tools of the program that a worker's model may call.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::agent::{Route, Tool};
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_core::validate::ResultSchema;
use rowmill_types::{ToolOutput, ToolSpec};

use super::collect::locked;
use super::shelf::index;

/// How long a tool may take, where nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Makes the host of one item.
type HostFn = Arc<dyn Fn(usize) -> Arc<dyn ToolHost> + Send + Sync>;

/// A tool as a worker offers it to its model.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    spec: ToolSpec,
    idempotent: bool,
    timeout: Duration,
    route: Route,
}

impl OfferedTool {
    /// A tool with its name, what it is good for, and the JSON Schema of its arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: serde_json::Value) -> Self {
        let spec = ToolSpec { name: name.into(), description: Some(description.into()), schema };
        Self { spec, idempotent: false, timeout: TIMEOUT, route: Route::Call }
    }

    /// The tool may run twice for one call: it is run again where nobody knows whether it ran.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// How long a call may take.
    #[must_use]
    pub fn timeout(mut self, most: Duration) -> Self {
        self.timeout = most;
        self
    }

    /// What the tool gives is the answer, and the model is not asked again.
    #[must_use]
    pub fn answers(mut self) -> Self {
        self.route = Route::Passthrough;
        self
    }

    fn tool(&self) -> Tool {
        Tool {
            spec: self.spec.clone(),
            host_name: self.spec.name.clone(),
            arguments: ResultSchema::parse(&self.spec.schema.to_string(), &self.spec.name).ok(),
            route: self.route,
            idempotent: self.idempotent,
            timeout: self.timeout,
        }
    }
}

/// The tools of a worker: what its model is offered, and who carries calls out.
#[derive(Clone)]
pub struct Tools {
    offered: Vec<OfferedTool>,
    host: Arc<dyn ToolHost>,
}

impl Tools {
    /// Tools of an own host, which serves all items and keeps them apart where it has to.
    pub fn of_host(host: impl ToolHost + 'static, offered: Vec<OfferedTool>) -> Self {
        Self { offered, host: Arc::new(host) }
    }

    /// Tools whose host is made for every item, by its place, so that what the host keeps is the
    /// item's alone. It is closed when the item has ended.
    pub fn per_item<H, F>(make: F, offered: Vec<OfferedTool>) -> Self
    where
        H: ToolHost + 'static,
        F: Fn(usize) -> H + Send + Sync + 'static,
    {
        let make: HostFn = Arc::new(move |index| Arc::new(make(index)));
        Self { offered, host: Arc::new(PerItem { make, hosts: Mutex::default() }) }
    }

    pub(super) fn host(&self) -> Arc<dyn ToolHost> {
        Arc::clone(&self.host)
    }

    pub(super) fn tools(&self) -> Vec<Tool> {
        self.offered.iter().map(OfferedTool::tool).collect()
    }

    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        self.offered.iter().map(|offered| offered.spec.clone()).collect()
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.offered.iter().map(|offered| offered.spec.name.as_str()).collect();
        out.debug_struct("Tools").field("offered", &names).finish_non_exhaustive()
    }
}

/// One host for every item.
struct PerItem {
    make: HostFn,
    hosts: Mutex<HashMap<u64, Arc<dyn ToolHost>>>,
}

impl fmt::Debug for PerItem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PerItem({} hosts)", locked(&self.hosts).len())
    }
}

impl PerItem {
    fn of(&self, row: u64) -> Arc<dyn ToolHost> {
        if let Some(host) = locked(&self.hosts).get(&row) {
            return Arc::clone(host);
        }
        // Made without the lock, because the program's own code runs then.
        let made = (self.make)(index(row));
        Arc::clone(locked(&self.hosts).entry(row).or_insert(made))
    }
}

impl ToolHost for PerItem {
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async move { self.of(request.row).call(request).await })
    }

    fn release(&self, row: u64) -> BoxFuture<'_, ()> {
        let host = locked(&self.hosts).remove(&row);
        Box::pin(async move {
            if let Some(host) = host {
                host.release(row).await;
                host.close().await;
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let hosts = std::mem::take(&mut *locked(&self.hosts));
        Box::pin(async move {
            for host in hosts.into_values() {
                host.close().await;
            }
        })
    }
}
