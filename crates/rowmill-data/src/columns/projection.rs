//! `--columns`: only some fields of every row.

use std::collections::HashSet;
use std::sync::Arc;

use rowmill_core::ports::{
    Dataset, DatasetColumn, InputIdentity, InputReadProgress, ReadLimit, RequestedDatasetPart, RowSource,
};
use rowmill_types::settings::COLUMNS;
use rowmill_types::{DiagnosticText, Problem, ProblemCode, Row, RowReadResult};

use super::checks::{WantedColumn, check_columns};
use super::field_name::FieldName;

/// The rows of `input` with only these fields, in this order. Row numbers are kept, and a field that a row
/// lacks stays missing.
///
/// # Errors
///
/// No column is named, one is named twice, or one is in none of the first rows; or the input cannot be read.
pub fn select_columns(input: Arc<dyn Dataset>, columns: &[String]) -> Result<Arc<dyn Dataset>, Problem> {
    if columns.is_empty() {
        return Err(Problem::new(ProblemCode::InvalidQuery, format!("{COLUMNS} names no column"))
            .hint(format!("list some, such as {columns}", columns = COLUMNS.with_value("id,text"))));
    }
    let mut named = HashSet::new();
    if let Some(again) = columns.iter().find(|name| !named.insert(name.as_str())) {
        let message = format!("{COLUMNS} names `{again}` twice");
        return Err(Problem::new(ProblemCode::InvalidQuery, message).hint("list each column once"));
    }
    let wanted: Vec<_> = columns.iter().map(|name| WantedColumn::of_setting(COLUMNS, name)).collect();
    check_columns(&*input, &wanted)
        .map_err(|problem| Problem { code: ProblemCode::InvalidQuery, ..problem })?;
    let names = columns.iter().map(|name| FieldName::new(name)).collect();
    Ok(Arc::new(ColumnsDataset { input, names }))
}

#[derive(Debug)]
struct ColumnsDataset {
    input: Arc<dyn Dataset>,
    names: Arc<[FieldName]>,
}

impl Dataset for ColumnsDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        self.open_part(&RequestedDatasetPart::default())
    }

    fn open_part(&self, part: &RequestedDatasetPart) -> Result<Box<dyn RowSource>, Problem> {
        let wanted =
            |name: &str| part.columns.as_ref().is_none_or(|columns| columns.iter().any(|one| one == name));
        let mut columns: Vec<String> =
            self.names.iter().map(|name| name.name.to_string()).filter(|name| wanted(name)).collect();
        if let Some(declared) = self.input.columns()? {
            columns.sort_by_key(|name| declared.iter().position(|column| column.name == *name));
        }
        let part = RequestedDatasetPart { columns: Some(columns), conditions: part.conditions.clone() };
        let source = self.input.open_part(&part)?;
        Ok(Box::new(ColumnsSource { source, names: self.names.clone() }))
    }

    fn is_rereadable(&self) -> bool {
        self.input.is_rereadable()
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        self.input.identity()
    }

    fn count(&self) -> Result<Option<u64>, Problem> {
        self.input.count()
    }

    fn columns(&self) -> Result<Option<Vec<DatasetColumn>>, Problem> {
        let Some(declared) = self.input.columns()? else { return Ok(None) };
        let column = |name: &FieldName| declared.iter().find(|column| *column.name == *name.name).cloned();
        Ok(Some(self.names.iter().filter_map(column).collect()))
    }

    fn is_untyped(&self) -> bool {
        self.input.is_untyped()
    }

    fn default_id_field(&self) -> Option<&str> {
        let own = self.input.default_id_field()?;
        self.names.iter().any(|name| *name.name == *own).then_some(own)
    }

    fn read_notice(&self) -> Option<DiagnosticText> {
        self.input.read_notice()
    }
}

struct ColumnsSource {
    source: Box<dyn RowSource>,
    names: Arc<[FieldName]>,
}

impl RowSource for ColumnsSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let before = batch.len();
        let more = self.source.read(batch, room)?;
        for row in batch.iter_mut().skip(before).flatten() {
            *row = projected(row, &self.names);
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

fn projected(row: &Row, names: &[FieldName]) -> Row {
    let mut text = String::with_capacity(row.json_text().len().min(4096));
    let mut fields = Vec::with_capacity(names.len());
    for name in names {
        let Some(json) = row.field(&name.name) else { continue };
        name.write(&mut text);
        let start = text.len();
        text.push_str(json);
        fields.push(name.field(start..text.len()));
    }
    text.push_str(if text.is_empty() { "{}" } else { "}" });
    Row::from_parts(row.number(), text, fields)
}
