//! How the rows of a resumed run are identified: by their ids, or by their numbers if it was started
//! without `--id-field`. If a resume then names the field, it replaces the numbers by ids after the
//! last row has ended, so that until then the run can be killed and resumed like one without ids.

use std::path::Path;
use std::sync::Arc;

use rowmill_core::fingerprint::RunFingerprint;
use rowmill_core::ports::{Dataset, RequestedDatasetPart, RowSource};
use rowmill_core::record::EnvelopeHead;
use rowmill_core::run_header::RunHeader;
use rowmill_core::select::{IdRule, RowSelection};
use rowmill_data::InputLocation;
use rowmill_data::output::{
    NextInputIdFn, OutputFile, RemovedRows, ReorderReport, order_by_input, replace_envelope_ids,
    settle_by_number, settle_output,
};
use rowmill_types::settings::{ACCEPT_CHANGES, ID_FIELD, INPUT, OVERWRITE, REMOVED_ROWS, RESUME};
use rowmill_types::{BadRow, Problem, ProblemCode, RowId, RowReadResult};

use crate::counts::count_phrase;
use crate::inputs::all_rows;
use crate::prepare_input::PreparedInput;
use crate::resume::NewRun;
use crate::row_checks::{READ_LIMIT, check_ids};
use crate::spec::RunSpec;

/// How rows are identified while a run is in progress.
#[derive(Debug)]
pub(crate) enum RowIdentity {
    /// By the ids in their envelopes. If the input can be read again, rows that moved are found in it.
    ById(Option<Box<NumberedInput>>),
    /// By their numbers, whatever ids envelopes have.
    ByNumber(FinalIds),
}

/// The ids of envelopes after the last row has ended.
#[derive(Debug)]
pub(crate) enum FinalIds {
    /// The ids that they have already.
    Same,
    /// Their numbers: a resume that was replacing them by ids was killed, and the ids are no longer
    /// wanted.
    Numbers,
    /// The ids of the input; the run then has this fingerprint.
    OfInput(Box<(NumberedInput, RunFingerprint)>),
}

/// An input that can be read again to look up the ids of its rows.
#[derive(Debug)]
pub(crate) struct NumberedInput {
    /// The fingerprint of the run if rows are identified by their numbers.
    fingerprint: RunFingerprint,
    ids: IdRule,
    /// All rows: rows of an earlier part of the run need ids, too, whatever is selected now.
    rows: Arc<dyn Dataset>,
}

impl NumberedInput {
    /// The input of a resume with an id field; `None` if it is not needed or cannot be read again.
    pub(crate) fn for_resume(
        spec: &RunSpec,
        rows: &PreparedInput,
        by_number: RunFingerprint,
    ) -> Result<Option<Self>, Problem> {
        let can_be_read_again = rows.dataset.is_rereadable() && spec.input.location != InputLocation::Stdin;
        let has_ids = rows.ids.field.is_some();
        if spec.removed_rows == RemovedRows::Drop && !(has_ids && can_be_read_again) {
            return Err(cannot_be_dropped(has_ids));
        }
        if !spec.existing.resumes() || !has_ids || !can_be_read_again {
            return Ok(None);
        }
        let all = all_rows(spec, &rows.dataset)?;
        Ok(Some(Self { fingerprint: by_number, ids: rows.ids.clone(), rows: all }))
    }
}

/// How the rows of a possible earlier run are identified, and the header to continue with.
pub(crate) fn row_identity(
    before: Option<&RunHeader>,
    new: NewRun,
    output: Option<&OutputFile>,
) -> Result<(RowIdentity, RunHeader), Problem> {
    let NewRun { header, input, .. } = new;
    let Some(before) = before else { return Ok((RowIdentity::ById(input.map(Box::new)), header)) };
    let (old, now) = (&before.fingerprint.id_field, &header.fingerprint.id_field);
    let field = match (old, now) {
        (Some(old), Some(now)) if old == now => return Ok((RowIdentity::ById(input.map(Box::new)), header)),
        (None, None) => return Ok((RowIdentity::of_header(before), header)),
        (Some(old), now) => return Err(other_ids(old, now.as_deref())),
        (None, now) => now.as_deref().unwrap_or_default(),
    };
    let input =
        input.ok_or("its input is a stream, which cannot be read again for its ids").and_then(|input| {
            match reason_against(&before.fingerprint, &input.fingerprint) {
                Some(reason) => Err(reason),
                None if output.is_none() => {
                    Err("ids can no longer be added to what was written to standard output")
                }
                None => Ok(input),
            }
        });
    let input = input.map_err(|reason| cannot_be_added(field, reason))?;
    check_ids(&*input.rows, &input.ids, &RowSelection::default(), None)?;
    let fingerprint = input.fingerprint.clone();
    let at_end = FinalIds::OfInput(Box::new((input, header.fingerprint)));
    Ok((RowIdentity::ByNumber(at_end), RunHeader { fingerprint, ..header }))
}

