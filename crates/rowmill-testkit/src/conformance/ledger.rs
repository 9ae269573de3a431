//! What every ledger must do.

use rowmill_core::limits::Spend;
use rowmill_core::ports::{AskedKey, Group, Ledger, LedgerReader, Span, TurnLine};
use rowmill_core::record::Record;
use rowmill_types::RowId;

use super::guard::{Checked, Suite, require};
use super::records;

/// The length of a large result.
const LARGE: usize = 1 << 20;

/// A record that was appended, and where it must be.
type Kept = (Span, Vec<u8>);

/// Every way in which `ledger` breaks the contract of the port; empty when it keeps it.
///
/// A record is found where `append` said, byte for byte, as soon as `append` has returned; by a
/// reader that was made before as well as by one that is made afterwards, in any order, and however
/// much is appended meanwhile. The records of a group stand one after the other without a gap, and
/// after those of the groups before. Groups without records, or with nothing at all, are appended as well.
/// Bytes that are not there are an error.
///
/// The ledger should be new, and have room on its disk: a reserve that has to be used is told as a
/// deviation.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use rowmill_core::ports::{Appended, Group, Ledger, LedgerReader, Span};
/// use rowmill_testkit::conformance::check_ledger;
/// use rowmill_types::{Problem, ProblemCode};
///
/// /// Keeps the records of a run in memory.
/// #[derive(Default, Clone)]
/// struct Memory(Arc<Mutex<Vec<u8>>>);
///
/// impl Ledger for Memory {
///     fn append(&mut self, group: Group<'_>) -> Result<Appended, Problem> {
///         let mut bytes = self.0.lock().unwrap();
///         let records = bytes.len() as u64;
///         for record in group.records {
///             bytes.extend_from_slice(&record.line);
///         }
///         Ok(Appended { records, trouble: None })
///     }
///
///     fn reader(&self) -> Result<Box<dyn LedgerReader>, Problem> {
///         Ok(Box::new(self.clone()))
///     }
/// }
///
/// impl LedgerReader for Memory {
///     fn read(&mut self, span: Span) -> Result<Vec<u8>, Problem> {
///         let (start, length) = (span.offset as usize, span.length as usize);
///         let bytes = self.0.lock().unwrap();
///         let found = bytes.get(start..start + length).map(<[u8]>::to_vec);
///         found.ok_or_else(|| Problem::new(ProblemCode::LedgerUnusable, "no such bytes"))
///     }
/// }
///
/// assert_eq!(check_ledger(&mut Memory::default()), Vec::<String>::new());
/// ```
pub fn check_ledger(ledger: &mut dyn Ledger) -> Vec<String> {
    let mut suite = Suite::default();
    let mut kept = Vec::new();
    let mut early = None;
    suite.check("a reader before anything was appended", || {
        early = Some(reader(ledger)?);
        Ok(())
    });
    let Some(mut early) = early else { return suite.deviations() };
    for (what, records) in groups() {
        suite.check(&format!("appending {what}"), || {
            append(ledger, &records, &mut kept)?;
            finds(&mut *early, kept.iter().rev().take(records.len()))
        });
    }
    suite.check("reading everything again, the last first", || finds(&mut *early, kept.iter().rev()));
    suite.check("a reader that is made later", || finds(&mut *reader(ledger)?, kept.iter()));
    suite.check("two readers at the same time", || {
        let mut other = reader(ledger)?;
        kept.iter().try_for_each(|one| {
            finds(&mut *early, [one].into_iter())?;
            finds(&mut *other, [one].into_iter())
        })
    });
    suite.check("reading what is not there", || {
        let span = Span { offset: u64::MAX / 4, length: 10 };
        require(early.read(span).is_err(), || "it gave bytes, and there are none".to_owned())
    });
    suite.deviations()
}

fn groups() -> Vec<(&'static str, Vec<Record>)> {
    let many = (10..60).map(|number| records::ok(number, "one of many")).collect();
    vec![
        ("nothing", Vec::new()),
        ("one record", vec![records::ok(1, "yes")]),
        ("rows that are taken", Vec::new()),
        ("several records", vec![records::ok(2, "größer"), records::failed(3), records::ok(4, "")]),
        ("a large record", vec![records::ok(5, &"x".repeat(LARGE)), records::ok(6, "after it")]),
        ("many records", many),
    ]
}

fn reader(ledger: &dyn Ledger) -> Result<Box<dyn LedgerReader>, String> {
    ledger.reader().map_err(|problem| format!("it cannot be made: {}", problem.message))
}

/// Appends the records with some of everything else; nothing goes with the first group.
fn append(ledger: &mut dyn Ledger, records: &[Record], kept: &mut Vec<Kept>) -> Checked {
    let turn =
        TurnLine { row: 7, id: RowId::Text("seven".into()), asked: AskedKey(7), happening: b"{}".to_vec() };
    let turns = [turn];
    let group = if kept.is_empty() && records.is_empty() {
        Group::default()
    } else {
        Group { taken: &[7, 8, 9], records, turns: &turns, released: &[9], cover: Some(Spend::default()) }
    };
    let appended =
        ledger.append(group).map_err(|problem| format!("it could not be done: {}", problem.message))?;
    let end = kept.last().map_or(0, |(span, _)| span.offset + u64::from(span.length));
    let mut offset = appended.records;
    require(records.is_empty() || offset >= end, || {
        format!("the records are said to be at {offset}, and those before end at {end}")
    })?;
    for Record { line, .. } in records {
        let span = Span { offset, length: u32::try_from(line.len()).unwrap_or(u32::MAX) };
        offset += u64::from(span.length);
        kept.push((span, line.clone()));
    }
    let trouble = appended.trouble.map(|problem| problem.message);
    require(trouble.is_none(), || format!("there is trouble: {}", trouble.unwrap_or_default()))
}

fn finds<'a>(reader: &mut dyn LedgerReader, mut kept: impl Iterator<Item = &'a Kept>) -> Checked {
    kept.try_for_each(|(span, line)| {
        let place = format!("the record at {} with {} bytes", span.offset, span.length);
        let found =
            reader.read(*span).map_err(|problem| format!("{place} is not found: {}", problem.message))?;
        require(found == *line, || format!("{place} is another one"))
    })
}
