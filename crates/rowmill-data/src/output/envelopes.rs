//! Reads the envelopes of a run from all their locations: one per row, in input order.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::ports::{LedgerRecordId, RecordReader, RunStore};
use rowmill_core::record::{EnvelopeHead, RowRecord};
use rowmill_types::{Problem, ProblemCode, RowId};

use super::lines::OutputLines;
use super::settle::{OutputLayout, head_by_number, next_stretch, open_stretches, scan_layout};

/// The envelopes of a run, which can be read repeatedly.
///
/// They are in a file of envelopes, and some perhaps only in the ledger. Additions to the files after this
/// was created are not seen.
#[derive(Debug, Default)]
pub struct EnvelopeReader {
    file: Option<(PathBuf, FileLayout)>,
    ledger: Option<(Arc<dyn RunStore>, Vec<RecordPlace>)>,
}

/// The layout of the file of envelopes.
#[derive(Debug)]
enum FileLayout {
    /// One envelope per row, in order.
    Settled(std::ops::Range<u64>),
    Unsettled(OutputLayout),
}

/// The position of a row's record in the ledger.
#[derive(Debug, Clone, Copy)]
struct RecordPlace {
    number: u64,
    record: LedgerRecordId,
}

/// Records of the ledger that are newer than the file of envelopes.
#[derive(Debug, Default)]
pub struct NewerRecords {
    /// Most rows are identified by their number; these take little memory.
    numbered: Vec<RecordPlace>,
    named: HashMap<RowId, RecordPlace>,
    known_by_number: bool,
}

impl NewerRecords {
    /// An empty set, for a run whose rows are identified by their numbers, whatever ids its envelopes have.
    #[must_use]
    pub fn by_row_number() -> Self {
        Self { known_by_number: true, ..Self::default() }
    }

    /// Adds a record. If a row has several, the latest in the ledger counts.
    pub fn add(&mut self, id: &RowId, number: u64, record: LedgerRecordId) {
        let place = RecordPlace { number, record };
        match id {
            RowId::Number(_) => self.numbered.push(place),
            RowId::Text(_) => drop(self.named.insert(id.clone(), place)),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbered.is_empty() && self.named.is_empty()
    }
}

impl EnvelopeReader {
    /// The envelopes of a file that has one per row, in order.
    #[must_use]
    pub fn from_settled_file(path: &Path) -> Self {
        Self { file: Some((path.to_owned(), FileLayout::Settled(0..u64::MAX))), ledger: None }
    }

    /// The envelopes of a file, if it exists, in any state in which a run may leave it; and the newer records
    /// of the run in `store`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line of it is not an envelope.
    pub fn with_newer_records(
        file: Option<&Path>,
        store: Option<&Arc<dyn RunStore>>,
        newer: NewerRecords,
    ) -> Result<Self, Problem> {
        let NewerRecords { mut numbered, named, known_by_number } = newer;
        let head_of = if known_by_number { head_by_number } else { EnvelopeHead::parse };
        numbered.sort_unstable_by_key(|place| (place.number, std::cmp::Reverse(place.record.position())));
        numbered.dedup_by_key(|place| place.number);
        let file = match file {
            None => None,
            Some(path) => {
                let (mut layout, seen) = scan_layout(path, head_of)?;
                let ids =
                    numbered.iter().map(|place| RowId::Number(place.number)).chain(named.keys().cloned());
                // No line of the file starts at this offset, so none of that row is taken from it.
                layout.last.extend(ids.filter(|id| seen.contains(id)).map(|id| (id, u64::MAX)));
                Some((path.to_owned(), FileLayout::of(layout)))
            }
        };
        let mut places = numbered;
        places.extend(named.into_values());
        // If rows moved, two of them have had the same number: settling the output keeps the later one for
        // the row that has the number now.
        places.sort_unstable_by_key(|place| (place.number, place.record.position()));
        let ledger = store.filter(|_| !places.is_empty()).map(|store| (Arc::clone(store), places));
        Ok(Self { file, ledger })
    }

    /// Passes every envelope to `saw`, in input order.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or `saw` fails.
    pub fn for_each(&self, mut saw: impl FnMut(&[u8]) -> Result<(), Problem>) -> Result<(), Problem> {
        if let (Some((path, FileLayout::Settled(range))), None) = (&self.file, &self.ledger) {
            let mut lines = OutputLines::open(path, range.clone(), 1 << 18)?;
            while lines.next_line()? {
                if !lines.bytes.trim_ascii().is_empty() {
                    saw(&lines.bytes)?;
                }
            }
            return Ok(());
        }
        let mut records =
            self.ledger.as_ref().map(|(store, places)| RecordStream::open(&**store, places)).transpose()?;
        let none = HashMap::new();
        let (mut fronts, last) = match &self.file {
            None => (Vec::new(), &none),
            Some((path, FileLayout::Unsettled(layout))) => (open_stretches(path, layout)?, &layout.last),
            Some((path, FileLayout::Settled(range))) => {
                let layout = OutputLayout { stretches: vec![range.clone()], ..OutputLayout::default() };
                (open_stretches(path, &layout)?, &none)
            }
        };
        loop {
            let next = records.as_ref().and_then(RecordStream::next);
            match next_stretch(&mut fronts) {
                Some(front) if next.is_none_or(|next| front.number <= Some(next)) => {
                    saw(&front.lines.bytes)?;
                    front.advance(last)?;
                }
                _ => match records.as_mut().map(RecordStream::take).transpose()?.flatten() {
                    Some(record) => saw(record.envelope())?,
                    None => return Ok(()),
                },
            }
        }
    }
}

impl FileLayout {
    fn of(layout: OutputLayout) -> Self {
        match layout.stretches.as_slice() {
            [] => Self::Settled(0..0),
            [whole] if layout.last.is_empty() => Self::Settled(whole.clone()),
            _ => Self::Unsettled(layout),
        }
    }
}

/// Records of the ledger, read one by one.
struct RecordStream<'p> {
    reader: Box<dyn RecordReader>,
    /// The ones that are left.
    places: &'p [RecordPlace],
}

