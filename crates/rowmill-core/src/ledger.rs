//! The events of a ledger as lines of JSON: writing and parsing.
//!
//! Events are an open set. A reader skips unknown events, unless they are marked with `"required":true`.

use std::ops::Range;

use rowmill_types::RowId;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::agent::StepEvent;
use crate::limits::Spend;
use crate::ports::{
    AnswerKey, EventGroup, LedgerExtensionEvent, NamedRow, ParkedRow, RowStepEvent, RunEpoch,
};
use crate::record::{EnvelopeHead, IdField};

/// A parsed event of a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerEvent {
    /// Rows were about to be sent.
    Taken(Vec<NamedRow>),
    /// Rows were released unsent.
    Released(Vec<NamedRow>),
    /// An upper bound of the run's spending, from when the event was appended until the next such event.
    SpentAtMost(Spend),
    /// A step event of a row that is still being worked on: its number and its id. [`RowStepEvent::parse`] reads the
    /// details.
    Turn(u64, RowId),
    /// A row waits for something outside of the process.
    Parked(ParkedRow),
    /// A row ended.
    Ended(EnvelopeHead),
    /// Any other event, for readers that know its kind.
    Note(LedgerExtensionEvent),
}

/// Writes all events of a group, one per line; returns the ranges of the records in `out`.
pub fn write_event_group(group: &EventGroup<'_>, out: &mut Vec<u8>) -> Vec<Range<usize>> {
    let mut records = Vec::with_capacity(group.records.len());
    for record in group.records {
        let start = out.len();
        out.extend_from_slice(&record.line);
        records.push(start..out.len());
    }
    group.turns.iter().for_each(|turn| turn.write(out));
    group.parked.iter().for_each(|parked| write_parked(parked, out));
    group.notes.iter().for_each(|note| write_note(note, out));
    // After the records: a kill in the middle of the write then loses no answer in favour of rows that were not sent
    // yet.
    write_rows("rows_released", group.released, out);
    if let Some(spent) = group.spent_at_most {
        write_cover(spent, out);
    }
    write_rows("rows_taken", group.taken, out);
    records
}

fn write_rows(event: &str, rows: &[NamedRow], out: &mut Vec<u8>) {
    if rows.is_empty() {
        return;
    }
    out.extend_from_slice(b"{\"event\":\"");
    out.extend_from_slice(event.as_bytes());
    out.extend_from_slice(b"\",\"rows\":[");
    write_list(rows, out, |row, out| out.extend_from_slice(row.number.to_string().as_bytes()));
    // Numbers are sufficient if rows have no other ids.
    if rows.iter().any(|row| row.id != RowId::Number(row.number)) {
        out.extend_from_slice(b"],\"ids\":[");
        write_list(rows, out, |row, out| row.id.write_json(out));
    }
    out.extend_from_slice(b"]}\n");
}

fn write_list(rows: &[NamedRow], out: &mut Vec<u8>, write: impl Fn(&NamedRow, &mut Vec<u8>)) {
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(row, out);
    }
}

fn write_cover(spent: Spend, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"event\":\"spent_at_most\",\"spent\":");
    let written = serde_json::to_writer(&mut *out, &spent);
    debug_assert!(written.is_ok(), "two numbers are always JSON");
    out.extend_from_slice(b"}\n");
}

fn write_parked(parked: &ParkedRow, out: &mut Vec<u8>) {
    // A version that does not know parked rows would send them again.
    out.extend_from_slice(b"{\"event\":\"row_parked\",\"required\":true,\"row\":");
    out.extend_from_slice(parked.row.to_string().as_bytes());
    out.extend_from_slice(b",\"id\":");
    parked.id.write_json(out);
    out.extend_from_slice(b",\"waits_for\":");
    let written = serde_json::to_writer(&mut *out, &parked.waits_for);
    debug_assert!(written.is_ok(), "texts are always JSON");
    if let Some(RunEpoch(epoch)) = parked.failed_before {
        out.extend_from_slice(format!(",\"failed_before\":{epoch}").as_bytes());
    }
    out.extend_from_slice(b"}\n");
}

