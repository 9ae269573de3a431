//! Columns in memory: JSON texts in, Arrow arrays out.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Float64Builder, Int64Builder, NullBufferBuilder, OffsetBufferBuilder,
    StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Fields, TimeUnit};

use super::cells::{array_items, object_fields, plain_text};
use super::kind::OutputType;
use super::values::{parse_date_days, parse_double, parse_timestamp_micros, parse_whole};

/// The values of a column since they were last taken.
pub(super) enum ColumnVector {
    Bool(BooleanBuilder),
    Whole(Int64Builder),
    Double(Float64Builder),
    Text(StringBuilder),
    Json(StringBuilder),
    Date(Date32Builder),
    Time(TimestampMicrosecondBuilder),
    List(ListVector),
    Struct(StructVector),
}

/// Lists of one type: the length of each, and all their items.
pub(super) struct ListVector {
    lengths: Vec<usize>,
    present: NullBufferBuilder,
    items: Box<ColumnVector>,
}

/// Objects with the same fields.
pub(super) struct StructVector {
    names: super::kind::StructFields,
    present: NullBufferBuilder,
    fields: Vec<ColumnVector>,
}

/// The Arrow type of a column.
pub(super) fn data_type(kind: &OutputType) -> DataType {
    match kind {
        OutputType::Bool => DataType::Boolean,
        OutputType::Whole(_) => DataType::Int64,
        OutputType::Double => DataType::Float64,
        OutputType::Unknown | OutputType::Text | OutputType::Json => DataType::Utf8,
        OutputType::Date => DataType::Date32,
        OutputType::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        OutputType::List(item) => DataType::List(Arc::new(item_field(item))),
        OutputType::Struct(fields) => DataType::Struct(struct_fields(fields)),
    }
}

fn item_field(item: &OutputType) -> Field {
    Field::new("element", data_type(item), true)
}

fn struct_fields(fields: &super::kind::StructFields) -> Fields {
    fields.list.iter().map(|(name, kind)| Field::new(name, data_type(kind), true)).collect()
}

impl ColumnVector {
    pub(super) fn new(kind: &OutputType) -> Self {
        match kind {
            OutputType::Bool => Self::Bool(BooleanBuilder::new()),
            OutputType::Whole(_) => Self::Whole(Int64Builder::new()),
            OutputType::Double => Self::Double(Float64Builder::new()),
            OutputType::Unknown | OutputType::Text => Self::Text(StringBuilder::new()),
            OutputType::Json => Self::Json(StringBuilder::new()),
            OutputType::Date => Self::Date(Date32Builder::new()),
            OutputType::Time => Self::Time(TimestampMicrosecondBuilder::new().with_timezone("UTC")),
            OutputType::List(item) => Self::List(ListVector {
                lengths: Vec::new(),
                present: NullBufferBuilder::new(0),
                items: Box::new(Self::new(item)),
            }),
            OutputType::Struct(fields) => Self::Struct(StructVector {
                present: NullBufferBuilder::new(0),
                fields: fields.list.iter().map(|(_, kind)| Self::new(kind)).collect(),
                names: fields.clone(),
            }),
        }
    }

    /// Adds a value. The first pass has ensured that it fits.
    pub(super) fn push(&mut self, json: Option<&str>) {
        let json = json.filter(|json| *json != "null");
        match self {
            Self::Bool(values) => values.append_option(json.map(|json| json == "true")),
            Self::Whole(values) => values.append_option(json.and_then(parse_whole)),
            Self::Double(values) => values.append_option(json.and_then(parse_double)),
            Self::Text(values) => values.append_option(json.map(plain_text)),
            Self::Json(values) => values.append_option(json),
            Self::Date(values) => values.append_option(json.and_then(parse_date_days)),
            Self::Time(values) => values.append_option(json.and_then(parse_timestamp_micros)),
            Self::List(list) => list.push(json),
            Self::Struct(object) => object.push(json),
        }
    }

    /// Returns the values and clears the vector.
    pub(super) fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Bool(values) => Arc::new(values.finish()),
            Self::Whole(values) => Arc::new(values.finish()),
            Self::Double(values) => Arc::new(values.finish()),
            Self::Text(values) | Self::Json(values) => Arc::new(values.finish()),
            Self::Date(values) => Arc::new(values.finish()),
            Self::Time(values) => Arc::new(values.finish()),
            Self::List(list) => Arc::new(list.take()?),
            Self::Struct(object) => Arc::new(object.take()?),
        })
    }
}

impl ListVector {
    fn push(&mut self, json: Option<&str>) {
        let found = json.and_then(array_items);
        self.present.append(found.is_some());
        let found = found.unwrap_or_default();
        self.lengths.push(found.len());
        found.into_iter().for_each(|item| self.items.push(Some(item)));
    }

    fn take(&mut self) -> Result<ListArray, ArrowError> {
        let mut offsets = OffsetBufferBuilder::<i32>::new(self.lengths.len());
        self.lengths.drain(..).for_each(|length| offsets.push_length(length));
        let items = self.items.take()?;
        let field = Field::new("element", items.data_type().clone(), true);
        ListArray::try_new(Arc::new(field), offsets.finish(), items, self.present.finish())
    }
}

impl StructVector {
    fn push(&mut self, json: Option<&str>) {
        let found = json.and_then(object_fields);
        self.present.append(found.is_some());
        let mut values: Vec<Option<&str>> = vec![None; self.fields.len()];
        for (name, value) in found.iter().flatten() {
            if let Some(place) = self.names.find(name).and_then(|place| values.get_mut(place)) {
                *place = Some(value);
            }
        }
        self.fields.iter_mut().zip(values).for_each(|(field, value)| field.push(value));
    }

    fn take(&mut self) -> Result<StructArray, ArrowError> {
        let arrays = self.fields.iter_mut().map(ColumnVector::take).collect::<Result<Vec<_>, _>>()?;
        StructArray::try_new(struct_fields(&self.names), arrays, self.present.finish())
    }
}
