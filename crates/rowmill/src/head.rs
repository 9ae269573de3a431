//! A preview of the first rows of an input, and of the prompts that a template renders from them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rowmill_core::ports::{ColumnKind, Dataset, DatasetColumn, ReadLimit};
use rowmill_core::prompt::PromptTemplate;
use rowmill_data::{
    FetchPurpose, InputFile, InputFormat, InputSpec, local_input_files, open_dataset, spool_input,
};
use rowmill_store::file::WorkFolder;
use rowmill_types::settings::TEMPLATE;
use rowmill_types::{DiagnosticText, Problem, ProblemCode, RowError, RowReadResult};
use serde::Serialize;

use crate::environment::RunEnvironment;
use crate::inputs::{self, InputQueryContext, apply_column_choice, apply_row_query};
use crate::json_kinds::{JsonKind, JsonKindCounts};
use crate::spec::{InputQuery, PromptSource};
use crate::texts::load_one_text;

/// How many rows are read to determine the types of columns.
const LOOKED_AT: usize = 1000;

/// What to preview.
#[derive(Clone)]
pub struct HeadSpec {
    /// Where rows come from.
    pub input: InputSpec,
    /// How many rows to return.
    pub rows: usize,
    /// The template to render for each of them.
    pub prompt: Option<PromptSource>,
    /// The query on the input.
    pub query: InputQuery,
    /// Receives notices about what a query cannot see.
    pub notice: HeadNoticeFn,
    /// Where variables are looked up.
    pub environment: RunEnvironment,
}

impl fmt::Debug for HeadSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HeadSpec")
            .field("input", &self.input)
            .field("query", &self.query)
            .finish_non_exhaustive()
    }
}

/// A callback for notices about what a query cannot see of an input.
pub type HeadNoticeFn = Arc<dyn Fn(DiagnosticText) + Send + Sync>;

/// The preview of an input.
#[derive(Debug)]
pub struct InputHead {
    /// The name of the input.
    pub name: String,
    /// The format, by the name that `--input-format` takes.
    pub format: Option<&'static str>,
    /// The number of files; none for a stream.
    pub files: usize,
    /// The size in bytes, if known.
    pub bytes: Option<u64>,
    /// The number of rows, if known without reading on.
    pub count: Option<u64>,
    /// How many rows were read.
    pub looked_at: u64,
    /// How many of them are bad rows.
    pub bad: u64,
    /// The columns of these rows, in the order in which they first appeared.
    pub columns: Vec<ColumnProfile>,
    /// The first rows.
    pub rows: Vec<HeadRow>,
    /// A notice for the user about how the rows were read.
    pub notice: Option<DiagnosticText>,
}

/// A column, as far as the first rows show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnProfile {
    /// The name.
    pub name: String,
    /// The type that the input declares for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// The kinds of the values.
    pub kinds: JsonKindCounts,
    /// How many of the rows that were read lack the column.
    pub missing: u64,
}

/// One of the first rows.
#[derive(Debug)]
pub struct HeadRow {
    /// The row, or the reason why the record is not a row.
    pub row: RowReadResult,
    /// The prompt that the template renders from it.
    pub prompt: Option<Result<String, RowError>>,
}

/// Reads the first rows of an input.
///
/// # Errors
///
/// The input or the template cannot be read.
pub async fn read_head(mut spec: HeadSpec) -> Result<InputHead, Problem> {
    inputs::bring_input(&mut spec.input.location, FetchPurpose::Rows, &|_| {}, &spec.environment).await?;
    let template = match &spec.prompt {
        None => None,
        Some(PromptSource::Default) => Some(PromptTemplate::default_template()),
        Some(PromptSource::Inline(text)) => Some(PromptTemplate::parse(text.clone())),
        Some(PromptSource::Source(source)) => {
            let text = load_one_text(source, TEMPLATE, &spec.environment).await?;
            Some(PromptTemplate::parse(text))
        }
    };
    let files = local_input_files(&spec.input)?;
    let temp = tempfile::tempdir_in(spec.environment.temp_folder()).map_err(|error| {
        Problem::new(ProblemCode::WriteFailed, "cannot create a temporary folder for the query").cause(error)
    })?;
    let mut input = open_dataset(&spec.input)?;
    if !spec.query.is_empty() {
        if !input.is_rereadable() {
            input = spool_input(&spec.input, temp.path(), WorkFolder::SPOOL)?;
        }
        let narrowing =
            InputQueryContext { temp: temp.path(), warn: &spec.notice, environment: &spec.environment };
        input =
            apply_column_choice(apply_row_query(input, &spec.query, &spec.input, &narrowing)?, &spec.query)?;
    }
    let mut head = head_of_dataset(&*input, spec.rows, template.as_ref())?;
    head.name = spec.input.location.name();
    head.format = match &files {
        Some((_, format)) => Some(format.name()),
        None => spec.input.format.map(|format| format.name()),
    };
    if let Some((list, InputFormat::Documents)) = &files {
        // The size of a folder is that of the files read from it.
        let size = |file: &InputFile| std::fs::metadata(&file.path).map_or(0, |found| found.len());
        head.bytes = Some(list.files.iter().map(size).sum());
    }
    head.files = files.map_or(0, |(list, _)| list.files.len());
    Ok(head)
}

