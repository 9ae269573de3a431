//! How the columns of a file are decoded.
//!
//! Text is decoded as bytes and checked value by value: a value that is not UTF-8 then fails its row and not
//! the whole read. Intervals are decoded as their twelve bytes, because each type that the decoder knows
//! drops a part of them. Both is achieved by removing these types from the schema that the decoder is given.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type};

use super::shape::ValueShape;

/// How the columns of a file are decoded, and the types of their values.
#[derive(Debug)]
pub(super) struct ColumnLayout {
    /// The schema that the decoder is given instead of the file's own.
    pub(super) stored: Arc<SchemaDescriptor>,
    /// The types of the arrays that the decoder produces.
    pub(super) decoded: SchemaRef,
    /// The unique names of the columns.
    pub(super) names: Vec<String>,
    /// The types of the columns' values.
    pub(super) shapes: Vec<ValueShape>,
}

impl ColumnLayout {
    /// The layout of a file with these columns: as they are stored, and as the decoder interprets them.
    pub(super) fn new(stored: &SchemaDescriptor, understood: &Schema) -> Result<Self> {
        let mut leaves = stored.columns().iter();
        let mut fields = Vec::with_capacity(understood.fields().len());
        let mut shapes = Vec::with_capacity(fields.capacity());
        let mut names: Vec<String> = Vec::with_capacity(fields.capacity());
        for field in understood.fields() {
            let (field, shape) = decoded_field(field, &mut leaves)?;
            names.push(unused_name(field.name(), &names));
            fields.push(field);
            shapes.push(shape);
        }
        let root = plain_type(&stored.root_schema_ptr())?;
        Ok(Self {
            stored: Arc::new(SchemaDescriptor::new(root)),
            decoded: Arc::new(Schema::new(fields)),
            names,
            shapes,
        })
    }

    /// Whether files of both layouts are read in the same way.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.stored.root_schema() == other.stored.root_schema()
            && self.decoded == other.decoded
            && self.shapes == other.shapes
    }

    /// The only leaf of a column that is neither a list nor an object.
    pub(super) fn leaf(&self, column: usize) -> Option<usize> {
        let of_column = |leaf: &usize| self.stored.get_column_root_idx(*leaf) == column;
        let mut leaves = (0..self.stored.num_columns()).filter(of_column);
        let leaf = leaves.next()?;
        leaves.next().is_none().then_some(leaf)
    }
}

/// A duplicate name gets a number, so that rows keep all columns.
fn unused_name(name: &str, used: &[String]) -> String {
    let mut unused = name.to_owned();
    let mut number = 0;
    while used.contains(&unused) {
        number += 1;
        unused = format!("{name}_{number}");
    }
    unused
}

/// The schema without the types that the decoder is not to know.
fn plain_type(stored: &Arc<Type>) -> Result<Arc<Type>> {
    match stored.as_ref() {
        Type::GroupType { basic_info, fields } => {
            let fields = fields.iter().map(plain_type).collect::<Result<_>>()?;
            Ok(Arc::new(Type::GroupType { basic_info: basic_info.clone(), fields }))
        }
        Type::PrimitiveType { basic_info: info, physical_type, type_length, .. } => {
            let is_text = *physical_type == Physical::BYTE_ARRAY
                && (matches!(
                    info.logical_type_ref(),
                    Some(LogicalType::String | LogicalType::Json | LogicalType::Enum)
                ) || matches!(
                    info.converted_type(),
                    ConvertedType::UTF8 | ConvertedType::JSON | ConvertedType::ENUM
                ));
            let is_interval = info.converted_type() == ConvertedType::INTERVAL;
            if !is_text && !is_interval {
                return Ok(Arc::clone(stored));
            }
            let plain = Type::primitive_type_builder(info.name(), *physical_type)
                .with_repetition(info.repetition())
                .with_length(*type_length)
                .with_id(info.has_id().then(|| info.id()));
            Ok(Arc::new(plain.build()?))
        }
    }
}

type LeafColumns<'a> = std::slice::Iter<'a, ColumnDescPtr>;

fn decoded_field(field: &Field, leaves: &mut LeafColumns<'_>) -> Result<(FieldRef, ValueShape)> {
    let (decoded, shape) = decoded_type(field.data_type(), leaves)?;
    Ok((Arc::new(field.clone().with_data_type(decoded)), shape))
}

