//! Writes the values of a decoded column as JSON, one by one.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array as _, ArrayRef, OffsetSizeTrait};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use rowmill_core::json_text::{write_string, write_string_bytes};

use super::bytes::{write_bytes, write_uuid};
use super::civil::{write_date, write_duration, write_interval, write_time, write_timestamp};
use super::decimals::write_decimal;
use super::shape::ValueShape;

/// Appends the value of a row that is not null.
type WriteCellFn = Box<dyn Fn(usize, &mut Vec<u8>) + Send>;

/// The values of a decoded column.
pub(super) struct ColumnCells {
    /// Which values are null, if any are.
    nulls: Option<NullBuffer>,
    write: WriteCellFn,
}

impl ColumnCells {
    /// The values of an array; `None` if the decoder produced an unexpected type.
    pub(super) fn new(shape: &ValueShape, array: &ArrayRef) -> Option<Self> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        Some(Self { nulls, write: writer(shape, array)? })
    }

    /// The same JSON value in every row.
    pub(super) fn same(json: &Arc<str>) -> Self {
        let json = Arc::clone(json);
        let write = move |_, out: &mut Vec<u8>| out.extend_from_slice(json.as_bytes());
        Self { nulls: None, write: Box::new(write) }
    }

    /// Appends a value as JSON. Text is not checked: it may not be UTF-8.
    pub(super) fn write(&self, row: usize, out: &mut Vec<u8>) {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            out.extend_from_slice(b"null");
        } else {
            (self.write)(row, out);
        }
    }
}

fn writer(shape: &ValueShape, array: &ArrayRef) -> Option<WriteCellFn> {
    match shape {
        ValueShape::Null => writes(|_, out| out.extend_from_slice(b"null")),
        ValueShape::Boolean => {
            let values = array.as_boolean_opt()?.clone();
            writes(move |row, out| {
                out.extend_from_slice(if values.value(row) { b"true" } else { b"false" });
            })
        }
        ValueShape::Integer => integers(array),
        ValueShape::Real => reals(array),
        ValueShape::Decimal(_, scale) => decimals(array, *scale),
        ValueShape::Text => {
            let values = array.as_binary_view_opt()?.clone();
            writes(move |row, out| write_string_bytes(values.value(row), out))
        }
        ValueShape::Bytes => match array.as_binary_view_opt() {
            Some(values) => {
                let values = values.clone();
                writes(move |row, out| write_bytes(values.value(row), out))
            }
            None => fixed(array, write_bytes),
        },
        ValueShape::Uuid => fixed(array, write_uuid),
        ValueShape::Interval => fixed(array, |bytes, out| {
            out.push(b'"');
            write_interval(bytes, out);
            out.push(b'"');
        }),
        ValueShape::Date => match array.data_type() {
            DataType::Date32 => moments::<Date32Type>(array, write_date),
            _ => moments::<Date64Type>(array, |value, out| write_date(value.div_euclid(86_400_000), out)),
        },
        ValueShape::Time => times(array),
        ValueShape::Timestamp { utc } => timestamps(array, *utc),
        ValueShape::Duration => durations(array),
        ValueShape::List(item) => lists(item, array),
        ValueShape::Struct(fields) => structs(fields, array),
        ValueShape::Map(key, value) => maps(key, value, array),
    }
}

fn writes(write: impl Fn(usize, &mut Vec<u8>) + Send + 'static) -> Option<WriteCellFn> {
    Some(Box::new(write))
}

fn integers(array: &ArrayRef) -> Option<WriteCellFn> {
    fn of<T: ArrowPrimitiveType<Native: itoa::Integer>>(array: &ArrayRef) -> Option<WriteCellFn> {
        let values = array.as_primitive_opt::<T>()?.values().clone();
        writes(move |row, out| {
            if let Some(value) = values.get(row) {
                out.extend_from_slice(itoa::Buffer::new().format(*value).as_bytes());
            }
        })
    }
    match array.data_type() {
        DataType::Int8 => of::<Int8Type>(array),
        DataType::Int16 => of::<Int16Type>(array),
        DataType::Int32 => of::<Int32Type>(array),
        DataType::Int64 => of::<Int64Type>(array),
        DataType::UInt8 => of::<UInt8Type>(array),
        DataType::UInt16 => of::<UInt16Type>(array),
        DataType::UInt32 => of::<UInt32Type>(array),
        _ => of::<UInt64Type>(array),
    }
}

