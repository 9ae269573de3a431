//! The form of each type's values in rows.

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeListBuilder, Int32Builder, LargeListBuilder, ListBuilder, MapBuilder, StringBuilder,
};
use arrow_array::types::{Float16Type, Int8Type};
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields};
use parquet::data_type::{ByteArray, ByteArrayType, FixedLenByteArrayType, Int32Type, Int96, Int96Type};
use rowmill_core::ports::ColumnKind;

use super::support::{Folder, Levels, array, drain, open, texts, values};

#[test]
fn every_type_of_number_is_written_exactly() {
    let half = Float16Array::from(vec![<Float16Type as ArrowPrimitiveType>::Native::from_f32(0.5); 1]);
    let cases: Vec<(ArrayRef, &[&str])> = vec![
        (array(Int8Array::from(vec![Some(-128), None, Some(127)])), &["-128", "null", "127"]),
        (array(Int16Array::from(vec![i16::MIN, i16::MAX])), &["-32768", "32767"]),
        (array(Int32Array::from(vec![i32::MIN, i32::MAX])), &["-2147483648", "2147483647"]),
        (array(Int64Array::from(vec![i64::MIN, i64::MAX])), &["-9223372036854775808", "9223372036854775807"]),
        (array(UInt8Array::from(vec![0, 255])), &["0", "255"]),
        (array(UInt16Array::from(vec![65535])), &["65535"]),
        (array(UInt32Array::from(vec![u32::MAX])), &["4294967295"]),
        (array(UInt64Array::from(vec![u64::MAX])), &["18446744073709551615"]),
        (array(half), &["0.5"]),
        (array(Float32Array::from(vec![0.1, f32::NAN, 1.0])), &["0.1", "null", "1.0"]),
        (
            array(Float64Array::from(vec![0.1, -0.0, 1e300, f64::INFINITY, 5e-324])),
            &["0.1", "-0.0", "1e+300", "null", "5e-324"],
        ),
        (array(BooleanArray::from(vec![Some(true), None, Some(false)])), &["true", "null", "false"]),
        (array(NullArray::new(2)), &["null", "null"]),
    ];
    let folder = Folder::new();
    for (values_in, expected) in cases {
        let kind = values_in.data_type().clone();
        assert_eq!(values(&folder.write("a.parquet", vec![("a", values_in)])), expected, "{kind}");
    }
}

