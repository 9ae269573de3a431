//! DuckDB's names of column types.

use arrow_schema::DataType;

use super::shape::ValueShape;

/// The type of a column that is decoded in this way.
pub(super) fn sql_type(shape: &ValueShape, decoded: &DataType) -> String {
    named(shape, Some(decoded))
}

/// The type of a column that files store differently.
pub(super) fn joined_type(shape: &ValueShape) -> String {
    named(shape, None)
}

fn named(shape: &ValueShape, decoded: Option<&DataType>) -> String {
    use DataType as T;
    let plain = match shape {
        ValueShape::Null => "NULL",
        ValueShape::Boolean => "BOOLEAN",
        ValueShape::Integer => match decoded {
            Some(T::Int8) => "TINYINT",
            Some(T::Int16) => "SMALLINT",
            Some(T::Int32) => "INTEGER",
            Some(T::UInt8) => "UTINYINT",
            Some(T::UInt16) => "USMALLINT",
            Some(T::UInt32) => "UINTEGER",
            Some(T::UInt64) => "UBIGINT",
            Some(_) => "BIGINT",
            None => "HUGEINT",
        },
        ValueShape::Real => match decoded {
            Some(T::Float16 | T::Float32) => "FLOAT",
            _ => "DOUBLE",
        },
        ValueShape::Decimal(digits, scale @ 0..) if *digits <= 38 => {
            return format!("DECIMAL({digits},{scale})");
        }
        ValueShape::Decimal(..) => "OTHER DECIMAL",
        ValueShape::Text => "VARCHAR",
        ValueShape::Bytes => "BLOB",
        ValueShape::Uuid => "UUID",
        ValueShape::Date => "DATE",
        ValueShape::Time => "TIME",
        ValueShape::Timestamp { utc: false } => "TIMESTAMP",
        ValueShape::Timestamp { utc: true } => "TIMESTAMPTZ",
        ValueShape::Duration | ValueShape::Interval => "INTERVAL",
        ValueShape::Map(..) => "MAP",
        ValueShape::List(item) => {
            let decoded = match decoded {
                Some(T::List(field) | T::LargeList(field) | T::ListView(field) | T::LargeListView(field)) => {
                    Some(field)
                }
                Some(T::FixedSizeList(field, _)) => Some(field),
                _ => None,
            };
            return format!("{}[]", named(item, decoded.map(|field| field.data_type())));
        }
        ValueShape::Struct(fields) => {
            let decoded = |at: usize| match decoded {
                Some(T::Struct(fields)) => fields.get(at).map(|field| field.data_type()),
                _ => None,
            };
            let fields = fields.iter().enumerate();
            let fields = fields.map(|(at, (name, shape))| {
                format!("\"{}\" {}", name.replace('"', "\"\""), named(shape, decoded(at)))
            });
            return format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "));
        }
    };
    plain.to_owned()
}