/// Reads the first rows of any dataset.
///
/// # Errors
///
/// The dataset cannot be read.
pub fn head_of_dataset(
    dataset: &dyn Dataset,
    rows: usize,
    template: Option<&PromptTemplate>,
) -> Result<InputHead, Problem> {
    let most = rows.max(LOOKED_AT);
    let types = dataset.sql_types()?.unwrap_or_default();
    let mut columns = SeenColumns::declared(dataset.columns()?.unwrap_or_default(), types);
    let mut source = dataset.open()?;
    let mut count = dataset.count()?;
    let (mut shown, mut batch) = (Vec::new(), Vec::new());
    let (mut looked_at, mut good) = (0, 0);
    let mut more = true;
    while more && looked_at < most {
        more = source.read(&mut batch, ReadLimit { rows: most - looked_at, bytes: 1 << 20 })?;
        for row in batch.drain(..) {
            looked_at += 1;
            if let Ok(row) = &row {
                good += 1;
                columns.add(row);
            }
            if shown.len() < rows {
                let prompt = row.as_ref().ok().and_then(|row| template.map(|template| template.render(row)));
                shown.push(HeadRow { row, prompt });
            }
        }
    }
    if count.is_none() {
        let rest = if more { source.read(&mut batch, ReadLimit { rows: 1, bytes: 1 })? } else { false };
        let ended = !rest && batch.is_empty();
        count = ended.then_some(looked_at as u64);
    }
    Ok(InputHead {
        name: String::new(),
        format: None,
        files: 0,
        bytes: source.position().total,
        count,
        looked_at: looked_at as u64,
        bad: looked_at as u64 - good,
        columns: columns.seen(good),
        rows: shown,
        notice: dataset.read_notice(),
    })
}

/// The columns seen so far, indexed by name.
#[derive(Default)]
struct SeenColumns {
    places: HashMap<String, usize>,
    seen: Vec<ColumnProfile>,
}

impl SeenColumns {
    /// Columns that were declared. An uninformative declared type is replaced by the SQL type.
    fn declared(declared: Vec<DatasetColumn>, types: Vec<String>) -> Self {
        let mut columns = Self::default();
        let mut types = types.into_iter();
        for DatasetColumn { name, kind } in declared {
            let sql_type = types.next().filter(|_| kind == ColumnKind::Mixed);
            columns.places.insert(name.clone(), columns.seen.len());
            columns.seen.push(ColumnProfile {
                name,
                declared: Some(sql_type.unwrap_or_else(|| declared_name(kind))),
                kinds: JsonKindCounts::default(),
                missing: 0,
            });
        }
        columns
    }

    fn add(&mut self, row: &rowmill_types::Row) {
        for (name, json) in row.fields() {
            let place = match self.places.get(name) {
                Some(place) => *place,
                None => {
                    self.places.insert(name.to_owned(), self.seen.len());
                    self.seen.push(ColumnProfile {
                        name: name.to_owned(),
                        declared: None,
                        kinds: JsonKindCounts::default(),
                        missing: 0,
                    });
                    self.seen.len() - 1
                }
            };
            if let Some(column) = self.seen.get_mut(place) {
                column.kinds.add(JsonKind::of_json(json));
            }
        }
    }

    fn seen(mut self, rows: u64) -> Vec<ColumnProfile> {
        for column in &mut self.seen {
            column.missing = rows - column.kinds.all();
        }
        self.seen
    }
}

fn declared_name(kind: ColumnKind) -> String {
    match kind {
        ColumnKind::Text => "text".into(),
        ColumnKind::Integer => "integer".into(),
        ColumnKind::Real => "number".into(),
        ColumnKind::Decimal(digits, after) => format!("decimal({digits},{after})"),
        ColumnKind::Boolean => "boolean".into(),
        ColumnKind::Nested => "list or object".into(),
        ColumnKind::Mixed => "mixed".into(),
    }
}
