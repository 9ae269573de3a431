//! Files that rowmill reads and writes are compatible with pyarrow and DuckDB, from the environment
//! that `scripts/prepare-python` creates.

use std::path::Path;
use std::process::Command;

use crate::support::{Place, each};
use serde_json::{Value, json};

/// Runs a Python script in the folder of a test; its output is JSON.
#[track_caller]
fn python(place: &Place, script: &str) -> Value {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let output = Command::new(&python).arg("-c").arg(script).current_dir(place.path("")).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{}: {error}; run `bash scripts/prepare-python` first", python.display())
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const SCHEMA: &str = r#"{"type":"object","properties":{
    "label":{"enum":["good","bad"]},
    "score":{"type":"number"},
    "count":{"type":"integer"},
    "sure":{"type":["boolean","null"]},
    "day":{"type":"string","format":"date"},
    "at":{"type":"string","format":"date-time"},
    "tags":{"type":"array","items":{"type":"string"}},
    "place":{"type":"object","properties":{"city":{"type":"string"},"zip":{"type":"integer"}},
        "required":["city","zip"],"additionalProperties":false},
    "free":{}},
    "required":["label","score","count","sure","day","at","tags","place","free"],"additionalProperties":false}"#;

/// Three rows whose results are the rows themselves; the last one fails.
fn typed_results(place: &Place) {
    let row = |count: i64, sure: &str, tags: &str, free: &str| {
        format!(
            "{{\"label\":\"good\",\"score\":0.5,\"count\":{count},\"sure\":{sure},\"day\":\"2024-02-29\",\
             \"at\":\"2024-02-29T10:00:00.5Z\",\"tags\":{tags},\"place\":{{\"city\":\"Köln\",\"zip\":50667}},\"free\":{free}}}\n"
        )
    };
    let rows = [
        row(1, "true", "[\"a\",\"b\"]", "1"),
        row(2, "null", "[]", "{\"x\":[1]}"),
        "{\"label\":\"no\"}\n".into(),
    ];
    place.write("rows.jsonl", rows.concat());
    place.write("schema.json", SCHEMA);
    let flags = ["-i", "rows.jsonl", "-o", "out.parquet", "-m", "passthrough", "--repairs", "0"];
    place.run(&[&flags[..], &["--json-schema", "schema.json", "-p", "{{row_json}}"]].concat()).code(3);
}

#[test]
fn a_table_of_results_opens_in_pyarrow_and_duckdb_with_the_documented_types() {
    let place = Place::new();
    typed_results(&place);
    let types = python(
        &place,
        "import json, pyarrow.parquet as pq\n\
         print(json.dumps({field.name: str(field.type) for field in pq.read_schema('out.parquet')}))",
    );
    let expected = json!({
        "id": "int64", "row_number": "int64", "ok": "bool", "label": "string", "score": "double", "count": "int64",
        "sure": "bool", "day": "date32[day]", "at": "timestamp[us, tz=UTC]", "tags": "list<element: string>",
        "place": "struct<city: string, zip: int64>", "free": "string",
        "error": "struct<type: string, message: string, status: int32, code: string, attempts: int64, raw_text: string>",
    });
    let types = types.as_object().unwrap();
    for (name, kind) in expected.as_object().unwrap() {
        if name == "error" {
            let found = types["error"].as_str().unwrap();
            assert!(found.starts_with("struct<type: string, message: string"), "{found}");
            continue;
        }
        assert_eq!(types.get(name), Some(kind), "{name}");
    }
    let rows = python(
        &place,
        "import json, pyarrow.parquet as pq\n\
         print(json.dumps(pq.read_table('out.parquet').to_pylist(), default=str))",
    );
    assert_eq!(each(rows.as_array().unwrap(), "/count"), [json!(1), json!(2), json!(null)]);
    assert_eq!(each(rows.as_array().unwrap(), "/tags"), [json!(["a", "b"]), json!([]), json!(null)]);
    assert_eq!(rows[0]["place"], json!({"city": "Köln", "zip": 50667}));
    assert_eq!(rows[0]["at"], "2024-02-29 10:00:00.500000+00:00");
    assert_eq!(rows[1]["free"], "{\"x\":[1]}");
    let counted = python(
        &place,
        "import duckdb, json\n\
         q = \"SELECT count(*), sum(count), max(place.city), max(day)::text, count(error) FROM 'out.parquet'\"\n\
         print(json.dumps(duckdb.execute(q).fetchone()))",
    );
    assert_eq!(counted, json!([3, 3, "Köln", "2024-02-29", 1]));
}

