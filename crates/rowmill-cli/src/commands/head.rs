//! `rowmill head`: shows the first rows of an input, its columns, and rendered prompts.

use std::sync::Arc;

use clap::Args;
use rowmill::results::unfinished_run_of_output;
use rowmill::{
    ColumnProfile, ExitCode, FieldDelimiter, HeadNoticeFn, HeadRow, HeadSpec, InputFormat, InputHead,
    InputLocation, InputQuery, InputSpec, Problem, PromptSource,
};
use rowmill::{JsonKind, ProblemCode};
use serde::Serialize;
use serde_json::value::RawValue;

use super::results::unfinished_lines;
use crate::data_flags::SqlFlags;
use crate::flag_values::{parse_format, parse_u64};
use crate::json_text::{compact_json, indent_json};
use crate::number_text::{count_phrase, group_digits, size_text};
use crate::printer;
use crate::process_environment::process_environment;
use crate::text_layout::{
    CellAlign, TextTable, escape_control, screen_width, truncate_to_width, wrap_to_width,
};
use crate::vocabulary::COMMAND_LINE_VOCABULARY;

/// The maximum number of lines that are shown of a prompt.
const PROMPT_LINES: usize = 20;

/// Show the first rows of an input, its columns, and the prompts that a template makes of them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rowmill head reviews.jsonl\n  \
    rowmill head 'parts/*.csv.gz' -n 20\n  \
    rowmill head reviews.parquet --where \"split = 'eval'\"\n  \
    rowmill head reviews.jsonl --prompt 'Classify: {{review}}'\n\n\
    Column types come from the first 1,000 rows. No calls are made.")]
pub(crate) struct HeadFlags {
    /// Input rows: a file, a glob pattern in quotes, or `-` for standard input.
    #[arg(value_name = "INPUT")]
    input: String,

    /// Number of rows to show.
    #[arg(long, short = 'n', value_name = "N", value_parser = parse_u64, default_value = "5", allow_negative_numbers = true)]
    rows: u64,

    /// Input format, if it cannot be determined from the file name.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    input_format: Option<InputFormat>,

    /// Delimiter of CSV or TSV input: one character, or `tab`; detected from the header by default.
    #[arg(long, value_name = "CHARACTER", value_parser = FieldDelimiter::parse)]
    delimiter: Option<FieldDelimiter>,

    /// Run a single SELECT over the view `input` and show its result.
    #[arg(long, value_name = "QUERY")]
    sql: Option<String>,

    /// Show only rows that satisfy this condition, such as `split = 'eval'`.
    #[arg(long = "where", value_name = "CONDITION", conflicts_with = "sql")]
    condition: Option<String>,

    #[command(flatten)]
    sql_flags: SqlFlags,

    /// Prompt template to try on each row; `{{field}}` and `{{row_json}}` are replaced.
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "template")]
    prompt: Option<String>,

    /// Prompt template file: a path or a `file://`, `http(s)://` or `hf://` URL.
    #[arg(long, value_name = "SOURCE")]
    template: Option<String>,

    /// Print as JSON, with complete values and prompts.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn head(flags: HeadFlags) -> Result<ExitCode, Problem> {
    let prompt = flags.prompt.map(PromptSource::Inline).or(flags.template.map(PromptSource::Source));
    let location = InputLocation::parse(&flags.input)?;
    let output = if let InputLocation::File(path) = &location { Some(path.clone()) } else { None };
    let input = InputSpec { delimiter: flags.delimiter, ..InputSpec::new(location, flags.input_format) };
    flags.sql_flags.check(flags.sql.as_deref(), flags.condition.as_deref())?;
    let query = InputQuery {
        sql: flags.sql,
        condition: flags.condition,
        columns: Vec::new(),
        types: flags.sql_flags.column_types(),
        engine: flags.sql_flags.engine(),
    };
    let notice: HeadNoticeFn = Arc::new(|text| printer::talk(&printer::warning_line(&text)));
    let rows = usize::try_from(flags.rows).unwrap_or(usize::MAX);
    let spec = HeadSpec { input, rows, prompt, query, notice, environment: process_environment().clone() };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::new(ProblemCode::Internal, "cannot start the runtime").cause(error))?;
    // Here the input has no flag.
    let without_flag = |problem: Problem| Problem {
        hint: problem
            .hint
            .map(|hint| hint.render(COMMAND_LINE_VOCABULARY).replace(" given to `--input`", "").into()),
        ..problem
    };
    let head = runtime.block_on(rowmill::read_head(spec)).map_err(without_flag)?;
    let run = output.and_then(|path| unfinished_run_of_output(&path, head.count?));
    let width = screen_width();
    if let Some(run) = run.filter(|_| !flags.json) {
        printer::talk(&unfinished_lines(run, width).join("\n"));
    }
    if let Some(text) = &head.notice {
        printer::talk(&printer::warning_line(text));
    }
    printer::data(&if flags.json { as_json(&head) } else { as_text(&head, width) })?;
    Ok(ExitCode::Ok)
}

