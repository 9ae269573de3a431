//! Wrappers for the tool hosts of the program.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use rowmill_core::ports::{ToolFailure, ToolHost, ToolPermit, ToolRequest};
use rowmill_types::ToolOutput;

use super::item_table::item_index;
use super::result_collector::lock_unpoisoned;

/// Creates the host of one item.
pub(super) type HostFn = Arc<dyn Fn(usize) -> Arc<dyn ToolHost> + Send + Sync>;

/// A host that several workers may share, and that is closed when all of them have ended.
#[derive(Debug)]
pub(super) struct SharedToolHost(pub(super) Arc<dyn ToolHost>);

impl ToolHost for SharedToolHost {
    fn wait_until_ready<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        self.0.wait_until_ready(request)
    }

    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        self.0.call(request)
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        self.0.release_row(row)
    }
}

/// Creates a separate host for every item.
pub(super) struct PerItemToolHost {
    make: HostFn,
    hosts: Mutex<HashMap<u64, Arc<dyn ToolHost>>>,
}

impl fmt::Debug for PerItemToolHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PerItem({} hosts)", lock_unpoisoned(&self.hosts).len())
    }
}

impl PerItemToolHost {
    pub(super) fn new(make: HostFn) -> Self {
        Self { make, hosts: Mutex::default() }
    }

    fn of(&self, row: u64) -> Arc<dyn ToolHost> {
        if let Some(host) = lock_unpoisoned(&self.hosts).get(&row) {
            return Arc::clone(host);
        }
        // Created without the lock, because the program's own code runs then.
        let made = (self.make)(item_index(row));
        Arc::clone(lock_unpoisoned(&self.hosts).entry(row).or_insert(made))
    }
}

impl ToolHost for PerItemToolHost {
    fn wait_until_ready<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        Box::pin(async move { self.of(request.row).wait_until_ready(request).await })
    }

    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async move { self.of(request.row).call(request).await })
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        let host = lock_unpoisoned(&self.hosts).remove(&row);
        Box::pin(async move {
            if let Some(host) = host {
                host.release_row(row).await;
                host.close().await;
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let hosts = std::mem::take(&mut *lock_unpoisoned(&self.hosts));
        Box::pin(async move {
            for host in hosts.into_values() {
                host.close().await;
            }
        })
    }
}