#[test]
fn files_that_pyarrow_and_duckdb_write_are_read_with_the_types_of_the_reference() {
    let place = Place::new();
    python(
        &place,
        "import datetime as d, decimal, duckdb, pyarrow as pa, pyarrow.parquet as pq\n\
         utc = d.timezone.utc\n\
         pq.write_table(pa.table({\n\
           'i': pa.array([1, None], pa.int32()), 'u': pa.array([2**64 - 1, 0], pa.uint64()),\n\
           'f': pa.array([0.1, None]), 'price': pa.array([decimal.Decimal('12.50'), None], pa.decimal128(10, 2)),\n\
           'day': pa.array([d.date(2024, 5, 1), None]), 'at': pa.array([d.datetime(2024, 5, 1, 10), None], pa.timestamp('us')),\n\
           'z': pa.array([d.datetime(2024, 5, 1, 10, 0, 0, 120000, utc), None], pa.timestamp('us', 'UTC')),\n\
           'time': pa.array([d.time(10, 30), None], pa.time64('us')), 'raw': pa.array([b'text', b'\\xff\\x00']),\n\
           'list': pa.array([[1, None], None], pa.list_(pa.int64())), 'struct': pa.array([{'a': {'b': True}}, None]),\n\
           'map': pa.array([[('k', 1)], None], pa.map_(pa.string(), pa.int64())),\n\
           'dict': pa.array(['x', 'y']).dictionary_encode(), 'large': pa.array(['é', None], pa.large_string()),\n\
         }), 'arrow.parquet', compression='zstd')\n\
         duckdb.execute(\"COPY (SELECT 7 AS n, 1.25::DECIMAL(5,2) AS d, DATE '2020-02-29' AS day, [1, 2] AS l, \
         {'a': 'b'} AS s, INTERVAL 3 DAY::VARCHAR AS v) TO 'duck.parquet'\")\n\
         print('null')",
    );
    let rows = |name: &str| {
        let flags = ["-o", "out.jsonl", "--overwrite", "-m", "passthrough", "-p", "x", "--include-input"];
        place.run(&[&["-i", name], &flags[..]].concat()).ok();
        each(&place.json("out.jsonl"), "/input")
    };
    let arrow = rows("arrow.parquet");
    assert_eq!(
        arrow[0],
        json!({
            "i": 1, "u": u64::MAX, "f": 0.1, "price": "12.50", "day": "2024-05-01", "at": "2024-05-01T10:00:00",
            "z": "2024-05-01T10:00:00.120000+00:00", "time": "10:30:00", "raw": "text", "list": [1, null],
            "struct": {"a": {"b": true}}, "map": {"k": 1}, "dict": "x", "large": "é",
        })
    );
    assert_eq!(
        (&arrow[1]["raw"], &arrow[1]["dict"], &arrow[1]["price"]),
        (&json!("/wA="), &json!("y"), &json!(null))
    );
    assert_eq!(
        rows("duck.parquet")[0],
        json!({"n": 7, "d": "1.25", "day": "2020-02-29", "l": [1, 2], "s": {"a": "b"}, "v": "3 days"})
    );
}

#[test]
fn queries_give_what_duckdb_gives_on_this_machine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join(".venv/bin/python");
    let output = Command::new(&python).arg(root.join("scripts/duckdb_answers.py")).arg("--check").output();
    let output = output.unwrap_or_else(|error| {
        panic!("{}: {error}; run `bash scripts/prepare-python` first", python.display())
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
