//! Limits on parallel calls of a tool, or of several tools together.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rowmill_core::ports::{ToolFailure, ToolHost, ToolPermit, ToolRequest};
use rowmill_types::ToolOutput;
use tokio::sync::Semaphore;

/// The limits on parallel calls. Tools that are limited together share their slots.
#[derive(Debug, Default)]
pub struct ParallelLimits {
    by_tool: HashMap<String, Vec<Arc<Semaphore>>>,
}

impl ParallelLimits {
    /// Allows at most `most` parallel calls of these tools, all of them together; at least one. The tools are
    /// named as their host knows them. A tool with several limits obeys all of them.
    pub fn add(&mut self, tools: impl IntoIterator<Item = String>, most: usize) {
        let places = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        for tool in tools {
            self.by_tool.entry(tool).or_default().push(Arc::clone(&places));
        }
    }

    /// The host with these limits; the host itself if there are none.
    #[must_use]
    pub fn wrap(self, host: Arc<dyn ToolHost>) -> Arc<dyn ToolHost> {
        if self.by_tool.is_empty() { host } else { Arc::new(LimitedToolHost { host, limits: self }) }
    }
}

/// A host whose calls wait for a free slot.
#[derive(Debug)]
struct LimitedToolHost {
    host: Arc<dyn ToolHost>,
    limits: ParallelLimits,
}

impl ToolHost for LimitedToolHost {
    fn wait_until_ready<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        Box::pin(async move {
            // First whatever takes long to get and is kept long: waiting for it must not occupy a slot that
            // others need.
            let mut permit = self.host.wait_until_ready(request).await?;
            // All calls take slots in the same order, so that no two can deadlock.
            for places in self.limits.by_tool.get(request.tool).into_iter().flatten() {
                let place = Arc::clone(places).acquire_owned().await;
                permit.add_resource(place.map_err(|_| closed())?);
            }
            Ok(permit)
        })
    }

    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        self.host.call(request)
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        self.host.release_row(row)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        for places in self.limits.by_tool.values().flatten() {
            places.close();
        }
        self.host.close()
    }
}

fn closed() -> ToolFailure {
    ToolFailure { message: "the run has ended".to_owned(), may_have_run: false }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use rowmill_types::RowId;

    use super::*;

    #[derive(Debug)]
    struct Echo;

    impl ToolHost for Echo {
        fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
            Box::pin(std::future::ready(Ok(ToolOutput::from_text(request.tool))))
        }
    }

    fn asked(tool: &str) -> ToolRequest<'_> {
        let id = &RowId::Number(1);
        ToolRequest { row: 1, id, key: "k", tool, arguments: "{}", idempotent: false, timeout: None }
    }

    fn limited(limits: &[(&[&str], usize)]) -> Arc<dyn ToolHost> {
        let mut all = ParallelLimits::default();
        for (tools, most) in limits {
            all.add(tools.iter().map(|tool| (*tool).to_owned()), *most);
        }
        all.wrap(Arc::new(Echo))
    }

    #[test]
    fn tools_that_are_limited_together_share_their_places_and_others_do_not_wait() {
        let host = limited(&[(&["read", "write"], 2), (&["write"], 1)]);
        let reading = host.wait_until_ready(asked("read")).now_or_never().unwrap().unwrap();
        let writing = host.wait_until_ready(asked("write")).now_or_never().unwrap().unwrap();
        assert!(host.wait_until_ready(asked("read")).now_or_never().is_none(), "both places are taken");
        assert!(host.wait_until_ready(asked("other")).now_or_never().is_some());
        drop(reading);
        assert!(host.wait_until_ready(asked("write")).now_or_never().is_none(), "another writes");
        assert!(host.wait_until_ready(asked("read")).now_or_never().is_some());
        drop(writing);
        assert!(host.wait_until_ready(asked("write")).now_or_never().is_some());
    }

    #[test]
    fn a_call_that_is_given_up_while_it_waits_gives_its_place_in_the_queue_back() {
        let host = limited(&[(&["write"], 1)]);
        let writing = host.wait_until_ready(asked("write")).now_or_never().unwrap().unwrap();
        let mut given_up = host.wait_until_ready(asked("write"));
        assert!((&mut given_up).now_or_never().is_none());
        let mut next = host.wait_until_ready(asked("write"));
        assert!((&mut next).now_or_never().is_none());
        drop(given_up);
        drop(writing);
        assert!(next.now_or_never().is_some());
    }

    #[test]
    fn without_limits_the_host_is_left_as_it_is_and_after_the_end_nobody_waits() {
        let host: Arc<dyn ToolHost> = Arc::new(Echo);
        assert!(Arc::ptr_eq(&ParallelLimits::default().wrap(Arc::clone(&host)), &host));
        let host = limited(&[(&["write"], 1)]);
        let _writing = host.wait_until_ready(asked("write")).now_or_never().unwrap().unwrap();
        host.close().now_or_never().unwrap();
        let failure = host.wait_until_ready(asked("write")).now_or_never().unwrap().unwrap_err();
        assert!(!failure.may_have_run);
    }
}
