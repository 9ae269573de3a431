//! A dataset in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rowmill_core::ports::{Dataset, InputIdentity, InputReadProgress, ReadLimit, RowSource};
use rowmill_types::{Problem, ProblemCode, Row, RowReadResult};

/// Rows that are held in memory.
///
/// ```
/// # use rowmill_core::ports::{Dataset, ReadLimit};
/// # use rowmill_testkit::FakeDataset;
/// let dataset = FakeDataset::from_texts([r#"{"a": 1}"#, "not a row"]);
/// let mut rows = Vec::new();
/// let more = dataset.open().unwrap().read(&mut rows, ReadLimit { rows: 10, bytes: 1000 }).unwrap();
/// assert!(!more && rows[0].is_ok() && rows[1].is_err());
/// ```
#[derive(Debug, Clone)]
pub struct FakeDataset {
    rows: Arc<Vec<RowReadResult>>,
    failure: Option<(usize, Problem)>,
    once: bool,
    opened: Arc<AtomicUsize>,
}

impl FakeDataset {
    /// A dataset of these rows.
    #[must_use]
    pub fn new(rows: Vec<RowReadResult>) -> Self {
        Self { rows: Arc::new(rows), failure: None, once: false, opened: Arc::default() }
    }

    /// A dataset of JSON objects, numbered from 1; other text becomes a bad row.
    #[must_use]
    pub fn from_texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        let numbered = (1..).zip(texts);
        Self::new(numbered.map(|(number, text)| Row::parse(number, text.into())).collect())
    }

    /// Makes it openable only once, like standard input.
    #[must_use]
    pub fn openable_once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Fails with `problem` after `rows` rows.
    #[must_use]
    pub fn failing_after(mut self, rows: usize, problem: Problem) -> Self {
        self.failure = Some((rows, problem));
        self
    }

    /// How often it was opened.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }
}

impl Dataset for FakeDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        if self.opened.fetch_add(1, Ordering::SeqCst) > 0 && self.once {
            return Err(Problem::new(ProblemCode::InputUnreadable, "the input was read already"));
        }
        Ok(Box::new(FakeRows { rows: Arc::clone(&self.rows), failure: self.failure.clone(), at: 0, read: 0 }))
    }

    fn is_rereadable(&self) -> bool {
        !self.once
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        let path = if self.once { "-" } else { "/fake/rows.jsonl" };
        let size = (!self.once).then(|| self.rows.iter().map(size_of_row).sum());
        Ok(InputIdentity { path: path.to_owned(), size, probe: None })
    }
}

#[derive(Debug)]
struct FakeRows {
    rows: Arc<Vec<RowReadResult>>,
    failure: Option<(usize, Problem)>,
    at: usize,
    read: u64,
}

impl RowSource for FakeRows {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let start = self.read;
        for _ in 0..room.rows.max(1) {
            if let Some((after, problem)) = &self.failure
                && self.at >= *after
            {
                // Rows that were read before the failure are returned first, so that none is lost.
                return if self.read > start { Ok(true) } else { Err(problem.clone()) };
            }
            let Some(row) = self.rows.get(self.at) else { return Ok(false) };
            self.read += size_of_row(row);
            self.at += 1;
            batch.push(row.clone());
            if self.read - start >= room.bytes as u64 {
                break;
            }
        }
        Ok(self.at < self.rows.len() || self.failure.is_some())
    }

    fn position(&self) -> InputReadProgress {
        InputReadProgress { read: self.read, total: Some(self.rows.iter().map(size_of_row).sum()) }
    }
}

fn size_of_row(row: &RowReadResult) -> u64 {
    row.as_ref().map_or(0, |row| row.json_text().len() as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_dataset_gives_the_rows_before_the_failure_first() {
        let problem = Problem::new(ProblemCode::InputUnreadable, "the disk is gone");
        let dataset = FakeDataset::from_texts(["{}", "{}", "{}"]).failing_after(2, problem.clone());
        let mut source = dataset.open().unwrap();
        let mut rows = Vec::new();
        let room = ReadLimit { rows: 10, bytes: 1000 };
        assert_eq!(source.read(&mut rows, room), Ok(true));
        assert_eq!(rows.len(), 2);
        assert_eq!(source.read(&mut rows, room), Err(problem));
    }

    #[test]
    fn a_read_stops_at_its_room() {
        let dataset = FakeDataset::from_texts(["{}", "{}", "{}"]);
        let mut source = dataset.open().unwrap();
        let mut rows = Vec::new();
        assert_eq!(source.read(&mut rows, ReadLimit { rows: 2, bytes: 1000 }), Ok(true));
        assert_eq!(source.read(&mut rows, ReadLimit { rows: 2, bytes: 1 }), Ok(false));
        assert_eq!((rows.len(), source.position().read), (3, 9));
    }

    #[test]
    fn standard_input_can_be_opened_only_once() {
        let dataset = FakeDataset::from_texts(["{}"]).openable_once();
        assert!(!dataset.is_rereadable() && dataset.open().is_ok() && dataset.open().is_err());
        assert_eq!(dataset.open_count(), 2);
    }
}
