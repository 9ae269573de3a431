//! Datasets that violate their contract.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rowmill_core::ports::{
    ColumnKind, Dataset, DatasetColumn, InputIdentity, InputReadProgress, ReadLimit, RequestedDatasetPart,
    RowSource,
};
use rowmill_testkit::FakeDataset;
use rowmill_testkit::conformance::{DatasetFacts, RowNumbering, check_dataset};
use rowmill_types::{
    BadRow, DiagnosticText, FieldSpan, Problem, ProblemCode, Row, RowErrorKind, RowReadResult,
};

use super::assert_reported;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    // What it reports about itself.
    ShiftsIdentity,
    Miscounts,
    DeclaresTooLittle,
    DeclaresTwice,
    DeclaresOther,
    HasNoId,
    HasIdTwice,
    CallsNumbersText,
    PanicsAtNotice,
    // Its rows.
    CannotOpen,
    BeginsAtZero,
    GoesBack,
    HasGaps,
    HasOtherFields,
    HasNoObject,
    BadWithoutWords,
    LosesBad,
    // Its reads.
    CannotRead,
    GivesTooMany,
    IgnoresBytes,
    GivesNone,
    ClearsBatch,
    EndsEarly,
    NeverEnds,
    EndIsProblem,
    PositionGoesBack,
    PositionFallsShort,
    // Reading again.
    Dwindles,
    SharesItsPlace,
    // Skipping.
    SkipLies,
    SkipForgetsBad,
    SkipTakesOneMore,
    SkipPromisesAll,
    // Parts.
    PartCannotOpen,
    PartLosesRow,
    PartRenumbers,
    PartAddsRow,
    PartRepeats,
    PartTurnsAround,
    PartChanges,
    PartSpoils,
    PartForgetsCondition,
}

#[derive(Debug)]
struct Broken {
    manner: Manner,
    opened: AtomicUsize,
    asked: AtomicU64,
    place: Arc<AtomicUsize>,
}

fn problem(message: &str) -> Problem {
    Problem::new(ProblemCode::InputUnreadable, message)
}

fn bad(number: u64, message: &str) -> RowReadResult {
    Err(BadRow { number, kind: RowErrorKind::InvalidRow, message: message.to_owned() })
}

fn good(number: u64) -> RowReadResult {
    Row::parse(number, format!("{{\"id\":\"r{number}\",\"n\":{number},\"w\":\"ü\"}}"))
}

impl Broken {
    fn rows(&self) -> Vec<RowReadResult> {
        let mut rows: Vec<RowReadResult> = (1..=20).map(good).collect();
        rows[1] = bad(2, if self.manner == Manner::BadWithoutWords { "" } else { "not a row" });
        match self.manner {
            Manner::BeginsAtZero => rows[0] = good(0),
            Manner::GoesBack => rows[9] = good(3),
            Manner::HasGaps => drop(rows.remove(4)),
            Manner::HasOtherFields => {
                rows[2] = Ok(Row::from_parts(
                    3,
                    "{\"n\":3}".to_owned(),
                    vec![FieldSpan::with_plain_name(2..3, 0..1)],
                ));
            }
            Manner::HasNoObject => rows[2] = Ok(Row::from_parts(3, "[3]".to_owned(), Vec::new())),
            Manner::LosesBad => drop(rows.remove(1)),
            Manner::HasNoId => rows[3] = Row::parse(4, "{\"n\":4,\"w\":\"ü\"}".to_owned()),
            Manner::HasIdTwice => rows[3] = Row::parse(4, "{\"id\":\"r1\",\"n\":4,\"w\":\"ü\"}".to_owned()),
            Manner::Dwindles if self.opened.load(Ordering::SeqCst) > 1 => drop(rows.pop()),
            _ => {}
        }
        rows
    }

    fn source(&self, rows: Vec<RowReadResult>) -> Box<dyn RowSource> {
        let place = if self.manner == Manner::SharesItsPlace { self.place.clone() } else { Arc::default() };
        place.store(0, Ordering::SeqCst);
        Box::new(Source { manner: self.manner, rows, place })
    }
}

