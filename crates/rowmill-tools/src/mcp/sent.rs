//! Which requests have left, so that a broken connection tells calls that may have run from
//! those that cannot have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::RequestId;

/// The requests of one connection that are under way. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Sent {
    ways: Arc<Mutex<HashMap<RequestId, Way>>>,
}

/// How far a request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It began to leave.
    Left,
    /// Its caller went away before that: it must not leave any more.
    GivenUp,
}

impl Sent {
    /// The request is about to leave. `false` means that nobody waits for it any more.
    pub(super) fn leaves(&self, id: &RequestId) -> bool {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = ways.remove(id) != Some(Way::GivenUp);
        if wanted {
            ways.insert(id.clone(), Way::Left);
        }
        wanted
    }

    /// Forgets the request: it did not arrive, or was answered. Tells whether it had left.
    pub(super) fn forget(&self, id: &RequestId) -> bool {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        ways.remove(id) == Some(Way::Left)
    }

    /// Nobody waits for the request any more. Tells whether it had left; if not, it never will.
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
