//! Checks that an input has the columns that templates and flags name.

use std::sync::Arc;

use rowmill_core::ports::{Dataset, DatasetColumn, InputIdentity, InputReadProgress, ReadLimit, RowSource};

use rowmill_types::{DiagnosticText, Problem, ProblemCode, Row, RowReadResult, Setting, nearest_name};

use super::sample::{SampleEnd, sample_rows};

/// How many names a message lists.
const LISTED: usize = 12;

/// How a list of columns is introduced if all rows were examined, or need not be.
const WHOLE_INPUT: &str = "the input has";

/// A stream is checked only once it delivered this many rows, or ended. It may deliver rows one by one, and
/// no row is held back for the next.
const STREAM_ROWS: usize = 50;

/// Columns without a value are looked for in this many rows; fewer than the minimum are not conclusive.
const LOOKED_AT: usize = 20;
const LEAST_ROWS: usize = 3;

/// A column that a template or a setting names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedColumn {
    /// Its name.
    pub name: String,
    /// What names it, and how: `` the template names `{{x}}` ``.
    pub named_by: DiagnosticText,
}

impl WantedColumn {
    /// A column named by a setting.
    #[must_use]
    pub fn of_setting(setting: Setting, name: &str) -> Self {
        Self { name: name.to_owned(), named_by: format!("{setting} names `{name}`").into() }
    }

    fn is_of_template(&self) -> bool {
        *self == Self::of_template(&self.name)
    }

    /// A column named by a placeholder of the template.
    #[must_use]
    pub fn of_template(name: &str) -> Self {
        Self { name: name.to_owned(), named_by: format!("the template names `{{{{{name}}}}}`").into() }
    }
}

/// Looks for every column in those that the input declares, or in its first rows. A column that only some
/// rows have counts as found; for an input without rows, the check passes.
///
/// # Errors
///
/// None of the examined rows has one of them, or the input cannot be read.
pub fn check_columns(input: &dyn Dataset, wanted: &[WantedColumn]) -> Result<(), Problem> {
    if wanted.is_empty() {
        return Ok(());
    }
    if let Some(declared) = SeenColumns::declared(input)? {
        return declared.check(wanted, WHOLE_INPUT);
    }
    let mut seen = SeenColumns::default();
    let end = sample_rows(input, &mut |row| {
        seen.add(row);
        seen.missing(wanted).is_some()
    })?;
    seen.check(wanted, &place(end))
}

/// How a list of columns is introduced after a sample.
fn place(end: SampleEnd) -> String {
    match end {
        SampleEnd::WholeInput => WHOLE_INPUT.to_owned(),
        SampleEnd::First(rows) => format!("its first {rows} rows have"),
    }
}

/// The columns that the input declares, or those of its first rows, as shown to the user: ``the input has:
/// `id`, `review` ``. `None` if there are none.
///
/// # Errors
///
/// The input cannot be read.
pub fn column_list_text(input: &dyn Dataset) -> Result<Option<String>, Problem> {
    let (seen, place) = match SeenColumns::declared(input)? {
        Some(declared) => (declared, WHOLE_INPUT.to_owned()),
        None => {
            let mut seen = SeenColumns::default();
            let end = sample_rows(input, &mut |row| {
                seen.add(row);
                seen.rows < STREAM_ROWS as u64
            })?;
            (seen, place(end))
        }
    };
    Ok((!seen.names.is_empty()).then(|| format!("{place}: {}", seen.listed())))
}

/// A warning for each column that the template uses and that has no value in the first rows: it exists, so
/// nothing is wrong, but it may be the wrong one.
///
/// # Errors
///
/// The input cannot be read.
pub fn find_empty_columns(input: &dyn Dataset, wanted: &[WantedColumn]) -> Result<Vec<String>, Problem> {
    let mut empty: Vec<&WantedColumn> = wanted.iter().filter(|wanted| wanted.is_of_template()).collect();
    let (mut rows, mut with_values) = (0, Vec::<String>::new());
    if empty.is_empty() {
        return Ok(Vec::new());
    }
    sample_rows(input, &mut |row| {
        rows += 1;
        let values = row.fields().filter(|(_, json)| !is_empty(json));
        let new: Vec<_> = values.map(|(name, _)| name.to_owned()).collect();
        empty.retain(|wanted| !new.contains(&wanted.name));
        with_values.extend(new);
        rows < LOOKED_AT && !empty.is_empty()
    })?;
    with_values.sort_unstable();
    with_values.dedup();
    let text = |wanted: &&WantedColumn| {
        let WantedColumn { name, named_by } = wanted;
        let near = nearest_name(name, with_values.iter().map(String::as_str));
        let listed: Vec<_> = with_values.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
        let other = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("columns with values: {}", listed.join(", ")),
        };
        format!(
            "{}, which is empty in all of the first {rows} rows; {other}",
            named_by.with_mention_markers()
        )
    };
    // One or two rows say little about the others, and if no column has a value, no other can be meant.
    let says_something = rows >= LEAST_ROWS && !with_values.is_empty();
    Ok(empty.iter().filter(|_| says_something).map(text).collect())
}