fn as_text(head: &InputHead, width: usize) -> String {
    let mut lines = vec![truncate_to_width(&title(head), width)];
    if head.bad > 0 {
        let of = if head.count == Some(head.looked_at) { "" } else { "first " };
        let (bad, all) = (group_digits(head.bad), count_phrase(head.looked_at, "row"));
        lines.push(format!("{bad} of the {of}{all} {} bad", if head.bad == 1 { "is" } else { "are" }));
    }
    if !head.columns.is_empty() {
        lines.push(String::new());
        lines.extend(columns(head).lines(0, width));
    }
    if head.rows.is_empty() {
        return lines.join("\n");
    }
    lines.push(String::new());
    let table = table(head);
    let has_prompts = head.rows.iter().any(|row| row.prompt.is_some());
    if !has_prompts && head.columns.len() > 1 && table.width() <= width {
        lines.extend(table.lines(0, width));
    } else {
        let blocks: Vec<String> = head.rows.iter().map(|row| block(head, row, width)).collect();
        lines.push(blocks.join("\n\n"));
    }
    lines.join("\n")
}

fn title(head: &InputHead) -> String {
    let mut parts = Vec::new();
    parts.extend(head.format.map(str::to_owned));
    if head.files > 1 {
        parts.push(count_phrase(head.files as u64, "file"));
    }
    parts.push(match head.count {
        Some(rows) => count_phrase(rows, "row"),
        None => format!("more than {}", count_phrase(head.looked_at, "row")),
    });
    parts.extend(head.bytes.map(size_text));
    format!("{}: {}", escape_control(&head.name), parts.join(", "))
}

fn columns(head: &InputHead) -> TextTable {
    let mut table = TextTable::new(&[CellAlign::Left, CellAlign::Left, CellAlign::Left]);
    let has_gaps = |column: &ColumnProfile| column.missing + column.kinds.count_of(JsonKind::Null) > 0;
    let empty = if head.columns.iter().any(has_gaps) { "empty" } else { "" };
    table.row(["column", "type", empty]);
    for column in &head.columns {
        let rows = column.kinds.all() + column.missing;
        let kinds: Vec<&str> = column.kinds.kinds().into_iter().map(JsonKind::name).collect();
        let kinds = match &column.declared {
            Some(declared) => declared.clone(),
            None if kinds.is_empty() => "null".into(),
            None => kinds.join(", "),
        };
        let gaps = [(column.kinds.count_of(JsonKind::Null), "null"), (column.missing, "missing")];
        let gaps: Vec<String> = gaps
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", share(*count, rows)))
            .collect();
        table.row([
            truncate_to_width(&escape_control(&column.name), 30),
            truncate_to_width(&kinds, 30),
            gaps.join(", "),
        ]);
    }
    table
}

/// A share of all rows; even one row is shown as more than nothing.
fn share(count: u64, all: u64) -> String {
    let percent = 100.0 * count as f64 / all.max(1) as f64;
    match percent {
        _ if count == all => "100 %".into(),
        ..1.0 => "<1 %".into(),
        99.0.. => ">99 %".into(),
        _ => format!("{percent:.0} %"),
    }
}

/// The rows as a table, if they are narrow enough.
fn table(head: &InputHead) -> TextTable {
    let mut sides = vec![CellAlign::Right];
    sides.extend(head.columns.iter().map(|_| CellAlign::Left));
    let mut table = TextTable::new(&sides);
    table.row(
        std::iter::once("row".to_owned())
            .chain(head.columns.iter().map(|column| escape_control(&column.name))),
    );
    for row in &head.rows {
        match &row.row {
            Ok(row) => {
                let cells = head.columns.iter().map(|column| {
                    row.field(&column.name).map_or(String::new(), |json| cell(head, &column.name, json))
                });
                table.row(std::iter::once(row.number().to_string()).chain(cells));
            }
            Err(bad) => table.spanning(bad.number.to_string(), bad_text(bad.kind.name(), &bad.message)),
        }
    }
    table
}