/// Why rows with these numbers may not be the same rows.
fn reason_against(before: &RunFingerprint, now: &RunFingerprint) -> Option<&'static str> {
    if before.input.path != now.input.path {
        Some("the input is a different one")
    } else if before.input != now.input {
        Some("the content of the input has changed since")
    } else if before.query != now.query {
        Some("the query is a different one")
    } else {
        None
    }
}

fn cannot_be_added(field: &str, reason: &str) -> Problem {
    let message = format!(
        "{id_field} cannot be added: the run to be resumed was started without an id field, so its rows are \
         identified by their numbers, and {reason}",
        id_field = ID_FIELD.with_value(field)
    );
    Problem::new(ProblemCode::ChangedRun, message).hint(format!(
        "omit {ID_FIELD}, or resume with the original input, or start over with {OVERWRITE}; \
         {ACCEPT_CHANGES} does not help here"
    ))
}

/// Why it is unknown which rows are no longer in the input.
fn cannot_be_dropped(has_ids: bool) -> Problem {
    let (message, hint) = if has_ids {
        (
            format!(
                "{removed_rows} needs an input that can be read again, but this one is a stream",
                removed_rows = REMOVED_ROWS.with_value("drop")
            ),
            format!("save the stream to a file and use that as {INPUT}"),
        )
    } else {
        (
            format!(
                "{removed_rows} needs ids: with row numbers, removed rows cannot be detected",
                removed_rows = REMOVED_ROWS.with_value("drop")
            ),
            format!("set the id field with {ID_FIELD}, or omit {REMOVED_ROWS}"),
        )
    };
    Problem::new(ProblemCode::Usage, message).hint(hint)
}

fn other_ids(old: &str, now: Option<&str>) -> Problem {
    let now = now.map_or_else(|| "their numbers".to_owned(), |field| format!("the field `{field}`"));
    let message = format!(
        "rows of the run to be resumed are identified by the field `{old}`; with {now} instead, finished \
         rows could not be matched"
    );
    Problem::new(ProblemCode::ChangedRun, message).hint(format!(
        "use {id_field} as before, or start over with {OVERWRITE}; {ACCEPT_CHANGES} does not help here",
        id_field = ID_FIELD.with_value(old)
    ))
}

impl RowIdentity {
    /// How the rows of an earlier run are identified.
    pub(crate) fn of_header(header: &RunHeader) -> Self {
        if header.fingerprint.id_field.is_some() { Self::ById(None) } else { Self::ByNumber(FinalIds::Same) }
    }

    /// The head of an envelope of the earlier run, with the id that identifies its row.
    pub(crate) fn identify_head(&mut self, head: EnvelopeHead) -> EnvelopeHead {
        let Self::ByNumber(at_end) = self else { return head };
        if matches!(at_end, FinalIds::Same) && head.id != RowId::Number(head.number) {
            *at_end = FinalIds::Numbers;
        }
        head.with_number_as_id()
    }

    /// The ids of rows while the run is in progress, instead of `ids`.
    pub(crate) fn id_rule(&self, ids: IdRule) -> IdRule {
        match self {
            Self::ById(_) => ids,
            Self::ByNumber(_) => IdRule::default(),
        }
    }

    /// Whether rows get ids that they did not have before.
    pub(crate) fn adds_ids(&self) -> bool {
        matches!(self, Self::ByNumber(FinalIds::OfInput(_)))
    }

    /// Settles the output of a run that was resumed, then gives its envelopes their final ids or order.
    /// All of this is repeated whenever the run is resumed, with the same outcome.
    pub(crate) fn settle(
        &self,
        output: &Path,
        header: &RunHeader,
        settling: &SettleContext<'_>,
    ) -> Result<ReorderReport, Problem> {
        match self {
            Self::ById(input) => {
                if !settling.is_settled {
                    settle_output(output)?;
                }
                match input.as_deref().filter(|_| !settling.in_place) {
                    Some(input) => input.order(output, settling),
                    None => Ok(ReorderReport::default()),
                }
            }
            Self::ByNumber(at_end) => {
                if !settling.is_settled {
                    settle_by_number(output)?;
                }
                at_end.put_ids(output, header).map(|()| ReorderReport::default())
            }
        }
    }

