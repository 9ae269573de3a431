//! Writes sample rows as Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int32Builder, Int64Builder,
    ListBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::row::{FIRST_DAY, SampleRow};

const GROUP_ROWS: usize = 131_072;
const BATCH_ROWS: u64 = 4_096;

pub(super) fn write_parquet(out: impl Write + Send, rows: u64, seed: u64) -> io::Result<()> {
    let failed = |error: ParquetError| match error {
        ParquetError::External(error) => io::Error::other(error),
        other => io::Error::other(other),
    };
    let schema = Arc::new(schema());
    let mut writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties())).map_err(failed)?;
    let mut row = SampleRow::default();
    let mut columns = ColumnBuilders::new();
    let mut index = 0;
    while index < rows {
        let end = rows.min(index + BATCH_ROWS);
        while index < end {
            row.make(seed, index);
            columns.append(&row);
            index += 1;
        }
        let batch = columns.finish(&schema).map_err(io::Error::other)?;
        writer.write(&batch).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(())
}

/// A dictionary is not worthwhile for columns in which hardly any value occurs twice.
fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for column in ["id", "price", "at", "title", "text"] {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(column), false);
    }
    properties.build()
}

fn source_fields() -> Fields {
    Fields::from(vec![Field::new("site", DataType::Utf8, true)])
}

fn meta_fields() -> Fields {
    Fields::from(vec![
        Field::new("lang", DataType::Utf8, true),
        Field::new("stars", DataType::Int32, true),
        Field::new("source", DataType::Struct(source_fields()), true),
    ])
}

fn schema() -> Schema {
    let tag = Field::new_list_field(DataType::Utf8, true);
    Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("split", DataType::Utf8, false),
        Field::new("score", DataType::Float64, true),
        Field::new("price", DataType::Decimal128(10, 2), true),
        Field::new("flag", DataType::Boolean, true),
        Field::new("day", DataType::Date32, true),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("title", DataType::Utf8, true),
        Field::new("text", DataType::Utf8, false),
        Field::new("tags", DataType::List(Arc::new(tag)), true),
        Field::new("meta", DataType::Struct(meta_fields()), true),
    ])
}

/// A batch of rows that grows.
struct ColumnBuilders {
    id: Int64Builder,
    split: StringBuilder,
    score: Float64Builder,
    price: Decimal128Builder,
    flag: BooleanBuilder,
    day: Date32Builder,
    at: TimestampMicrosecondBuilder,
    title: StringBuilder,
    text: StringBuilder,
    tags: ListBuilder<StringBuilder>,
    has_meta: Vec<bool>,
    lang: StringBuilder,
    stars: Int32Builder,
    site: StringBuilder,
    has_source: Vec<bool>,
}

impl ColumnBuilders {
    fn new() -> Self {
        Self {
            id: Int64Builder::new(),
            split: StringBuilder::new(),
            score: Float64Builder::new(),
            price: Decimal128Builder::new().with_data_type(DataType::Decimal128(10, 2)),
            flag: BooleanBuilder::new(),
            day: Date32Builder::new(),
            at: TimestampMicrosecondBuilder::new(),
            title: StringBuilder::new(),
            text: StringBuilder::new(),
            tags: ListBuilder::new(StringBuilder::new()),
            has_meta: Vec::new(),
            lang: StringBuilder::new(),
            stars: Int32Builder::new(),
            site: StringBuilder::new(),
            has_source: Vec::new(),
        }
    }

    fn append(&mut self, row: &SampleRow) {
        self.id.append_value(row.id);
        self.split.append_value(row.split);
        self.score.append_option(row.score);
        self.price.append_option(row.price.map(i128::from));
        self.flag.append_option(row.flag);
        self.day.append_option(row.day.map(|day| FIRST_DAY + i32::from(day)));
        let (day, second, microseconds) = row.at;
        let seconds = i64::from(FIRST_DAY + i32::from(day)) * 86_400 + i64::from(second);
        self.at.append_value(seconds * 1_000_000 + i64::from(microseconds));
        self.title.append_option((!row.title.is_empty()).then_some(row.title.as_str()));
        self.text.append_value(&row.text);
        for tag in row.tags.iter().flatten() {
            self.tags.values().append_value(tag);
        }
        self.tags.append(row.tags.is_some());
        self.has_meta.push(row.meta.is_some());
        self.lang.append_option(row.meta.map(|meta| meta.lang));
        self.stars.append_option(row.meta.and_then(|meta| meta.stars));
        let site = row.meta.and_then(|meta| meta.source);
        self.site.append_option(site);
        self.has_source.push(site.is_some());
    }

    fn finish(&mut self, schema: &Arc<Schema>) -> Result<RecordBatch, ArrowError> {
        let site: ArrayRef = Arc::new(self.site.finish());
        let there = BooleanArray::from(std::mem::take(&mut self.has_source));
        let source = StructArray::try_new(source_fields(), vec![site], Some(there.values().clone().into()))?;
        let meta: Vec<ArrayRef> =
            vec![Arc::new(self.lang.finish()), Arc::new(self.stars.finish()), Arc::new(source)];
        let there = BooleanArray::from(std::mem::take(&mut self.has_meta));
        let meta = StructArray::try_new(meta_fields(), meta, Some(there.values().clone().into()))?;
        RecordBatch::try_new(
            Arc::clone(schema),
            vec![
                Arc::new(self.id.finish()),
                Arc::new(self.split.finish()),
                Arc::new(self.score.finish()),
                Arc::new(self.price.finish()),
                Arc::new(self.flag.finish()),
                Arc::new(self.day.finish()),
                Arc::new(self.at.finish()),
                Arc::new(self.title.finish()),
                Arc::new(self.text.finish()),
                Arc::new(self.tags.finish()),
                Arc::new(meta),
            ],
        )
    }
}