impl Dataset for Broken {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        match self.manner {
            Manner::CannotOpen => Err(problem("no such file")),
            _ => Ok(self.source(self.rows())),
        }
    }

    fn is_rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let size = (self.manner == Manner::ShiftsIdentity).then_some(asked);
        Ok(InputIdentity { path: "broken".to_owned(), size, probe: None })
    }

    fn open_part(&self, part: &RequestedDatasetPart) -> Result<Box<dyn RowSource>, Problem> {
        let mut rows = self.rows();
        match self.manner {
            Manner::PartCannotOpen => return Err(problem("no parts")),
            Manner::PartLosesRow => drop(rows.remove(5)),
            Manner::PartRenumbers => rows = (1..=20).map(|number| good(number + 100)).collect(),
            Manner::PartAddsRow => rows.push(good(21)),
            Manner::PartRepeats => rows.push(good(20)),
            Manner::PartTurnsAround => rows.reverse(),
            Manner::PartChanges => rows[5] = Row::parse(6, "{\"id\":\"r6\",\"n\":66,\"w\":\"ü\"}".to_owned()),
            Manner::PartSpoils => rows[5] = bad(6, "spoilt"),
            Manner::PartForgetsCondition if !part.conditions.is_empty() => rows.clear(),
            _ => {}
        }
        Ok(self.source(rows))
    }

    fn count(&self) -> Result<Option<u64>, Problem> {
        let count = if self.manner == Manner::Miscounts { 7 } else { self.rows().len() as u64 };
        Ok(Some(count))
    }

    fn columns(&self) -> Result<Option<Vec<DatasetColumn>>, Problem> {
        let column = |name: &str, kind| DatasetColumn { name: name.to_owned(), kind };
        let mut columns = vec![
            column("id", ColumnKind::Text),
            column("n", ColumnKind::Integer),
            column("w", ColumnKind::Mixed),
        ];
        match self.manner {
            Manner::DeclaresTooLittle => drop(columns.pop()),
            Manner::DeclaresTwice => columns.push(column("n", ColumnKind::Real)),
            Manner::DeclaresOther => columns[1].kind = ColumnKind::Boolean,
            _ => {}
        }
        Ok(Some(columns))
    }

    fn default_id_field(&self) -> Option<&str> {
        Some("id")
    }

    fn read_notice(&self) -> Option<DiagnosticText> {
        assert!(self.manner != Manner::PanicsAtNotice, "nothing to say");
        None
    }

    fn is_untyped(&self) -> bool {
        self.manner == Manner::CallsNumbersText
    }
}

struct Source {
    manner: Manner,
    rows: Vec<RowReadResult>,
    place: Arc<AtomicUsize>,
}

impl Source {
    fn at(&self) -> usize {
        self.place.load(Ordering::SeqCst)
    }
}

impl RowSource for Source {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let ended = self.at() >= self.rows.len();
        match self.manner {
            Manner::CannotRead => return Err(problem("the disk is gone")),
            Manner::EndIsProblem if ended => return Err(problem("over")),
            Manner::NeverEnds if ended => {
                // The end itself is reported once.
                let first = self.place.fetch_add(1, Ordering::SeqCst) == self.rows.len();
                return Ok(!first);
            }
            Manner::GivesNone if self.at() == 0 && room.rows == 3 => return Ok(true),
            Manner::ClearsBatch => batch.clear(),
            _ => {}
        }
        let (mut rows, mut bytes) = (0, 0);
        let most = if self.manner == Manner::GivesTooMany { room.rows.saturating_add(1) } else { room.rows };
        while let Some(row) = self.rows.get(self.at()) {
            bytes += row.as_ref().map_or(0, |row| row.json_text().len());
            batch.push(row.clone());
            self.place.fetch_add(1, Ordering::SeqCst);
            rows += 1;
            if rows >= most || (bytes >= room.bytes && self.manner != Manner::IgnoresBytes) {
                return Ok(self.manner != Manner::EndsEarly);
            }
        }
        Ok(false)
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        let count = usize::try_from(rows).unwrap_or(usize::MAX);
        let passed = count.min(self.rows.len().saturating_sub(self.at()));
        let over = self.rows.get(self.at()..self.at() + passed).unwrap_or_default();
        let bad = over.iter().filter(|row| row.is_err()).count();
        let extra = usize::from(self.manner == Manner::SkipTakesOneMore);
        self.place.fetch_add(passed + extra, Ordering::SeqCst);
        Ok(match self.manner {
            Manner::SkipLies => 0,
            Manner::SkipForgetsBad => (passed - bad) as u64,
            Manner::SkipPromisesAll => rows,
            _ => passed as u64,
        })
    }

    fn position(&self) -> InputReadProgress {
        let at = self.at().min(self.rows.len()) as u64;
        let total = self.rows.len() as u64;
        let read = match self.manner {
            Manner::PositionGoesBack => total - at,
            Manner::PositionFallsShort => at / 2,
            _ => at,
        };
        let total = (self.manner != Manner::PositionGoesBack).then_some(total);
        InputReadProgress { read, total }
    }
}

fn found(manner: Manner) -> Vec<String> {
    let numbering = match manner {
        Manner::BeginsAtZero | Manner::GoesBack | Manner::LosesBad => RowNumbering::Growing,
        _ => RowNumbering::FromOne,
    };
    let facts = DatasetFacts { rows: Some(20), bad: Some(vec![2]), numbering, ..DatasetFacts::default() };
    let opened = AtomicUsize::new(0);
    check_dataset(&Broken { manner, opened, asked: AtomicU64::new(0), place: Arc::default() }, &facts)
}

