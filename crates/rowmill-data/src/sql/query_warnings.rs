//! Warnings about rows that a query cannot see as they are.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rowmill_types::BadRow;

use crate::WarnFn;
use crate::columns::SAMPLE_ROWS;

/// Reports each warning once, however often the rows are read.
pub(crate) struct QueryWarnings {
    notice: WarnFn,
    /// How many bad rows were reported.
    bad: AtomicU64,
    new_field: AtomicBool,
}

impl fmt::Debug for QueryWarnings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Watch")
            .field("bad", &self.bad)
            .field("new_field", &self.new_field)
            .finish_non_exhaustive()
    }
}

impl QueryWarnings {
    pub(crate) fn new(notice: WarnFn) -> Self {
        Self { notice, bad: AtomicU64::new(0), new_field: AtomicBool::new(false) }
    }

    pub(crate) fn warn_once(&self, text: String) {
        (self.notice)(text.into());
    }

    /// Bad rows were left out of a query.
    pub(crate) fn warn_skipped_rows(&self, count: u64, first: &BadRow) {
        if self.bad.fetch_max(count, Ordering::Relaxed) >= count {
            return;
        }
        let rows = match count {
            1 => "1 row of the input cannot be read and is".to_owned(),
            _ => format!("{count} rows of the input cannot be read and are"),
        };
        let row = first.number;
        self.warn_once(format!("{rows} skipped by the query, first at row {row}: {}", first.message));
    }

    /// A row has a field that no row of the sample had.
    pub(crate) fn warn_new_field(&self, name: &str, row: u64) {
        if !self.new_field.swap(true, Ordering::Relaxed) {
            self.warn_once(format!(
                "row {row} has the field `{name}`, which no row of the first {SAMPLE_ROWS} has; queries cannot use it \
                 and `*` does not contain it"
            ));
        }
    }
}