/// Whether a value inserts nothing into a prompt.
fn is_empty(json: &str) -> bool {
    json == "null" || serde_json::from_str::<String>(json).is_ok_and(|text| text.trim().is_empty())
}

/// A stream whose first rows are checked as they are read: nothing is sent before they are known to have the
/// columns.
#[must_use]
pub fn column_checking_dataset(input: Arc<dyn Dataset>, wanted: Vec<WantedColumn>) -> Arc<dyn Dataset> {
    if wanted.is_empty() { input } else { Arc::new(CheckedStream { input, wanted }) }
}

/// The names that occurred in some rows, in the order of their first occurrence.
#[derive(Debug, Default)]
struct SeenColumns {
    names: Vec<String>,
    rows: u64,
}

impl SeenColumns {
    /// The columns that an input declares without reading its rows.
    fn declared(input: &dyn Dataset) -> Result<Option<Self>, Problem> {
        let declared = input.columns()?;
        let names = |columns: Vec<DatasetColumn>| columns.into_iter().map(|column| column.name).collect();
        Ok(declared.map(|columns| Self { names: names(columns), rows: 1 }))
    }

    fn add(&mut self, row: &Row) {
        self.rows += 1;
        for (name, _) in row.fields() {
            if !self.names.iter().any(|known| known == name) {
                self.names.push(name.to_owned());
            }
        }
    }

    fn missing<'w>(&self, wanted: &'w [WantedColumn]) -> Option<&'w WantedColumn> {
        wanted.iter().find(|wanted| !self.names.contains(&wanted.name))
    }

    fn check(&self, wanted: &[WantedColumn], place: &str) -> Result<(), Problem> {
        let missing = if self.rows == 0 { None } else { self.missing(wanted) };
        let Some(WantedColumn { name, named_by }) = missing else { return Ok(()) };
        let near = nearest_name(name, self.names.iter().map(String::as_str));
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let listed = if self.names.is_empty() { "none".to_owned() } else { self.listed() };
        let message = format!("{}, which no row has", named_by.with_mention_markers());
        Err(Problem::new(ProblemCode::UnknownColumn, message).hint(format!("{near}{place}: {listed}")))
    }

    /// The first names, and the number of the others.
    fn listed(&self) -> String {
        let listed: Vec<_> = self.names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
        let more = match self.names.len() {
            all if all > LISTED => format!(" and {} more", all - LISTED),
            _ => String::new(),
        };
        format!("{}{more}", listed.join(", "))
    }
}

#[derive(Debug)]
struct CheckedStream {
    input: Arc<dyn Dataset>,
    wanted: Vec<WantedColumn>,
}

impl Dataset for CheckedStream {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        let source = self.input.open()?;
        Ok(Box::new(CheckedSource { source, wanted: Some(self.wanted.clone()) }))
    }

    fn is_rereadable(&self) -> bool {
        self.input.is_rereadable()
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        self.input.identity()
    }

    fn read_notice(&self) -> Option<DiagnosticText> {
        self.input.read_notice()
    }

    fn is_untyped(&self) -> bool {
        self.input.is_untyped()
    }
}

struct CheckedSource {
    source: Box<dyn RowSource>,
    /// `None` once the first rows were checked.
    wanted: Option<Vec<WantedColumn>>,
}

impl RowSource for CheckedSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let before = batch.len();
        let more = self.source.read(batch, room)?;
        let Some(wanted) = self.wanted.take() else { return Ok(more) };
        let rows = batch.get(before..).unwrap_or_default();
        if rows.len() >= STREAM_ROWS || !more {
            let mut seen = SeenColumns::default();
            rows.iter().flatten().for_each(|row| seen.add(row));
            let end = if more { SampleEnd::First(rows.len()) } else { SampleEnd::WholeInput };
            seen.check(&wanted, &place(end))?;
        }
        Ok(more)
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        self.source.skip(rows)
    }

    fn damage(&self) -> Option<Problem> {
        self.source.damage()
    }

    fn position(&self) -> InputReadProgress {
        self.source.position()
    }
}
