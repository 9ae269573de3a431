//! A log of calls, one line of JSON each.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use crate::recorded_call::RecordedCall;

/// The destination of the call log. Clones write to the same one.
#[derive(Clone)]
pub(crate) struct CallLog(Arc<Mutex<dyn Write + Send>>);

impl CallLog {
    pub(crate) fn new(log: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(log)))
    }

    /// Writes a line. Errors are ignored, so that calls are still answered.
    pub(crate) fn write(&self, seen: &RecordedCall) {
        let Ok(mut line) = serde_json::to_vec(seen) else { return };
        line.push(b'\n');
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(log.write_all(&line).and_then(|()| log.flush()));
    }
}

impl fmt::Debug for CallLog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("CallLog")
    }
}
