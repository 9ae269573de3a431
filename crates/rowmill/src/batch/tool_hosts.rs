//! Wrappers for the tool hosts of the program.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use rowmill_core::ports::{ToolFailure, ToolHost, ToolPermit, ToolRequest};
use rowmill_types::ToolOutput;

use super::collect::locked;
use super::shelf::index;

/// Creates the host of one item.
pub(super) type HostFn = Arc<dyn Fn(usize) -> Arc<dyn ToolHost> + Send + Sync>;

/// A host that several workers may share, and that is closed when all of them have ended.
#[derive(Debug)]
pub(super) struct KeptOpen(pub(super) Arc<dyn ToolHost>);

impl ToolHost for KeptOpen {
    fn ready<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        self.0.ready(request)
    }

    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        self.0.call(request)
    }

    fn release(&self, row: u64) -> BoxFuture<'_, ()> {
        self.0.release(row)
    }
}

/// Creates a separate host for every item.
pub(super) struct PerItem {
    make: HostFn,
    hosts: Mutex<HashMap<u64, Arc<dyn ToolHost>>>,
}

impl fmt::Debug for PerItem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PerItem({} hosts)", locked(&self.hosts).len())
    }
}

impl PerItem {
    pub(super) fn new(make: HostFn) -> Self {
        Self { make, hosts: Mutex::default() }
    }

    fn of(&self, row: u64) -> Arc<dyn ToolHost> {
        if let Some(host) = locked(&self.hosts).get(&row) {
            return Arc::clone(host);
        }
        // Created without the lock, because the program's own code runs then.
        let made = (self.make)(index(row));
        Arc::clone(locked(&self.hosts).entry(row).or_insert(made))
    }
}

impl ToolHost for PerItem {
    fn ready<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        Box::pin(async move { self.of(request.row).ready(request).await })
    }

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
