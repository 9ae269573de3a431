//! Envelopes on disk, and tables read back as JSON.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rowmill_core::redact::Redactor;
use rowmill_data::output::{EnvelopeReader, OutputClaimMode};
use rowmill_data::table::{
    InputRowInclusion, TableDraft, TableExportSettings, TableFormat, TableLayout, TableTarget,
    write_table_draft,
};
use rowmill_types::Problem;
use serde_json::{Value, json};

/// The fields of the envelope, without the input.
pub(crate) const PLAIN: (TableLayout, InputRowInclusion) =
    (TableLayout::Envelope, InputRowInclusion::Excluded);

/// The envelope of a successful row.
pub(crate) fn ok(number: u64, result: &str) -> String {
    format!("{{\"id\":{number},\"row_number\":{number},\"ok\":true,\"result\":{result},\"error\":null}}\n")
}

/// The envelope of a failed row.
pub(crate) fn failed(number: u64) -> String {
    let error = r#"{"type":"ServerError","message":"overloaded","status":503,"attempts":5}"#;
    format!("{{\"id\":{number},\"row_number\":{number},\"ok\":false,\"result\":null,\"error\":{error}}}\n")
}

/// A folder with `envelopes.jsonl`, and the schema that its results satisfy.
pub(crate) struct Desk {
    home: tempfile::TempDir,
    schema: Option<String>,
}

impl Desk {
    pub(crate) fn new(envelopes: &[String]) -> Self {
        let desk = Self { home: tempfile::tempdir().unwrap(), schema: None };
        desk.write(envelopes);
        desk
    }

    /// The same folder with other envelopes.
    pub(crate) fn at(desk: Self, envelopes: &[String]) -> Self {
        desk.write(envelopes);
        desk
    }

    fn write(&self, envelopes: &[String]) {
        fs::write(self.path("envelopes.jsonl"), envelopes.concat()).unwrap();
    }

    pub(crate) fn with_schema(self, schema: &str) -> Self {
        Self { schema: Some(schema.to_owned()), ..self }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.names_in("")
    }

    pub(crate) fn names_in(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn draft(
        &self,
        format: TableFormat,
        (layout, input): (TableLayout, InputRowInclusion),
        target: &TableTarget,
    ) -> Result<TableDraft, Problem> {
        let settings = TableExportSettings {
            format,
            layout,
            input,
            schema: self.schema.clone(),
            redactor: Redactor::default(),
        };
        write_table_draft(
            &EnvelopeReader::from_settled_file(&self.path("envelopes.jsonl")),
            &settings,
            target,
        )
    }

    fn table(&self, format: TableFormat, head_of_dataset: (TableLayout, InputRowInclusion)) -> PathBuf {
        let path = self.path("table");
        let draft = self.draft(format, head_of_dataset, &TableTarget::File(path.clone())).unwrap();
        draft.publish(OutputClaimMode::Overwrite).unwrap();
        path
    }

    /// The table as text.
    pub(crate) fn text(
        &self,
        format: TableFormat,
        head_of_dataset: (TableLayout, InputRowInclusion),
    ) -> String {
        fs::read_to_string(self.table(format, head_of_dataset)).unwrap()
    }

    /// The table as Parquet, read back.
    pub(crate) fn parquet(&self, head_of_dataset: (TableLayout, InputRowInclusion)) -> RecordBatch {
        read(&self.table(TableFormat::Parquet, head_of_dataset))
    }
}

fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = reader.schema().clone();
    let mut batches = reader.with_batch_size(1 << 20).build().unwrap();
    let first = batches.next().transpose().unwrap();
    assert!(batches.next().is_none(), "tests are smaller than a batch");
    first.unwrap_or_else(|| RecordBatch::new_empty(schema))
}

/// The names and types of columns; all are nullable.
pub(crate) fn columns(batch: &RecordBatch) -> Vec<String> {
    let schema = batch.schema();
    assert!(schema.fields().iter().all(|field| field.is_nullable()));
    schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect()
}

/// The rows as JSON objects.
pub(crate) fn records(batch: &RecordBatch) -> Vec<Value> {
    let schema = batch.schema();
    let row = |at| {
        let fields = schema.fields().iter().zip(batch.columns());
        fields.map(|(field, column)| (field.name().clone(), value(column, at))).collect::<Value>()
    };
    (0..batch.num_rows()).map(row).collect()
}

fn value(array: &dyn Array, at: usize) -> Value {
    if array.is_null(at) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Boolean => json!(array.as_boolean().value(at)),
        DataType::Int64 => json!(array.as_primitive::<Int64Type>().value(at)),
        DataType::Float64 => json!(array.as_primitive::<Float64Type>().value(at)),
        DataType::Utf8 => json!(array.as_string::<i32>().value(at)),
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().value(at);
            let date = jiff::civil::date(1970, 1, 1) + jiff::Span::new().days(days);
            json!(date.to_string())
        }
        DataType::Timestamp(..) => {
            let time = array.as_primitive::<TimestampMicrosecondType>().value(at);
            json!(jiff::Timestamp::from_microsecond(time).unwrap().to_string())
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(at);
            (0..items.len()).map(|item| value(&items, item)).collect()
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            fields
                .iter()
                .zip(columns)
                .map(|(field, column)| (field.name().clone(), value(column, at)))
                .collect()
        }
        other => panic!("unexpected type {other}"),
    }
}
