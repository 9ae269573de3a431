//! Type names in casts.

use sqlparser::ast::DataType;

use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::values::sql_type::SqlType;

/// The type written in a cast.
pub(super) fn sql_type(written: &DataType, place: QueryPosition) -> BindResult<SqlType> {
    let text = written.to_string();
    // The length of text is not part of its type.
    let is_text = matches!(
        written,
        DataType::Varchar(_) | DataType::Char(_) | DataType::CharVarying(_) | DataType::Character(_)
    );
    if is_text {
        return Ok(SqlType::Varchar);
    }
    let found = match written {
        DataType::Array(_) => SqlType::from_name(&text),
        DataType::TinyIntUnsigned(_) | DataType::UTinyInt => Some(SqlType::UTinyInt),
        DataType::USmallInt => Some(SqlType::USmallInt),
        DataType::UBigInt => Some(SqlType::UBigInt),
        DataType::HugeInt => Some(SqlType::HugeInt),
        DataType::Int8(_) => Some(SqlType::BigInt),
        DataType::Float(_) => Some(SqlType::Float),
        _ => SqlType::from_name(&text),
    };
    found.ok_or_else(|| {
        QueryRefusal::new(format!("the type `{text}` is not supported"), place).hint(
            "use BOOLEAN, INTEGER, BIGINT, HUGEINT, DOUBLE, FLOAT, DECIMAL(w,s), VARCHAR, DATE, TIME, \
             TIMESTAMP, INTERVAL, JSON, or lists such as BIGINT[]",
        )
    })
}