/// The type to decode, and the type of its values. Takes the leaves that belong to it.
fn decoded_type(understood: &DataType, leaves: &mut LeafColumns<'_>) -> Result<(DataType, ValueShape)> {
    let list = |item: &FieldRef, leaves: &mut LeafColumns<'_>| {
        let (item, shape) = decoded_field(item, leaves)?;
        Ok::<_, ParquetError>((item, ValueShape::List(Box::new(shape))))
    };
    Ok(match understood {
        DataType::List(item) => list(item, leaves).map(|(item, shape)| (DataType::List(item), shape))?,
        DataType::LargeList(item) => {
            list(item, leaves).map(|(item, shape)| (DataType::LargeList(item), shape))?
        }
        DataType::ListView(item) => {
            list(item, leaves).map(|(item, shape)| (DataType::ListView(item), shape))?
        }
        DataType::LargeListView(item) => {
            list(item, leaves).map(|(item, shape)| (DataType::LargeListView(item), shape))?
        }
        DataType::FixedSizeList(item, length) => {
            list(item, leaves).map(|(item, shape)| (DataType::FixedSizeList(item, *length), shape))?
        }
        DataType::Struct(fields) => {
            let (fields, shapes) = decoded_fields(fields, leaves)?;
            (DataType::Struct(fields), ValueShape::Struct(shapes))
        }
        DataType::Map(entries, sorted) => {
            let (decoded, shape) = decoded_field(entries, leaves)?;
            let ValueShape::Struct(mut parts) = shape else { return Err(unknown(understood)) };
            let (Some((_, value)), Some((_, key))) = (parts.pop(), parts.pop()) else {
                return Err(unknown(understood));
            };
            (DataType::Map(decoded, *sorted), ValueShape::Map(Box::new(key), Box::new(value)))
        }
        scalar => {
            let leaf = leaves.next().ok_or_else(|| unknown(understood))?;
            decoded_scalar(scalar, leaf)?
        }
    })
}

fn decoded_fields(
    fields: &Fields,
    leaves: &mut LeafColumns<'_>,
) -> Result<(Fields, Vec<(String, ValueShape)>)> {
    let mut decoded = Vec::with_capacity(fields.len());
    let mut shapes = Vec::with_capacity(fields.len());
    for field in fields {
        let (field, shape) = decoded_field(field, leaves)?;
        shapes.push((field.name().clone(), shape));
        decoded.push(field);
    }
    Ok((decoded.into(), shapes))
}

fn decoded_scalar(understood: &DataType, leaf: &ColumnDescPtr) -> Result<(DataType, ValueShape)> {
    use DataType as T;
    let same = |shape| (understood.clone(), shape);
    Ok(match understood {
        T::Null => same(ValueShape::Null),
        T::Boolean => same(ValueShape::Boolean),
        T::Int8 | T::Int16 | T::Int32 | T::Int64 => same(ValueShape::Integer),
        T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => same(ValueShape::Integer),
        T::Float16 | T::Float32 | T::Float64 => same(ValueShape::Real),
        T::Decimal32(precision, scale)
        | T::Decimal64(precision, scale)
        | T::Decimal128(precision, scale)
        | T::Decimal256(precision, scale) => same(ValueShape::Decimal(*precision, *scale)),
        T::Utf8 | T::LargeUtf8 | T::Utf8View => (T::BinaryView, ValueShape::Text),
        T::Binary | T::LargeBinary | T::BinaryView => {
            let is_enum = matches!(leaf.logical_type_ref(), Some(LogicalType::Enum))
                || leaf.converted_type() == ConvertedType::ENUM;
            (T::BinaryView, if is_enum { ValueShape::Text } else { ValueShape::Bytes })
        }
        T::FixedSizeBinary(16) if matches!(leaf.logical_type_ref(), Some(LogicalType::Uuid)) => {
            same(ValueShape::Uuid)
        }
        T::FixedSizeBinary(_) => same(ValueShape::Bytes),
        T::Date32 | T::Date64 => same(ValueShape::Date),
        T::Time32(_) | T::Time64(_) => same(ValueShape::Time),
        // In nanoseconds, the old twelve-byte timestamps would cover only 600 years.
        T::Timestamp(TimeUnit::Nanosecond, zone) if leaf.physical_type() == Physical::INT96 => {
            let shape = ValueShape::Timestamp { utc: zone.is_some() };
            (T::Timestamp(TimeUnit::Microsecond, zone.clone()), shape)
        }
        T::Timestamp(_, zone) => same(ValueShape::Timestamp { utc: zone.is_some() }),
        T::Duration(_) => same(ValueShape::Duration),
        T::Interval(_) => (T::FixedSizeBinary(12), ValueShape::Interval),
        T::Dictionary(_, value) => return decoded_scalar(value, leaf),
        _ => return Err(unknown(understood)),
    })
}

fn unknown(understood: &DataType) -> ParquetError {
    ParquetError::NYI(format!("columns of type {understood}"))
}
