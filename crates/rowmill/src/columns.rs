//! The columns of the input that a run uses, and messages about runs without rows.

use std::path::Path;

use rowmill_core::ports::{Dataset, ReadLimit};
use rowmill_core::prompt::PromptTemplate;
use rowmill_core::summary::RunTally;
use rowmill_data::table::TableTarget;
use rowmill_data::{WantedColumn, column_list_text};
use rowmill_types::group_digits;
use rowmill_types::settings::{ATTACH, ID_FIELD, LIMIT, OFFSET, SAMPLE, SPLIT_BY, SQL, TEMPLATE, WHERE};

use crate::prepare_input::PreparedInput;
use crate::spec::{OutputTarget, PromptSource, RunSpec, TableOutput};

/// The columns that the template and the flags name.
pub(crate) fn wanted_columns(spec: &RunSpec, template: &PromptTemplate) -> Vec<WantedColumn> {
    let of_template = template.fields().into_iter().map(WantedColumn::of_template);
    let of_ids = spec.id_field.iter().map(|name| WantedColumn::of_setting(ID_FIELD, name));
    let of_files = spec.files.attach.iter().map(|name| WantedColumn::of_setting(ATTACH, name));
    of_template.chain(of_ids).chain(of_files).chain(split_column(&spec.output)).collect()
}

/// The columns to read, if the run does not use the rest of a row.
pub(crate) fn read_columns(
    spec: &RunSpec,
    template: &PromptTemplate,
    wanted: &[WantedColumn],
) -> Option<Vec<String>> {
    let is_enough = !spec.keeps_input() && !template.uses_whole_row() && !wanted.is_empty();
    is_enough.then(|| wanted.iter().map(|column| column.name.clone()).collect())
}

/// The column that rows are split by, if it is a top-level column of the input.
fn split_column(output: &OutputTarget) -> Option<WantedColumn> {
    let OutputTarget::Table(TableOutput { target: TableTarget::Folder { split_by, .. }, .. }) = output else {
        return None;
    };
    let name = split_by.strip_prefix("input.").filter(|name| !name.contains('.'))?;
    Some(WantedColumn { name: name.to_owned(), named_by: format!("{SPLIT_BY} names `{split_by}`").into() })
}

/// The warning about a prompt that is the same for every row; `None` if prompts differ, or may differ.
pub(crate) fn same_prompt_text(
    spec: &RunSpec,
    template: &PromptTemplate,
    rows: &PreparedInput,
) -> Option<String> {
    let sends_files = rows.dataset.default_id_field().is_some() || !spec.files.attach.is_empty();
    if sends_files || !template.is_constant() {
        return None;
    }
    let advice = match &spec.prompt {
        PromptSource::Inline(text) if Path::new(text).is_file() => {
            format!(
                "`{text}` is a file: use {template} to send its contents",
                template = TEMPLATE.with_value(text)
            )
        }
        _ => match single_braced(template.text()) {
            Some(name) => {
                format!("`{{{name}}}` is plain text; use two braces to insert a column: `{{{{{name}}}}}`")
            }
            None => {
                let name = first_column(&*rows.dataset).unwrap_or_else(|| "review".to_owned());
                format!("use two braces to insert a column, such as `{{{{{name}}}}}`")
            }
        },
    };
    Some(format!("the prompt uses no column, so every row gets the same prompt; {advice}"))
}

/// The first column, if the input can be inspected before it is read.
fn first_column(dataset: &dyn Dataset) -> Option<String> {
    if let Some(columns) = dataset.columns().ok()? {
        return columns.into_iter().next().map(|column| column.name);
    }
    let mut first = Vec::new();
    let mut source = dataset.is_rereadable().then(|| dataset.open().ok())??;
    source.read(&mut first, ReadLimit { rows: 1, bytes: 1 }).ok()?;
    let row = first.into_iter().find_map(Result::ok)?;
    row.fields().next().map(|(name, _)| name.to_owned())
}

/// The first name in single braces, the placeholder syntax of other tools.
fn single_braced(text: &str) -> Option<&str> {
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_-. ".contains(letter))
    };
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name)).find(is_name)
}

/// Why a run that read its whole input took no row; `None` if it took some. If a query found nothing,
/// the message lists the available columns.
pub(crate) fn no_rows_text(spec: &RunSpec, tally: &RunTally, all_rows: &dyn Dataset) -> Option<String> {
    if tally.selected_rows > 0 {
        return None;
    }
    let (selection, query) = (&spec.selection, &spec.query);
    let input = format!("`{}`", spec.input.location.name());
    let zero = [(LIMIT, selection.limit), (SAMPLE, selection.sample.map(|sample| sample.count))];
    if let Some((setting, _)) = zero.iter().find(|(_, rows)| *rows == Some(0)) {
        return Some(format!("no rows selected: {none} selects none", none = setting.with_value(0)));
    }
    let offset = selection.offset;
    Some(match tally.input_rows {
        0 if query.sql.is_some() => {
            let columns = columns_text(all_rows);
            format!("no rows selected: the query of {SQL} returned no rows of {input}{columns}")
        }
        0 => match &query.condition {
            Some(condition) => {
                let columns = columns_text(all_rows);
                format!(
                    "no rows selected: no row of {input} matches {which}{columns}",
                    which = WHERE.with_value(condition)
                )
            }
            None => format!("no rows selected: {input} has no rows"),
        },
        1 => format!("no rows selected: {offset} skips the only row", offset = OFFSET.with_value(offset)),
        rows => {
            let rows = group_digits(rows);
            format!("no rows selected: {offset} skips all {rows} rows", offset = OFFSET.with_value(offset))
        }
    })
}

/// The list of available columns, as an addition to a message about rows that were not found.
fn columns_text(all_rows: &dyn Dataset) -> String {
    // The run itself succeeded, so an error while listing the columns is ignored.
    let listed = column_list_text(all_rows).ok().flatten();
    listed.map(|listed| format!("; {listed}")).unwrap_or_default()
}
