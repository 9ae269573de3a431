//! Values in SQLite's representation, chosen so that SQLite orders, compares and groups them as DuckDB does.
//!
//! Integers of up to 64 bits, booleans, dates, times and short decimals are integers; other numbers are
//! reals, with `NaN` as empty bytes, which sort after all numbers; everything that SQLite has no type for
//! becomes bytes that sort as the values do.

use rusqlite::types::{Value, ValueRef};

use super::datum::Datum;
use super::interval::SqlInterval;
use super::sql_type::SqlType;

/// The maximum digits of a decimal number that is stored as an integer.
const SHORT_DECIMAL: u8 = 18;

/// The prefixes of parts of a list or struct. The end is the smallest, and null is the greatest.
const END: u8 = 0;
const VALUE: u8 = 2;
const NULL: u8 = 3;

/// Encodes a value for SQLite.
pub(crate) fn encode_value(datum: Datum, kind: &SqlType) -> Value {
    match datum {
        Datum::Null => Value::Null,
        Datum::Boolean(truth) => Value::Integer(i64::from(truth)),
        Datum::Whole(number) | Datum::Decimal(number) => match i64::try_from(number) {
            Ok(small) if !is_wide(kind) => Value::Integer(small),
            _ => Value::Blob(wide_bytes(number).to_vec()),
        },
        Datum::Real(number) if number.is_nan() => Value::Blob(Vec::new()),
        Datum::Real(number) => Value::Real(number),
        Datum::Text(text) => Value::Text(text),
        Datum::Bytes(bytes) => Value::Blob(bytes),
        Datum::Date(days) => Value::Integer(i64::from(days)),
        Datum::Time(micros) | Datum::Timestamp(micros) => Value::Integer(micros),
        nested => {
            let mut bytes = Vec::new();
            write_body(&nested, kind, &mut bytes);
            Value::Blob(bytes)
        }
    }
}

/// Decodes a value from SQLite.
pub(crate) fn decode_value(value: ValueRef<'_>, kind: &SqlType) -> Datum {
    match (value, kind) {
        (ValueRef::Null, _) => Datum::Null,
        (ValueRef::Integer(number), SqlType::Boolean) => Datum::Boolean(number != 0),
        (ValueRef::Integer(number), SqlType::Decimal(..)) => Datum::Decimal(number.into()),
        (ValueRef::Integer(number), SqlType::Date) => Datum::Date(i32::try_from(number).unwrap_or(i32::MAX)),
        (ValueRef::Integer(number), SqlType::Time) => Datum::Time(number),
        (ValueRef::Integer(number), SqlType::Timestamp | SqlType::TimestampTz) => Datum::Timestamp(number),
        (ValueRef::Integer(number), SqlType::Float | SqlType::Double) => Datum::Real(number as f64),
        (ValueRef::Integer(number), _) => Datum::Whole(number.into()),
        (ValueRef::Real(number), _) => Datum::Real(number),
        (ValueRef::Text(bytes), _) => Datum::Text(String::from_utf8_lossy(bytes).into_owned()),
        (ValueRef::Blob(_), SqlType::Float | SqlType::Double) => Datum::Real(f64::NAN),
        (ValueRef::Blob(bytes), SqlType::Blob) => Datum::Bytes(bytes.to_vec()),
        (ValueRef::Blob(bytes), kind) => EncodedReader { bytes }.body(kind).unwrap_or(Datum::Null),
    }
}

/// The elements of a list, encoded for SQLite.
pub(crate) fn elements(list: &[u8], item: &SqlType) -> Vec<Value> {
    match (EncodedReader { bytes: list }).body(&SqlType::List(Box::new(item.clone()))) {
        Some(Datum::List(items)) => items.into_iter().map(|datum| encode_value(datum, item)).collect(),
        _ => Vec::new(),
    }
}

/// Whether the numbers of a type can be too long for an integer in SQLite.
pub(crate) fn is_wide(kind: &SqlType) -> bool {
    match kind {
        SqlType::HugeInt | SqlType::UBigInt => true,
        SqlType::Decimal(digits, _) => *digits > SHORT_DECIMAL,
        _ => false,
    }
}