impl<'p> RecordStream<'p> {
    fn open(store: &dyn RunStore, places: &'p [RecordPlace]) -> Result<Self, Problem> {
        Ok(Self { reader: store.reader()?, places })
    }

    /// The row number of the next record.
    fn next(&self) -> Option<u64> {
        self.places.first().map(|place| place.number)
    }

    fn take(&mut self) -> Result<Option<RowRecord>, Problem> {
        let Some((place, rest)) = self.places.split_first() else { return Ok(None) };
        self.places = rest;
        let record = RowRecord::parse(self.reader.read(place.record)?).map_err(|error| {
            Problem::new(ProblemCode::LedgerUnusable, "a record of the ledger cannot be read").cause(error)
        })?;
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures_util::FutureExt;
    use rowmill_core::ports::{EventGroup, LedgerRequirements};
    use rowmill_testkit::{MemoryRunStore, run_header};

    use super::*;

    fn envelope(id: &str, number: u64, result: &str) -> String {
        format!(r#"{{"id":{id},"row_number":{number},"ok":true,"result":"{result}","error":null}}"#)
    }

    /// Writes an output and a ledger, and returns the results gathered from both.
    fn gathered(output: &[String], records: &[(RowId, u64, String)]) -> Vec<String> {
        gathered_with(NewerRecords::default(), output, records)
    }

    fn gathered_with(
        mut newer: NewerRecords,
        output: &[String],
        records: &[(RowId, u64, String)],
    ) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("out.jsonl");
        fs::write(&file, output.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let store: Arc<dyn RunStore> = Arc::new(MemoryRunStore::default());
        let open = store.reopen(run_header("now"), LedgerRequirements::default()).unwrap();
        for (id, number, envelope) in records {
            let line = format!("{{\"event\":\"row_ended\",\"envelope\":{envelope},\"telemetry\":{{}}}}\n");
            let records = [RowRecord::parse(line.into_bytes()).unwrap()];
            let group = EventGroup { records: &records, ..EventGroup::default() };
            let appended = open.ledger.append(open.epoch, group).now_or_never().unwrap().unwrap();
            newer.add(id, *number, appended.records[0]);
        }
        let envelopes = EnvelopeReader::with_newer_records(Some(&file), Some(&store), newer).unwrap();
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.clear();
            envelopes
                .for_each(|line| {
                    let value: serde_json::Value = serde_json::from_slice(line).unwrap();
                    seen.push(format!("{} {}", value["row_number"], value["result"].as_str().unwrap()));
                    Ok(())
                })
                .unwrap();
        }
        seen
    }

    #[test]
    fn records_of_the_ledger_replace_what_the_output_has_of_their_rows_and_stand_in_their_place() {
        let output = [envelope("1", 1, "a"), envelope("2", 2, "old"), envelope("5", 5, "e")];
        let record = |number: u64, result: &str| {
            (RowId::Number(number), number, envelope(&number.to_string(), number, result))
        };
        let records = [record(4, "d"), record(2, "older"), record(7, "g"), record(2, "new")];
        assert_eq!(gathered(&output, &records), ["1 a", "2 new", "4 d", "5 e", "7 g"]);
    }

    #[test]
    fn rows_with_names_are_known_by_them_wherever_they_stand() {
        let output = [envelope("\"x\"", 1, "old"), envelope("\"y\"", 2, "b"), envelope("\"x\"", 1, "newer")];
        let record = (RowId::Text("x".into()), 3, envelope("\"x\"", 3, "moved"));
        assert_eq!(gathered(&output, &[]), ["1 newer", "2 b"]);
        assert_eq!(gathered(&output, &[record]), ["2 b", "3 moved"]);
    }

    #[test]
    fn rows_that_are_known_by_their_numbers_are_taken_once_whatever_ids_they_have() {
        let output = [envelope("\"x\"", 1, "a"), envelope("\"y\"", 2, "old"), envelope("1", 1, "newer")];
        let record = (RowId::Number(2), 2, envelope("2", 2, "new"));
        assert_eq!(gathered_with(NewerRecords::by_row_number(), &output, &[record]), ["1 newer", "2 new"]);
    }

    #[test]
    fn what_is_added_later_is_not_seen_and_a_torn_line_is_left_out() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("out.jsonl");
        fs::write(&file, format!("{}\n{{\"id\":2,", envelope("1", 1, "a"))).unwrap();
        let envelopes =
            EnvelopeReader::with_newer_records(Some(&file), None, NewerRecords::default()).unwrap();
        fs::write(&file, format!("{}\n{}\n", envelope("1", 1, "a"), envelope("2", 2, "b"))).unwrap();
        let mut lines = 0;
        envelopes
            .for_each(|_| {
                lines += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(lines, 1);
    }
}
