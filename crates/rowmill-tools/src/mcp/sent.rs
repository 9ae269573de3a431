//! Tracks which requests were sent, so that after a broken connection calls that may have run can be told
//! from those that cannot have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::RequestId;

/// The pending requests of one connection. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Sent {
    ways: Arc<Mutex<HashMap<RequestId, Way>>>,
}

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Sending it has started.
    Left,
    /// Its caller dropped it before that: it must not be sent any more.
    GivenUp,
}

impl Sent {
    /// Marks the request as about to be sent. `false` means that its caller no longer waits for it.
    pub(super) fn leaves(&self, id: &RequestId) -> bool {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = ways.remove(id) != Some(Way::GivenUp);
        if wanted {
            ways.insert(id.clone(), Way::Left);
        }
        wanted
    }

    /// Forgets a request that was answered or did not arrive. Returns whether it had been sent.
    pub(super) fn forget(&self, id: &RequestId) -> bool {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        ways.remove(id) == Some(Way::Left)
    }

    /// Marks a request that nobody waits for any more. Returns whether it had been sent; if not, it never
    /// will be.
    pub(super) fn give_up(&self, id: &RequestId) -> bool {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let left = ways.remove(id) == Some(Way::Left);
        if !left {
            ways.insert(id.clone(), Way::GivenUp);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_was_given_up_never_leaves() {
        let (sent, id) = (Sent::default(), RequestId::Number(7));
        assert!(!sent.give_up(&id));
        assert!(!sent.leaves(&id));
        assert!(!sent.forget(&id));
    }

    #[test]
    fn a_request_that_left_may_have_run() {
        let (sent, id) = (Sent::default(), RequestId::Number(7));
        assert!(sent.leaves(&id));
        assert!(sent.give_up(&id));
        assert!(sent.leaves(&id));
        assert!(sent.forget(&id));
        assert!(!sent.forget(&id));
    }
}
