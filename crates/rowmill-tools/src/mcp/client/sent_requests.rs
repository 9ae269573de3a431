//! Tracks which requests were sent, so that after a broken connection calls that may have run can be told
//! from those that cannot have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::RequestId;

/// The pending requests of one connection. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct SentRequests {
    ways: Arc<Mutex<HashMap<RequestId, RequestProgress>>>,
}

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestProgress {
    /// Sending it has started.
    Sent,
    /// Its caller dropped it before that: it must not be sent any more.
    GivenUp,
}

impl SentRequests {
    /// Marks the request as about to be sent. `false` means that its caller no longer waits for it.
    pub(super) fn mark_sent(&self, id: &RequestId) -> bool {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = ways.remove(id) != Some(RequestProgress::GivenUp);
        if wanted {
            ways.insert(id.clone(), RequestProgress::Sent);
        }
        wanted
    }

    /// Forgets a request that was answered or did not arrive. Returns whether it had been sent.
    pub(super) fn forget(&self, id: &RequestId) -> bool {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        ways.remove(id) == Some(RequestProgress::Sent)
    }

    /// Marks a request that nobody waits for any more. Returns whether it had been sent; if not, it never
    /// will be.
    pub(super) fn give_up(&self, id: &RequestId) -> bool {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let left = ways.remove(id) == Some(RequestProgress::Sent);
        if !left {
            ways.insert(id.clone(), RequestProgress::GivenUp);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_was_given_up_never_leaves() {
        let (sent, id) = (SentRequests::default(), RequestId::Number(7));
        assert!(!sent.give_up(&id));
        assert!(!sent.mark_sent(&id));
        assert!(!sent.forget(&id));
    }

    #[test]
    fn a_request_that_left_may_have_run() {
        let (sent, id) = (SentRequests::default(), RequestId::Number(7));
        assert!(sent.mark_sent(&id));
        assert!(sent.give_up(&id));
        assert!(sent.mark_sent(&id));
        assert!(sent.forget(&id));
        assert!(!sent.forget(&id));
    }
}