#[test]
fn decimals_are_text_with_all_their_digits() {
    let folder = Folder::new();
    let short =
        Decimal128Array::from(vec![Some(1250), Some(-5), None]).with_precision_and_scale(10, 2).unwrap();
    let long = Decimal128Array::from(vec![10i128.pow(37)]).with_precision_and_scale(38, 3).unwrap();
    let huge =
        Decimal256Array::from_iter_values([short.value(0).into()]).with_precision_and_scale(60, 2).unwrap();
    let small = Decimal32Array::from(vec![7]).with_precision_and_scale(9, 4).unwrap();
    let middle = Decimal64Array::from(vec![70]).with_precision_and_scale(18, 0).unwrap();
    let cases: Vec<(ArrayRef, &[&str])> = vec![
        (array(short), &[r#""12.50""#, r#""-0.05""#, "null"]),
        (array(long), &[r#""10000000000000000000000000000000000.000""#]),
        (array(huge), &[r#""12.50""#]),
        (array(small), &[r#""0.0007""#]),
        (array(middle), &[r#""70""#]),
    ];
    for (values_in, expected) in cases {
        let kind = values_in.data_type().clone();
        let path = folder.write("a.parquet", vec![("a", values_in)]);
        assert_eq!(values(&path), expected, "{kind}");
    }
    let columns = open(&folder.path("a.parquet")).unwrap().columns().unwrap().unwrap();
    assert_eq!(columns.first().unwrap().kind, ColumnKind::Decimal(18, 0));
}

#[test]
fn texts_and_bytes_are_text_however_they_are_stored() {
    let words = vec![Some("café \"\n\u{1}"), None, Some("")];
    let bytes: Vec<Option<&[u8]>> = vec![Some(b"caf\xc3\xa9"), None, Some(b"\xff\x00")];
    let expected_text = [r#""café \"\n\u0001""#, "null", r#""""#];
    let expected_bytes = [r#""café""#, "null", r#""/wA=""#];
    let dictionary: DictionaryArray<Int8Type> = words.clone().into_iter().collect();
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(
        vec![Some(*b"ab"), None, Some([0xff, 0])].into_iter(),
        2,
    )
    .unwrap();
    let cases: Vec<(ArrayRef, [&str; 3])> = vec![
        (array(StringArray::from(words.clone())), expected_text),
        (array(LargeStringArray::from(words.clone())), expected_text),
        (array(StringViewArray::from(words)), expected_text),
        (array(dictionary), expected_text),
        (array(BinaryArray::from(bytes.clone())), expected_bytes),
        (array(LargeBinaryArray::from(bytes.clone())), expected_bytes),
        (array(BinaryViewArray::from(bytes)), expected_bytes),
        (array(fixed), [r#""ab""#, "null", r#""/wA=""#]),
    ];
    let folder = Folder::new();
    for (values_in, expected) in cases {
        let kind = values_in.data_type().clone();
        assert_eq!(values(&folder.write("a.parquet", vec![("a", values_in)])), expected, "{kind}");
    }
}

#[test]
fn days_and_times_are_iso_text() {
    let second = 1_714_557_600i64;
    let cases: Vec<(ArrayRef, &[&str])> = vec![
        (array(Date32Array::from(vec![Some(19_844), None])), &[r#""2024-05-01""#, "null"]),
        (array(Date64Array::from(vec![second * 1000])), &[r#""2024-05-01""#]),
        (array(Time32SecondArray::from(vec![36_000])), &[r#""10:00:00""#]),
        (array(Time32MillisecondArray::from(vec![36_000_500])), &[r#""10:00:00.500000""#]),
        (array(Time64MicrosecondArray::from(vec![1])), &[r#""00:00:00.000001""#]),
        (array(Time64NanosecondArray::from(vec![1])), &[r#""00:00:00.000000001""#]),
        (array(TimestampSecondArray::from(vec![second])), &[r#""2024-05-01T10:00:00""#]),
        (
            array(TimestampMillisecondArray::from(vec![second * 1000 + 1])),
            &[r#""2024-05-01T10:00:00.001000""#],
        ),
        (
            array(TimestampMicrosecondArray::from(vec![second * 1_000_000]).with_timezone("Europe/Berlin")),
            &[r#""2024-05-01T10:00:00+00:00""#],
        ),
        (
            array(TimestampNanosecondArray::from(vec![second * 1_000_000_000]).with_timezone("UTC")),
            &[r#""2024-05-01T10:00:00+00:00""#],
        ),
        (array(DurationSecondArray::from(vec![90])), &[r#""PT1M30S""#]),
        (array(DurationMicrosecondArray::from(vec![1])), &[r#""PT0.000001S""#]),
        (array(IntervalYearMonthArray::from(vec![14])), &[r#""P1Y2M""#]),
    ];
    let folder = Folder::new();
    for (values_in, expected) in cases {
        let kind = values_in.data_type().clone();
        assert_eq!(values(&folder.write("a.parquet", vec![("a", values_in)])), expected, "{kind}");
    }
}

#[test]
fn what_only_other_writers_write_is_read_too() {
    let folder = Folder::new();
    let interval: Vec<u8> = [14u32, 3, 500].iter().flat_map(|part| part.to_le_bytes()).collect();
    let path = folder.write_raw::<FixedLenByteArrayType>(
        "a.parquet",
        "message m { required fixed_len_byte_array(12) a (INTERVAL); }",
        &[ByteArray::from(interval).into()],
        Levels(None, None),
    );
    assert_eq!(values(&path), [r#""P1Y2M3DT0.5S""#]);
    let path = folder.write_raw::<FixedLenByteArrayType>(
        "a.parquet",
        "message m { required fixed_len_byte_array(16) a (UUID); }",
        &[ByteArray::from((0u8..16).collect::<Vec<_>>()).into()],
        Levels(None, None),
    );
    assert_eq!(values(&path), [r#""00010203-0405-0607-0809-0a0b0c0d0e0f""#]);
    let mut old = Int96::new();
    // The last second of the year 9999, which 64-bit nanoseconds cannot represent.
    let nanoseconds = 86_399_000_000_000u64;
    old.set_data(nanoseconds as u32, (nanoseconds >> 32) as u32, 5_373_484);
    let path = folder.write_raw::<Int96Type>(
        "a.parquet",
        "message m { required int96 a; }",
        &[old],
        Levels(None, None),
    );
    assert_eq!(values(&path), [r#""9999-12-31T23:59:59""#]);
    let path = folder.write_raw::<ByteArrayType>(
        "a.parquet",
        "message m { required binary a (ENUM); }",
        &["x".into()],
        Levels(None, None),
    );
    assert_eq!(values(&path), [r#""x""#]);
    let path = folder.write_raw::<Int32Type>(
        "a.parquet",
        "message m { repeated int32 a; }",
        &[1, 2, 3],
        Levels(Some(&[1, 1, 0, 1]), Some(&[0, 1, 0, 0])),
    );
    assert_eq!(values(&path), ["[1,2]", "[]", "[3]"]);
}

#[test]
fn text_that_is_no_utf_8_makes_one_bad_row() {
    let folder = Folder::new();
    let path = folder.write_raw::<ByteArrayType>(
        "a.parquet",
        "message m { required binary a (UTF8); }",
        &["x".into(), vec![0xe9].into(), "z".into()],
        Levels(None, None),
    );
    let (rows, problem) = drain(open(&path).unwrap().open().unwrap().as_mut());
    assert_eq!(problem, None);
    let shown: Vec<_> =
        rows.iter().map(|row| row.as_ref().map_or_else(|bad| &*bad.message, |row| row.json_text())).collect();
    assert_eq!(shown, [r#"{"a":"x"}"#, "Row 2: column `a` is not valid UTF-8", r#"{"a":"z"}"#]);
}

#[test]
fn every_row_that_is_no_utf_8_is_bad_by_itself_however_many_are_read_together() {
    let folder = Folder::new();
    // A text that ends inside a character must not be completed by the next row.
    let value = |at: usize| match at % 100 {
        7 => vec![b'a', 0xc3],
        8 => vec![0xa9, b'b'],
        _ => format!("é\n{at}").into_bytes(),
    };
    let texts: Vec<_> = (0..3_000).map(|at| value(at).into()).collect();
    let schema = "message m { required binary a (UTF8); }";
    let path = folder.write_raw::<ByteArrayType>("a.parquet", schema, &texts, Levels(None, None));
    let (rows, problem) = drain(open(&path).unwrap().open().unwrap().as_mut());
    assert_eq!((rows.len(), problem), (3_000, None));
    for (at, row) in rows.iter().enumerate() {
        match row {
            Ok(row) => assert_eq!(row.json_text(), format!("{{\"a\":\"é\\n{at}\"}}")),
            Err(bad) => {
                assert!(matches!(at % 100, 7 | 8), "{}", bad.message);
                assert_eq!(bad.message, format!("Row {}: column `a` is not valid UTF-8", at + 1));
            }
        }
    }
    assert_eq!(rows.iter().filter(|row| row.is_err()).count(), 60);
}

#[test]
fn nested_values_stay_nested() {
    let mut lists = ListBuilder::new(LargeListBuilder::new(Int32Builder::new()));
    lists.values().values().append_value(1);
    lists.values().values().append_null();
    lists.values().append(true);
    lists.values().append(true);
    lists.append(true);
    lists.append(false);
    lists.append(true);
    let mut fixed = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    for (number, there) in [(1, true), (3, false), (5, true)] {
        fixed.values().append_slice(&[number, number + 1]);
        fixed.append(there);
    }
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("x\"");
    map.values().append_value(1);
    map.keys().append_value("y");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(false).unwrap();
    map.append(true).unwrap();
    let mut numbers = MapBuilder::new(None, Int32Builder::new(), StringBuilder::new());
    for number in [7, 8, 9] {
        numbers.keys().append_value(number);
        numbers.values().append_value("v");
        numbers.append(true).unwrap();
    }
    let inner = Fields::from(vec![Field::new("s", DataType::Utf8, true)]);
    let outer = Fields::from(vec![
        Field::new("o\"o", DataType::Struct(inner.clone()), true),
        Field::new("d", DataType::Date32, true),
    ]);
    let validity = |bits: [bool; 3]| Some(BooleanArray::from(bits.to_vec()).values().clone().into());
    let inner = StructArray::new(
        inner,
        vec![array(StringArray::from(vec![Some("t"), None, None]))],
        validity([true, false, true]),
    );
    let days = array(Date32Array::from(vec![Some(0), None, Some(1)]));
    let outer = StructArray::new(outer, vec![array(inner), days], validity([true, true, false]));
    let folder = Folder::new();
    let path = folder.write(
        "a.parquet",
        vec![
            ("lists", array(lists.finish())),
            ("fixed", array(fixed.finish())),
            ("map", array(map.finish())),
            ("numbers", array(numbers.finish())),
            ("struct", Arc::new(outer)),
        ],
    );
    assert_eq!(
        texts(&path),
        [
            r#"{"lists":[[1,null],[]],"fixed":[1,2],"map":{"x\"":1,"y":null},"numbers":{"7":"v"},"struct":{"o\"o":{"s":"t"},"d":"1970-01-01"}}"#,
            r#"{"lists":null,"fixed":null,"map":null,"numbers":{"8":"v"},"struct":{"o\"o":null,"d":null}}"#,
            r#"{"lists":[],"fixed":[5,6],"map":{},"numbers":{"9":"v"},"struct":null}"#,
        ]
    );
}

#[test]
fn a_map_with_a_key_twice_keeps_both_as_pairs() {
    let folder = Folder::new();
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for (entries, is_there) in [(&[("a", 1), ("b", 2)][..], true), (&[("a", 1), ("b", 2), ("a", 3)], true)] {
        for (key, value) in entries {
            map.keys().append_value(key);
            map.values().append_value(*value);
        }
        map.append(is_there).unwrap();
    }
    let path = folder.write("map.parquet", vec![("m", array(map.finish()))]);
    assert_eq!(texts(&path), [r#"{"m":{"a":1,"b":2}}"#, r#"{"m":[["a",1],["b",2],["a",3]]}"#]);
}