/// Whether the values of a type are texts or numbers in SQLite, and never bytes except for `NaN`.
pub(crate) fn is_plain(kind: &SqlType) -> bool {
    match kind {
        SqlType::Varchar | SqlType::Boolean => true,
        SqlType::Date | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => true,
        kind => kind.is_number() && !is_wide(kind),
    }
}

fn wide_bytes(number: i128) -> [u8; 16] {
    (number.cast_unsigned() ^ (1 << 127)).to_be_bytes()
}

fn write_body(datum: &Datum, kind: &SqlType, out: &mut Vec<u8>) {
    let signed = |number: i64| (number.cast_unsigned() ^ (1 << 63)).to_be_bytes();
    match (datum, kind) {
        (Datum::List(items), SqlType::List(item)) => {
            items.iter().for_each(|datum| write_part(datum, item, out));
            out.push(END);
        }
        (Datum::Struct(values), SqlType::Struct(fields)) => {
            values.iter().zip(fields).for_each(|(datum, (_, field))| write_part(datum, field, out));
        }
        (Datum::Interval(interval), _) => {
            for number in [i64::from(interval.months), i64::from(interval.days), interval.micros] {
                out.extend(signed(number));
            }
        }
        (Datum::Boolean(truth), _) => out.push(u8::from(*truth)),
        (Datum::Whole(number) | Datum::Decimal(number), _) => out.extend(wide_bytes(*number)),
        (Datum::Real(number), _) => out.extend(real_bytes(*number)),
        (Datum::Date(days), _) => out.extend(signed(i64::from(*days))),
        (Datum::Time(micros) | Datum::Timestamp(micros), _) => out.extend(signed(*micros)),
        (Datum::Text(text), _) => write_bytes(text.as_bytes(), out),
        (Datum::Bytes(bytes), _) => write_bytes(bytes, out),
        (Datum::Null | Datum::List(_) | Datum::Struct(_), _) => {}
    }
}

fn write_part(datum: &Datum, kind: &SqlType, out: &mut Vec<u8>) {
    if datum.is_null() {
        out.push(NULL);
    } else {
        out.push(VALUE);
        write_body(datum, kind, out);
    }
}

/// Bytes that end with two zeros; a zero inside them is followed by 255.
fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xff);
        }
    }
    out.extend([0, 0]);
}

fn real_bytes(number: f64) -> [u8; 8] {
    let bits = match number {
        _ if number.is_nan() => return [0xff; 8],
        _ if number == 0.0 => 0,
        _ => number.to_bits(),
    };
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    ordered.to_be_bytes()
}

struct EncodedReader<'b> {
    bytes: &'b [u8],
}