fn reals(array: &ArrayRef) -> Option<WriteCellFn> {
    fn write<F: zmij::Float>(value: F, is_finite: bool, out: &mut Vec<u8>) {
        let mut buffer = zmij::Buffer::new();
        out.extend_from_slice(if is_finite { buffer.format_finite(value).as_bytes() } else { b"null" });
    }
    match array.data_type() {
        DataType::Float64 => {
            let values = array.as_primitive_opt::<Float64Type>()?.clone();
            writes(move |row, out| write(values.value(row), values.value(row).is_finite(), out))
        }
        DataType::Float32 => {
            let values = array.as_primitive_opt::<Float32Type>()?.clone();
            writes(move |row, out| write(values.value(row), values.value(row).is_finite(), out))
        }
        _ => {
            let values = array.as_primitive_opt::<Float16Type>()?.clone();
            writes(move |row, out| write(values.value(row).to_f32(), values.value(row).is_finite(), out))
        }
    }
}

fn decimals(array: &ArrayRef, scale: i8) -> Option<WriteCellFn> {
    fn of<T: ArrowPrimitiveType<Native: itoa::Integer>>(array: &ArrayRef, scale: i8) -> Option<WriteCellFn> {
        let values = array.as_primitive_opt::<T>()?.clone();
        writes(move |row, out| {
            out.push(b'"');
            write_decimal(itoa::Buffer::new().format(values.value(row)), scale, out);
            out.push(b'"');
        })
    }
    match array.data_type() {
        DataType::Decimal32(..) => of::<Decimal32Type>(array, scale),
        DataType::Decimal64(..) => of::<Decimal64Type>(array, scale),
        DataType::Decimal128(..) => {
            let values = array.as_primitive_opt::<Decimal128Type>()?.clone();
            writes(move |row, out| {
                let (mut short, mut long) = (itoa::Buffer::new(), itoa::Buffer::new());
                let value = values.value(row);
                // Most fit into 64 bits, which are written in half the time.
                let digits =
                    i64::try_from(value).map_or_else(|_| long.format(value), |value| short.format(value));
                out.push(b'"');
                write_decimal(digits, scale, out);
                out.push(b'"');
            })
        }
        _ => {
            let values = array.as_primitive_opt::<Decimal256Type>()?.clone();
            writes(move |row, out| {
                out.push(b'"');
                write_decimal(&values.value(row).to_string(), scale, out);
                out.push(b'"');
            })
        }
    }
}

/// Bytes of a fixed length.
fn fixed(array: &ArrayRef, write: impl Fn(&[u8], &mut Vec<u8>) + Send + 'static) -> Option<WriteCellFn> {
    let values = array.as_fixed_size_binary_opt()?.clone();
    writes(move |row, out| write(values.value(row), out))
}

/// Values that count from an epoch and are written as text.
fn moments<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &ArrayRef,
    write: impl Fn(i64, &mut Vec<u8>) + Send + 'static,
) -> Option<WriteCellFn> {
    let values = array.as_primitive_opt::<T>()?.clone();
    writes(move |row, out| {
        out.push(b'"');
        write(values.value(row).into(), out);
        out.push(b'"');
    })
}

fn times(array: &ArrayRef) -> Option<WriteCellFn> {
    let in_unit = |unit| move |value, out: &mut Vec<u8>| write_time(value, unit, out);
    match array.data_type() {
        DataType::Time32(TimeUnit::Second) => moments::<Time32SecondType>(array, in_unit(TimeUnit::Second)),
        DataType::Time32(unit) => moments::<Time32MillisecondType>(array, in_unit(*unit)),
        DataType::Time64(TimeUnit::Microsecond) => {
            moments::<Time64MicrosecondType>(array, in_unit(TimeUnit::Microsecond))
        }
        _ => moments::<Time64NanosecondType>(array, in_unit(TimeUnit::Nanosecond)),
    }
}

fn timestamps(array: &ArrayRef, utc: bool) -> Option<WriteCellFn> {
    let DataType::Timestamp(unit, _) = *array.data_type() else { return None };
    let write = move |value, out: &mut Vec<u8>| write_timestamp(value, unit, utc, out);
    match unit {
        TimeUnit::Second => moments::<TimestampSecondType>(array, write),
        TimeUnit::Millisecond => moments::<TimestampMillisecondType>(array, write),
        TimeUnit::Microsecond => moments::<TimestampMicrosecondType>(array, write),
        TimeUnit::Nanosecond => moments::<TimestampNanosecondType>(array, write),
    }
}

fn durations(array: &ArrayRef) -> Option<WriteCellFn> {
    let DataType::Duration(unit) = *array.data_type() else { return None };
    let write = move |value, out: &mut Vec<u8>| write_duration(value, unit, out);
    match unit {
        TimeUnit::Second => moments::<DurationSecondType>(array, write),
        TimeUnit::Millisecond => moments::<DurationMillisecondType>(array, write),
        TimeUnit::Microsecond => moments::<DurationMicrosecondType>(array, write),
        TimeUnit::Nanosecond => moments::<DurationNanosecondType>(array, write),
    }
}