fn write_note(note: &LedgerExtensionEvent, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"event\":");
    write_text(&note.kind, out);
    if note.required {
        out.extend_from_slice(b",\"required\":true");
    }
    out.extend_from_slice(b",\"data\":");
    out.extend_from_slice(note.data.as_bytes());
    out.extend_from_slice(b"}\n");
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(&mut *out, text);
    debug_assert!(written.is_ok(), "a text is always JSON");
}

impl RowStepEvent {
    /// Writes the event, including a newline.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"event\":\"turn\",\"row\":");
        out.extend_from_slice(self.row.to_string().as_bytes());
        out.extend_from_slice(b",\"id\":");
        self.id.write_json(out);
        out.extend_from_slice(format!(",\"asked\":\"{:032x}\"", self.answer_key.0).as_bytes());
        out.extend_from_slice(b",\"happening\":");
        out.extend_from_slice(&self.step_event);
        out.extend_from_slice(b"}\n");
    }

    /// Parses the step event, with the key of the row's request.
    ///
    /// # Errors
    ///
    /// The line is not such an event.
    pub fn parse(line: &[u8]) -> Result<(AnswerKey, StepEvent), String> {
        #[derive(Deserialize)]
        struct EventFields<'a> {
            asked: &'a str,
            #[serde(borrow)]
            #[serde(rename = "happening")]
            step_event: &'a RawValue,
        }
        let fields: EventFields<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let asked = u128::from_str_radix(fields.asked, 16).map_err(|error| error.to_string())?;
        Ok((AnswerKey(asked), StepEvent::parse(fields.step_event.get().as_bytes())?))
    }
}

#[derive(Deserialize)]
struct EventFields<'a> {
    event: std::borrow::Cow<'a, str>,
    #[serde(default)]
    required: bool,
    #[serde(borrow)]
    envelope: Option<&'a RawValue>,
    rows: Option<Vec<u64>>,
    ids: Option<Vec<IdField>>,
    row: Option<u64>,
    id: Option<IdField>,
    waits_for: Option<Vec<String>>,
    failed_before: Option<RunEpoch>,
    spent: Option<Spend>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

impl LedgerEvent {
    /// Parses an event.
    ///
    /// # Errors
    ///
    /// The message says what is wrong with the line.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let mut fields: EventFields<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        match &*fields.event {
            "row_ended" => {
                let envelope = fields.envelope.ok_or("an ended row without an envelope")?;
                let head = EnvelopeHead::parse(envelope.get().as_bytes());
                head.map(Self::Ended).map_err(|error| error.to_string())
            }
            "rows_taken" => fields.named_rows().map(Self::Taken),
            "rows_released" => fields.named_rows().map(Self::Released),
            "spent_at_most" => fields.spent.map(Self::SpentAtMost).ok_or_else(|| "no `spent`".into()),
            "turn" => {
                let (row, id) = fields.named_row()?;
                Ok(Self::Turn(row, id))
            }
            "row_parked" => {
                let (row, id) = fields.named_row()?;
                let waits_for = fields.waits_for.ok_or("no `waits_for`")?;
                let failed_before = fields.failed_before;
                Ok(Self::Parked(ParkedRow { row, id, waits_for, failed_before }))
            }
            kind => Ok(Self::Note(LedgerExtensionEvent {
                kind: kind.to_owned(),
                required: fields.required,
                data: fields.data.map_or("null", RawValue::get).to_owned(),
            })),
        }
    }
}

impl EventFields<'_> {
    fn named_row(&mut self) -> Result<(u64, RowId), String> {
        match (self.row, self.id.take()) {
            (Some(row), Some(IdField(id))) => Ok((row, id)),
            _ => Err("no `row` or no `id`".into()),
        }
    }

    fn named_rows(self) -> Result<Vec<NamedRow>, String> {
        let rows = self.rows.ok_or("no `rows`")?;
        let Some(ids) = self.ids else {
            let by_number = |number| NamedRow { number, id: RowId::Number(number) };
            return Ok(rows.into_iter().map(by_number).collect());
        };
        if ids.len() != rows.len() {
            return Err("not as many `ids` as `rows`".into());
        }
        let named = |(number, IdField(id))| NamedRow { number, id };
        Ok(rows.into_iter().zip(ids).map(named).collect())
    }
}