#[test]
fn what_a_dataset_tells_of_itself_is_checked() {
    for (manner, expected) in [
        (Manner::Right, ""),
        (Manner::ShiftsIdentity, "what the input is: it is reported as "),
        (Manner::Miscounts, "counting rows: 7 rows are reported, and 20 were read"),
        (Manner::DeclaresTooLittle, "columns: row 1 has `w`, which is not declared"),
        (Manner::DeclaresTwice, "columns: `n` is declared twice"),
        (Manner::DeclaresOther, "columns: `n` is declared as Boolean, and row 1 has 1"),
        (Manner::HasNoId, "the field that names rows: row 4 has no `id`"),
        (Manner::HasIdTwice, "the field that names rows: two rows have \"r1\" as their `id`"),
        (Manner::CallsNumbersText, "values without types: all values are declared as text, and one is 1"),
        (Manner::PanicsAtNotice, "a notice: it panicked: nothing to say"),
    ] {
        assert_reported(&manner, &found(manner), expected);
    }
}

#[test]
fn the_rows_of_a_dataset_and_their_reads_are_checked() {
    for (manner, expected) in [
        (Manner::CannotOpen, "reading everything: it cannot be opened: no such file"),
        (Manner::BeginsAtZero, "row numbers: 0 comes after 0"),
        (Manner::GoesBack, "row numbers: 3 comes after 9"),
        (Manner::HasGaps, "row numbers: 6 comes after 4"),
        (Manner::HasOtherFields, "the rows: the fields of row 3 are not those of its text"),
        (Manner::HasNoObject, "the rows: row 3 is no JSON object: "),
        (Manner::BadWithoutWords, "the rows: the bad row 2 says nothing"),
        (Manner::LosesBad, "what the author knows of the rows: 19 rows were read instead of 20"),
        (Manner::CannotRead, "reading everything: it cannot be read: the disk is gone"),
        (Manner::GivesTooMany, "reading everything: a read with room for 7 rows appended 8"),
        (Manner::IgnoresBytes, "reading one byte at a time: a read with room for 1 bytes went on after "),
        (
            Manner::GivesNone,
            "reading a few rows at a time: a read appended no row and reported that there is more",
        ),
        (Manner::ClearsBatch, "reading everything: a read changed the rows that were in the batch before it"),
        (Manner::EndsEarly, "after the end: a read reported that the input has ended, and then row 8 came"),
        (Manner::NeverEnds, "after the end: a read after the end reported that there is more"),
        (Manner::EndIsProblem, "after the end: the end is a problem: over"),
        (Manner::PositionGoesBack, "how far a read has come: it goes back from 20 to 13"),
        (Manner::PositionFallsShort, "how far a read has come: it is 10 of 20 at the end"),
        (Manner::Dwindles, "reading one row at a time: 19 rows came instead of 20"),
        (Manner::SharesItsPlace, "two reads at the same time: row 3 "),
        (Manner::SkipLies, "passing over 1 of 20 rows: `skip(1)` says 0 instead of 1"),
        (Manner::SkipForgetsBad, "passing over 10 of 20 rows: `skip(10)` says 9 instead of 10"),
        (Manner::SkipTakesOneMore, "passing over 1 of 20 rows: row 3 "),
        (Manner::SkipPromisesAll, "passing over more rows than there are: `skip(25)` says 25 instead of 20"),
    ] {
        assert_reported(&manner, &found(manner), expected);
    }
}

#[test]
fn the_parts_of_a_dataset_are_checked() {
    for (manner, expected) in [
        (Manner::PartCannotOpen, "a part with everything: it cannot be opened: no parts"),
        (Manner::PartLosesRow, "a part with everything: row 6 is missing"),
        (Manner::PartRenumbers, "a part without columns: it has a row 101, and the whole has none"),
        (Manner::PartAddsRow, "a part with everything: it has a row 21, and the whole has none"),
        (Manner::PartRepeats, "a part with everything: a row number comes twice"),
        (Manner::PartTurnsAround, "a part with everything: its rows are not in the order of the whole"),
        (Manner::PartChanges, "a part with the column `n`: row 6 has 66 as its `n` and 6 in the whole"),
        (Manner::PartSpoils, "a part with the column `w`: row 6 is bad: spoilt"),
        (Manner::PartForgetsCondition, "a part where `n` is AtLeast Integer("),
    ] {
        assert_reported(&manner, &found(manner), expected);
    }
}

#[test]
fn a_dataset_that_can_be_read_once_is_opened_once() {
    let dataset = FakeDataset::from_texts(["{\"a\":1}", "nope", "{\"a\":\"ü\"}"]).openable_once();
    let facts = DatasetFacts { rows: Some(3), bad: Some(vec![2]), ..DatasetFacts::default() };
    assert_reported(&dataset, &check_dataset(&dataset, &facts), "");
    assert_eq!(dataset.open_count(), 1);
}