fn block(head: &InputHead, row: &HeadRow, width: usize) -> String {
    let mut lines = Vec::new();
    match &row.row {
        Ok(row) => {
            lines.push(format!("row {}", row.number()));
            let mut table = TextTable::new(&[CellAlign::Left, CellAlign::Left]);
            for (name, json) in row.fields() {
                table.row([truncate_to_width(&escape_control(name), 30), cell(head, name, json)]);
            }
            lines.extend(table.lines(2, width));
        }
        Err(bad) => {
            lines.push(format!("row {}", bad.number));
            let text = bad_text(bad.kind.name(), &bad.message);
            lines.extend(
                wrap_to_width(&text, width - 2, PROMPT_LINES).0.iter().map(|line| format!("  {line}")),
            );
        }
    }
    match &row.prompt {
        None => {}
        Some(Ok(prompt)) => {
            lines.push("  prompt".into());
            let (shown, rest) = wrap_to_width(prompt, width - 4, PROMPT_LINES);
            lines.extend(shown.iter().map(|line| format!("  | {line}").trim_end().to_owned()));
            if rest > 0 {
                lines.push(format!("  … and {}", count_phrase(rest as u64, "more line")));
            }
        }
        Some(Err(error)) => {
            let text = format!("no prompt: {}: {}", error.kind, error.message);
            lines.extend(
                wrap_to_width(&text, width - 2, PROMPT_LINES).0.iter().map(|line| format!("  {line}")),
            );
        }
    }
    lines.join("\n")
}

fn bad_text(kind: &str, message: &str) -> String {
    escape_control(&format!("bad row: {kind}: {message}"))
}

/// A value of a column. The size of a file is in bytes, which are hard to read, so it is shortened.
fn cell(head: &InputHead, column: &str, json: &str) -> String {
    match json.parse() {
        Ok(bytes) if column == "size" && head.format == Some(InputFormat::Documents.name()) => {
            size_text(bytes)
        }
        _ => shown(json),
    }
}

/// A value for display: text without its quotes, anything else as JSON on one line.
fn shown(json: &str) -> String {
    match serde_json::from_str::<String>(json) {
        Ok(text) => escape_control(&text),
        Err(_) => escape_control(&compact_json(json)),
    }
}

/// The JSON output.
#[derive(Serialize)]
struct HeadJson<'h> {
    input: &'h str,
    format: Option<&'static str>,
    files: usize,
    bytes: Option<u64>,
    rows: Option<u64>,
    looked_at: u64,
    bad: u64,
    columns: &'h [ColumnProfile],
    head: Vec<RowJson<'h>>,
}

#[derive(Serialize)]
struct RowJson<'h> {
    row_number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorJson<'h>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'h str>,
}

#[derive(Serialize)]
struct ErrorJson<'h> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: &'h str,
}

impl<'h> RowJson<'h> {
    /// An entry of the list of rows, which is nested three levels deep.
    fn of(row: &'h HeadRow) -> Self {
        let (number, fields, bad) = match &row.row {
            // If a name occurs twice, the row has one value for it.
            Ok(row) => (row.number(), Some(row.with_added_fields(std::iter::empty())), None),
            Err(bad) => (bad.number, None, Some(ErrorJson { kind: bad.kind.name(), message: &bad.message })),
        };
        let error = match &row.prompt {
            Some(Err(error)) => Some(ErrorJson { kind: error.kind.name(), message: &error.message }),
            Some(Ok(_)) | None => bad,
        };
        Self {
            row_number: number,
            row: fields.and_then(|fields| RawValue::from_string(indent_json(fields.json_text(), 3)).ok()),
            error,
            prompt: row.prompt.as_ref().and_then(|prompt| prompt.as_deref().ok()),
        }
    }
}

fn as_json(head: &InputHead) -> String {
    let whole = HeadJson {
        input: &head.name,
        format: head.format,
        files: head.files,
        bytes: head.bytes,
        rows: head.count,
        looked_at: head.looked_at,
        bad: head.bad,
        columns: &head.columns,
        head: head.rows.iter().map(RowJson::of).collect(),
    };
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}