#[cfg(test)]
mod tests {
    use rowmill_types::Money;

    use super::*;
    use crate::record::RowRecord;

    fn ended() -> RowRecord {
        let line = br#"{"event":"row_ended","envelope":{"id":4,"row_number":4,"ok":true},"telemetry":{}}"#;
        RowRecord::parse([line.as_slice(), b"\n"].concat()).unwrap()
    }

    #[test]
    fn a_group_is_read_back_as_it_was_written_and_records_stand_where_it_says() {
        let id = RowId::Text("fü\"nf".into());
        let turns =
            [RowStepEvent { row: 5, id: id.clone(), answer_key: AnswerKey(7), step_event: b"{}".to_vec() }];
        let parked = [None, Some(RunEpoch(3))].map(|failed_before| ParkedRow {
            row: 6,
            id: RowId::Number(6),
            waits_for: vec!["job \"1\"".into()],
            failed_before,
        });
        let note = LedgerExtensionEvent {
            kind: "job_submitted".into(),
            required: true,
            data: r#"{"job":"b"}"#.into(),
        };
        let spent = Spend { cost: Money::from_dollars(0.25).unwrap(), tokens: 7 };
        let named = |number, id: &str| NamedRow { number, id: RowId::Text(id.into()) };
        let taken = [named(4, "4"), named(5, "fü\"nf"), NamedRow { number: 6, id: RowId::Number(6) }];
        let released = [NamedRow { number: 9, id: RowId::Number(9) }];
        let group = EventGroup {
            taken: &taken,
            records: &[ended(), ended()],
            turns: &turns,
            parked: &parked,
            released: &released,
            spent_at_most: Some(spent),
            notes: std::slice::from_ref(&note),
        };
        let mut out = b"before\n".to_vec();
        let records = write_event_group(&group, &mut out);
        assert!(records.iter().all(|range| out[range.clone()] == ended().line));
        let lines = out.split_inclusive(|byte| *byte == b'\n').skip(1);
        let events: Vec<_> = lines.map(|line| LedgerEvent::parse(line).unwrap()).collect();
        let [LedgerEvent::Ended(first), LedgerEvent::Ended(_), rest @ ..] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert_eq!(first.number, 4);
        assert_eq!(
            rest,
            [
                LedgerEvent::Turn(5, id),
                LedgerEvent::Parked(parked[0].clone()),
                LedgerEvent::Parked(parked[1].clone()),
                LedgerEvent::Note(note),
                LedgerEvent::Released(released.to_vec()),
                LedgerEvent::SpentAtMost(spent),
                LedgerEvent::Taken(taken.to_vec()),
            ]
        );
    }

    #[test]
    fn an_event_of_a_later_version_is_a_note_with_or_without_data() {
        let parse = |line: &str| LedgerEvent::parse(line.as_bytes());
        let note =
            |required, data: &str| LedgerExtensionEvent { kind: "new".into(), required, data: data.into() };
        assert_eq!(parse(r#"{"event":"new","more":[1]}"#), Ok(LedgerEvent::Note(note(false, "null"))));
        assert_eq!(
            parse(r#"{"event":"new","required":true,"data":[1]}"#),
            Ok(LedgerEvent::Note(note(true, "[1]")))
        );
    }

    #[test]
    fn rows_are_named_by_their_numbers_where_they_have_no_other_ids() {
        let rows = [4, 5].map(|number| NamedRow { number, id: RowId::Number(number) });
        let mut out = Vec::new();
        write_event_group(&EventGroup { taken: &rows, ..EventGroup::default() }, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "{\"event\":\"rows_taken\",\"rows\":[4,5]}\n");
    }

    #[test]
    fn a_line_that_is_no_event_is_refused_with_what_is_wrong() {
        for line in [
            "nonsense",
            "{}",
            r#"{"event":"rows_taken"}"#,
            r#"{"event":"rows_taken","rows":[1,2],"ids":["a"]}"#,
            r#"{"event":"turn","row":1}"#,
        ] {
            assert!(LedgerEvent::parse(line.as_bytes()).is_err(), "{line}");
        }
    }
}