fn lists(item: &ValueShape, array: &ArrayRef) -> Option<WriteCellFn> {
    fn of<O: OffsetSizeTrait>(item: &ValueShape, array: &ArrayRef) -> Option<WriteCellFn> {
        let list = array.as_list_opt::<O>()?.clone();
        let items = ColumnCells::new(item, list.values())?;
        writes(move |row, out| {
            let place = |at: usize| list.value_offsets().get(at).map_or(0, |offset| offset.as_usize());
            write_items(&items, place(row)..place(row + 1), out);
        })
    }
    fn of_view<O: OffsetSizeTrait>(item: &ValueShape, array: &ArrayRef) -> Option<WriteCellFn> {
        let list = array.as_list_view_opt::<O>()?.clone();
        let items = ColumnCells::new(item, list.values())?;
        writes(move |row, out| {
            let start = list.value_offset(row).as_usize();
            write_items(&items, start..start + list.value_size(row).as_usize(), out);
        })
    }
    match array.data_type() {
        DataType::List(_) => of::<i32>(item, array),
        DataType::LargeList(_) => of::<i64>(item, array),
        DataType::ListView(_) => of_view::<i32>(item, array),
        DataType::LargeListView(_) => of_view::<i64>(item, array),
        _ => {
            let list = array.as_fixed_size_list_opt()?.clone();
            let length = usize::try_from(list.value_length()).ok()?;
            let items = ColumnCells::new(item, list.values())?;
            writes(move |row, out| write_items(&items, row * length..(row + 1) * length, out))
        }
    }
}

fn write_items(items: &ColumnCells, places: std::ops::Range<usize>, out: &mut Vec<u8>) {
    out.push(b'[');
    for at in places.clone() {
        if at > places.start {
            out.push(b',');
        }
        items.write(at, out);
    }
    out.push(b']');
}

fn structs(fields: &[(String, ValueShape)], array: &ArrayRef) -> Option<WriteCellFn> {
    let array = array.as_struct_opt()?;
    let mut parts = Vec::with_capacity(fields.len());
    for ((name, shape), values) in fields.iter().zip(array.columns()) {
        let mut start = vec![if parts.is_empty() { b'{' } else { b',' }];
        write_string(name, &mut start);
        start.push(b':');
        parts.push((start, ColumnCells::new(shape, values)?));
    }
    if parts.is_empty() {
        return writes(|_, out| out.extend_from_slice(b"{}"));
    }
    writes(move |row, out| {
        for (start, cells) in &parts {
            out.extend_from_slice(start);
            cells.write(row, out);
        }
        out.push(b'}');
    })
}

/// Maps become objects if their keys can be names and each occurs once. Otherwise they become lists of pairs,
/// so that nothing is lost.
fn maps(key: &ValueShape, value: &ValueShape, array: &ArrayRef) -> Option<WriteCellFn> {
    let map = array.as_map_opt()?.clone();
    let keys = ColumnCells::new(key, map.keys())?;
    let values = ColumnCells::new(value, map.values())?;
    let names_fields = key.names_fields();
    writes(move |row, out| {
        let offset = |at: usize| map.value_offsets().get(at).copied().unwrap_or(0);
        let place = |at| usize::try_from(offset(at)).unwrap_or(0);
        let places = place(row)..place(row + 1);
        if names_fields {
            let start = out.len();
            if write_object(&keys, &values, places.clone(), out) {
                return;
            }
            out.truncate(start);
        }
        write_pairs(&keys, &values, places, out);
    })
}

/// Appends a map as an object; `false` if a key occurs twice.
fn write_object(
    keys: &ColumnCells,
    values: &ColumnCells,
    places: std::ops::Range<usize>,
    out: &mut Vec<u8>,
) -> bool {
    let mut names = Vec::with_capacity(places.len());
    out.push(b'{');
    for at in places.clone() {
        if at > places.start {
            out.push(b',');
        }
        let start = out.len();
        write_name(keys, at, out);
        names.push(start..out.len());
        out.push(b':');
        values.write(at, out);
    }
    out.push(b'}');
    names.sort_unstable_by_key(|name| out.get(name.clone()));
    names.windows(2).all(|pair| match pair {
        [one, other] => out.get(one.clone()) != out.get(other.clone()),
        _ => true,
    })
}

/// Appends a map as a list of its keys with their values.
fn write_pairs(keys: &ColumnCells, values: &ColumnCells, places: std::ops::Range<usize>, out: &mut Vec<u8>) {
    out.push(b'[');
    for at in places.clone() {
        out.extend_from_slice(if at > places.start { b",[" } else { b"[" });
        keys.write(at, out);
        out.push(b',');
        values.write(at, out);
        out.push(b']');
    }
    out.push(b']');
}

/// Appends a key of any type as a JSON string.
fn write_name(keys: &ColumnCells, at: usize, out: &mut Vec<u8>) {
    let start = out.len();
    keys.write(at, out);
    if out.get(start) != Some(&b'"') {
        out.insert(start, b'"');
        out.push(b'"');
    }
}