    /// The header of the run once its envelopes have their ids and nothing is left in its ledger.
    pub(crate) fn header_at_end(&self, header: &RunHeader) -> RunHeader {
        let mut header = header.clone();
        if let Self::ByNumber(FinalIds::OfInput(of_input)) = self {
            header.fingerprint = of_input.1.clone();
        }
        header
    }
}

/// What is known about an output that is to be settled.
#[derive(Debug)]
pub(crate) struct SettleContext<'a> {
    /// Whether it is settled already.
    pub(crate) is_settled: bool,
    /// Whether every row has the same number in the input as in its envelope.
    pub(crate) in_place: bool,
    /// The minimum number of input rows that have an envelope.
    pub(crate) expected_rows: u64,
    /// How to handle envelopes whose rows are gone.
    pub(crate) removed: RemovedRows,
    /// The folder for temporary files.
    pub(crate) folder: &'a Path,
}

impl NumberedInput {
    /// Sorts a settled output into the order of the input.
    fn order(&self, output: &Path, settling: &SettleContext<'_>) -> Result<ReorderReport, Problem> {
        let open = || -> Result<NextInputIdFn<'static>, Problem> {
            let mut reader = InputIdReader::open(self)?;
            Ok(Box::new(move || reader.next_row()))
        };
        let order = order_by_input(output, &open, settling.removed, settling.folder)?;
        if order.found_rows < settling.expected_rows {
            let rows = count_phrase(settling.expected_rows - order.found_rows, "row");
            let message = format!("`{}` lacks {rows} that it should have", output.display());
            return Err(Problem::new(ProblemCode::OutputUnusable, message).hint(format!(
                "the input changed during the run, or different ids were confused; run the same command with \
                 {RESUME} to send the missing rows"
            )));
        }
        Ok(order)
    }
}

impl FinalIds {
    /// Replaces the ids in the envelopes of a settled output.
    fn put_ids(&self, output: &Path, header: &RunHeader) -> Result<(), Problem> {
        match self {
            Self::Same => Ok(()),
            Self::Numbers => replace_envelope_ids(output, |number| Ok(RowId::Number(number))),
            Self::OfInput(of_input) => {
                let (input, _) = &**of_input;
                if input.rows.identity()? != header.fingerprint.input {
                    let field = input.ids.field.as_deref().unwrap_or_default();
                    return Err(cannot_be_added(field, "the content of the input has changed since"));
                }
                let mut ids = InputIdReader::open(input)?;
                replace_envelope_ids(output, |number| ids.id_of(number))
            }
        }
    }
}

/// Looks up the ids of rows, in the order of their numbers, while it reads the input once.
struct InputIdReader {
    ids: IdRule,
    source: Box<dyn RowSource>,
    rows: std::vec::IntoIter<RowReadResult>,
    /// A row that was read but not requested yet, with its number.
    waiting: Option<(u64, RowId)>,
    has_more: bool,
}

impl InputIdReader {
    fn open(input: &NumberedInput) -> Result<Self, Problem> {
        let columns = input.ids.field.as_deref().map(|field| vec![field.to_owned()]);
        let source = input.rows.open_part(&RequestedDatasetPart { columns, conditions: Vec::new() })?;
        let rows = Vec::new().into_iter();
        Ok(Self { ids: input.ids.clone(), source, rows, waiting: None, has_more: true })
    }

    /// The id of a row; its number if the row has none.
    fn id_of(&mut self, number: u64) -> Result<RowId, Problem> {
        loop {
            match self.waiting.take() {
                Some((at, id)) if at == number => return Ok(id),
                Some((at, id)) if at > number => {
                    self.waiting = Some((at, id));
                    return Ok(RowId::Number(number));
                }
                _ => {}
            }
            self.waiting = self.next_row()?;
            if self.waiting.is_none() {
                return Ok(RowId::Number(number));
            }
        }
    }

    fn next_row(&mut self) -> Result<Option<(u64, RowId)>, Problem> {
        loop {
            match self.rows.next() {
                Some(Ok(row)) => {
                    let number = row.number();
                    return Ok(Some((number, self.ids.row_id(&row).unwrap_or(RowId::Number(number)))));
                }
                Some(Err(BadRow { number, .. })) => return Ok(Some((number, RowId::Number(number)))),
                None if !self.has_more => return Ok(None),
                None => {
                    let mut rows = Vec::new();
                    self.has_more = self.source.read(&mut rows, READ_LIMIT)?;
                    self.rows = rows.into_iter();
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "row_identity_tests.rs"]
mod tests;
