//! Columns in memory: JSON texts in, Arrow arrays out.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Float64Builder, Int64Builder, NullBufferBuilder, OffsetBufferBuilder,
    StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Fields, TimeUnit};

use super::cells::{fields, items, plain};
use super::kind::Kind;
use super::values::{days, double, microseconds, whole};

/// The values of a column since they were last taken.
pub(super) enum Vector {
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
    items: Box<Vector>,
}

/// Objects with the same fields.
pub(super) struct StructVector {
    names: super::kind::Fields,
    present: NullBufferBuilder,
    fields: Vec<Vector>,
}

/// The Arrow type of a column.
pub(super) fn data_type(kind: &Kind) -> DataType {
    match kind {
        Kind::Bool => DataType::Boolean,
        Kind::Whole(_) => DataType::Int64,
        Kind::Double => DataType::Float64,
        Kind::Unknown | Kind::Text | Kind::Json => DataType::Utf8,
        Kind::Date => DataType::Date32,
        Kind::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Kind::List(item) => DataType::List(Arc::new(item_field(item))),
        Kind::Struct(fields) => DataType::Struct(struct_fields(fields)),
    }
}

fn item_field(item: &Kind) -> Field {
    Field::new("element", data_type(item), true)
}

fn struct_fields(fields: &super::kind::Fields) -> Fields {
    fields.list.iter().map(|(name, kind)| Field::new(name, data_type(kind), true)).collect()
}

impl Vector {
    pub(super) fn new(kind: &Kind) -> Self {
        match kind {
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::Whole(_) => Self::Whole(Int64Builder::new()),
            Kind::Double => Self::Double(Float64Builder::new()),
            Kind::Unknown | Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Json => Self::Json(StringBuilder::new()),
            Kind::Date => Self::Date(Date32Builder::new()),
            Kind::Time => Self::Time(TimestampMicrosecondBuilder::new().with_timezone("UTC")),
            Kind::List(item) => Self::List(ListVector {
                lengths: Vec::new(),
                present: NullBufferBuilder::new(0),
                items: Box::new(Self::new(item)),
            }),
            Kind::Struct(fields) => Self::Struct(StructVector {
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
            Self::Whole(values) => values.append_option(json.and_then(whole)),
            Self::Double(values) => values.append_option(json.and_then(double)),
            Self::Text(values) => values.append_option(json.map(plain)),
            Self::Json(values) => values.append_option(json),
            Self::Date(values) => values.append_option(json.and_then(days)),
            Self::Time(values) => values.append_option(json.and_then(microseconds)),
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
        let found = json.and_then(items);
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
        let found = json.and_then(fields);
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
        let arrays = self.fields.iter_mut().map(Vector::take).collect::<Result<Vec<_>, _>>()?;
        StructArray::try_new(struct_fields(&self.names), arrays, self.present.finish())
    }
}