impl EncodedReader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*taken)
    }

    fn signed(&mut self) -> Option<i64> {
        Some((u64::from_be_bytes(self.take()?) ^ (1 << 63)).cast_signed())
    }

    fn part(&mut self, kind: &SqlType) -> Option<Option<Datum>> {
        match self.take::<1>()? {
            [END] => Some(None),
            [NULL] => Some(Some(Datum::Null)),
            _ => self.body(kind).map(Some),
        }
    }

    fn body(&mut self, kind: &SqlType) -> Option<Datum> {
        Some(match kind {
            SqlType::List(item) => {
                let mut items = Vec::new();
                while let Some(datum) = self.part(item)? {
                    items.push(datum);
                }
                Datum::List(items)
            }
            SqlType::Struct(fields) => {
                let parts = fields.iter().map(|(_, field)| self.part(field)?);
                Datum::Struct(parts.collect::<Option<_>>()?)
            }
            SqlType::Interval => {
                let (months, days) = (self.signed()?, self.signed()?);
                let micros = self.signed()?;
                Datum::Interval(SqlInterval {
                    months: months.try_into().ok()?,
                    days: days.try_into().ok()?,
                    micros,
                })
            }
            SqlType::Boolean => Datum::Boolean(self.take::<1>()? == [1]),
            SqlType::Float | SqlType::Double => Datum::Real(self.real()?),
            SqlType::Date => Datum::Date(self.signed()?.try_into().ok()?),
            SqlType::Time => Datum::Time(self.signed()?),
            SqlType::Timestamp | SqlType::TimestampTz => Datum::Timestamp(self.signed()?),
            SqlType::Varchar | SqlType::Json | SqlType::Other(_) => {
                Datum::Text(String::from_utf8(self.text()?).ok()?)
            }
            SqlType::Blob => Datum::Bytes(self.text()?),
            SqlType::Decimal(..) => Datum::Decimal(self.wide()?),
            SqlType::Null => Datum::Null,
            _ => Datum::Whole(self.wide()?),
        })
    }

    fn wide(&mut self) -> Option<i128> {
        Some((u128::from_be_bytes(self.take()?) ^ (1 << 127)).cast_signed())
    }

    fn real(&mut self) -> Option<f64> {
        let bytes = self.take()?;
        if bytes == [0xff; 8] {
            return Some(f64::NAN);
        }
        let bits = u64::from_be_bytes(bytes);
        Some(f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits }))
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            match self.take::<1>()? {
                [0] => match self.take::<1>()? {
                    [0xff] => text.push(0),
                    _ => return Some(text),
                },
                [byte] => text.push(byte),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(datum: &Datum, kind: &SqlType) -> Value {
        encode_value(datum.clone(), kind)
    }

    #[test]
    fn bytes_are_ordered_as_the_values_are_and_read_back() {
        let list = SqlType::List(Box::new(SqlType::Double));
        let texts = SqlType::List(Box::new(SqlType::Varchar));
        let object = SqlType::Struct(vec![("a".into(), SqlType::BigInt), ("b".into(), SqlType::Varchar)]);
        let reals =
            |numbers: &[f64]| Datum::List(numbers.iter().map(|number| Datum::Real(*number)).collect());
        let words =
            |words: &[&str]| Datum::List(words.iter().map(|word| Datum::Text((*word).into())).collect());
        let pair = |number: Datum, text: &str| Datum::Struct(vec![number, Datum::Text(text.into())]);
        let cases: Vec<(SqlType, Vec<Datum>)> = vec![
            (SqlType::HugeInt, [i128::MIN, -1, 0, 1, i128::MAX].map(Datum::Whole).to_vec()),
            (
                list,
                vec![
                    reals(&[]),
                    reals(&[f64::NEG_INFINITY]),
                    reals(&[-1.5]),
                    reals(&[0.0, 2.0]),
                    reals(&[1.5]),
                    reals(&[1.5, -3.0]),
                    reals(&[f64::NAN]),
                    Datum::List(vec![Datum::Null]),
                ],
            ),
            (
                texts,
                vec![
                    words(&[""]),
                    words(&["", "b"]),
                    words(&["\0"]),
                    words(&["a"]),
                    words(&["a", "a"]),
                    words(&["ab"]),
                ],
            ),
            (
                object,
                vec![
                    pair(Datum::Whole(-1), "z"),
                    pair(Datum::Whole(7), "a"),
                    pair(Datum::Whole(7), "b"),
                    pair(Datum::Null, "a"),
                ],
            ),
        ];
        for (kind, ordered) in cases {
            for pair in ordered.windows(2) {
                let (Value::Blob(left), Value::Blob(right)) =
                    (bytes(&pair[0], &kind), bytes(&pair[1], &kind))
                else {
                    panic!("{kind} is not bytes")
                };
                assert!(left < right, "{pair:?}");
                assert!(pair[0].order(&pair[1]).is_lt(), "{pair:?}");
            }
            for datum in ordered {
                let encoded = bytes(&datum, &kind);
                let read = decode_value(ValueRef::from(&encoded), &kind);
                assert!(read.order(&datum).is_eq(), "{datum:?} {read:?}");
            }
        }
    }
}
