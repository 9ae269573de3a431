//! Tables that are made from envelopes and read back.

use std::fs;

use crate::tables_support::{Desk, PLAIN, columns, failed, ok, records};
use rowmill_data::output::OutputClaimMode;
use rowmill_data::table::{InputRowInclusion, TableFormat, TableLayout, TableTarget};
use rowmill_types::ProblemCode;
use serde_json::json;

const SCHEMA: &str = r##"{
  "type": "object",
  "properties": {
    "label": {"enum": ["good", "bad"]},
    "count": {"type": "integer"},
    "score": {"type": ["number", "null"]},
    "sure": {"type": "boolean"},
    "day": {"type": "string", "format": "date"},
    "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
    "tags": {"type": "array", "items": {"type": "string"}},
    "who": {"$ref": "#/$defs/person"},
    "people": {"type": "array", "items": {"$ref": "#/$defs/person"}},
    "free": {"type": "object"},
    "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]}
  },
  "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}}
}"##;

#[test]
fn a_schema_gives_typed_columns_with_nested_values_and_nulls() {
    let desk = Desk::new(&[
        ok(
            1,
            r#"{"label":"good","count":3.0,"score":0.5,"sure":true,"day":"2026-11-17","at":"2026-11-17T01:00:00+01:00","tags":["ä","日本",null],"who":{"name":"Ann","age":null},"people":[{"name":"Bo"},null],"free":{"k":[1]},"either":"x"}"#,
        ),
        ok(
            2,
            r#"{"label":"bad","count":-7,"score":null,"sure":null,"day":null,"at":null,"tags":[],"who":null,"people":null,"free":null,"either":1}"#,
        ),
        failed(3),
    ]);
    let batch = desk.with_schema(SCHEMA).parquet(PLAIN);
    assert_eq!(
        columns(&batch),
        [
            "id Int64",
            "row_number Int64",
            "ok Boolean",
            "label Utf8",
            "count Int64",
            "score Float64",
            "sure Boolean",
            "day Date32",
            "at Timestamp(µs, \"UTC\")",
            "tags List(Utf8, field: 'element')",
            "who Struct(\"name\": Utf8, \"age\": Int64)",
            "people List(Struct(\"name\": Utf8, \"age\": Int64), field: 'element')",
            "free Utf8",
            "either Utf8",
            "error Struct(\"type\": Utf8, \"message\": Utf8, \"status\": Int64, \"code\": Utf8, \"attempts\": Int64, \"raw_text\": Utf8)",
        ]
    );
    let rows = records(&batch);
    assert_eq!(
        rows[0],
        json!({"id": 1, "row_number": 1, "ok": true, "label": "good", "count": 3, "score": 0.5, "sure": true,
            "day": "2026-11-17", "at": "2026-11-17T00:00:00Z", "tags": ["ä", "日本", null],
            "who": {"name": "Ann", "age": null}, "people": [{"name": "Bo", "age": null}, null],
            "free": "{\"k\":[1]}", "either": "\"x\"", "error": null})
    );
    assert_eq!(rows[1]["tags"], json!([]), "an empty list is not a null");
    assert_eq!((&rows[1]["who"], &rows[1]["either"]), (&json!(null), &json!("1")));
    assert_eq!(rows[2]["label"], json!(null));
    assert_eq!(
        rows[2]["error"],
        json!({"type": "ServerError", "message": "overloaded", "status": 503, "code": null, "attempts": 5, "raw_text": null})
    );
}

#[test]
fn a_value_that_does_not_fit_its_type_makes_the_column_text_and_loses_nothing() {
    let schema = r#"{"properties":{"n":{"type":"integer"},"x":{"type":"number"},"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},"list":{"type":"array","items":{"type":"integer"}}}}"#;
    let desk = Desk::new(&[
        ok(1, r#"{"n":1,"x":0.5,"day":"2026-11-17","at":"2026-11-17T00:00:00Z","list":[1]}"#),
        ok(
            2,
            r#"{"n":123456789012345678901234567890,"x":12345678901234567891,"day":"soon","at":"2026-11-17T00:00:00.123456789Z","list":[18446744073709551616],"more":true}"#,
        ),
    ]);
    let batch = desk.with_schema(schema).parquet(PLAIN);
    assert_eq!(
        columns(&batch)[3..9],
        ["n Utf8", "x Utf8", "day Utf8", "at Utf8", "list Utf8", "more Boolean"],
    );
    let rows = records(&batch);
    assert_eq!((&rows[0]["n"], &rows[0]["x"], &rows[0]["list"]), (&json!("1"), &json!("0.5"), &json!("[1]")));
    assert_eq!(rows[1]["n"], "123456789012345678901234567890");
    assert_eq!(rows[1]["x"], "12345678901234567891");
    assert_eq!((&rows[1]["day"], &rows[1]["at"]), (&json!("soon"), &json!("2026-11-17T00:00:00.123456789Z")));
    assert_eq!((&rows[1]["list"], &rows[1]["more"]), (&json!("[18446744073709551616]"), &json!(true)));
}

#[test]
fn without_a_schema_types_come_from_the_values() {
    let desk = Desk::new(&[
        ok(1, r#"{"i":1,"f":1,"t":"a","m":1,"o":{"a":1},"n":null}"#),
        ok(2, r#"{"i":9007199254740993,"f":2.5,"t":"b","m":"x","o":[1,2]}"#),
    ]);
    let batch = desk.parquet(PLAIN);
    assert_eq!(columns(&batch)[3..9], ["i Int64", "f Float64", "t Utf8", "m Utf8", "o Utf8", "n Utf8"]);
    let rows = records(&batch);
    assert_eq!(rows[1]["i"], json!(9_007_199_254_740_993_i64));
    assert_eq!((&rows[0]["m"], &rows[1]["m"]), (&json!("1"), &json!("\"x\"")));
    assert_eq!((&rows[0]["o"], &rows[1]["o"]), (&json!("{\"a\":1}"), &json!("[1,2]")));
}

#[test]
fn text_results_and_text_ids_are_text() {
    let named = ok(1, "\"one\\ntwo\"").replacen("\"id\":1", "\"id\":\"r-1\"", 1);
    let batch = Desk::new(&[named]).parquet(PLAIN);
    assert_eq!(columns(&batch)[..4], ["id Utf8", "row_number Int64", "ok Boolean", "result Utf8"]);
    assert_eq!(records(&batch)[0]["result"], "one\ntwo");
    let mixed = [ok(1, "\"text\""), ok(2, r#"{"a":1}"#)];
    let rows = records(&Desk::new(&mixed).parquet(PLAIN));
    assert_eq!((&rows[0]["result"], &rows[0]["a"]), (&json!("text"), &json!(null)));
    assert_eq!((&rows[1]["result"], &rows[1]["a"]), (&json!(null), &json!(1)));
}

#[test]
fn fields_of_results_that_are_named_like_the_envelopes_get_a_prefix() {
    let desk = Desk::new(&[ok(1, r#"{"id":"x","ok":1,"error":2,"result.id":3,"fine":4}"#)]);
    let text = desk.text(TableFormat::Csv, PLAIN);
    assert_eq!(
        text,
        "id,row_number,ok,result.id,result.ok,result.error,result.result.id,fine,error_type,error_message\n\
         1,1,true,x,1,2,3,4,,\n"
    );
}

#[test]
fn csv_quotes_what_it_must_and_changes_nothing() {
    let desk = Desk::new(&[
        ok(1, r#"{"a":"x, \"y\"\nz","b":{"k":[1.50,"é"]},"c":"=1+1"}"#),
        ok(2, r#"{"c":"@a","b":1e3,"a":""}"#),
        failed(3),
    ]);
    assert_eq!(
        desk.text(TableFormat::Csv, PLAIN),
        "id,row_number,ok,a,b,c,error_type,error_message\n\
         1,1,true,\"x, \"\"y\"\"\nz\",\"{\"\"k\"\":[1.50,\"\"é\"\"]}\",=1+1,,\n\
         2,2,true,,1e3,@a,,\n\
         3,3,false,,,,ServerError,overloaded\n"
    );
    let tsv = desk.text(TableFormat::Tsv, PLAIN);
    assert!(tsv.starts_with("id\trow_number\tok\ta\tb\tc\terror_type\terror_message\n"), "{tsv}");
}

#[test]
fn the_columns_of_a_table_without_rows_come_from_the_schema() {
    let desk = Desk::new(&[]).with_schema(r#"{"properties":{"z":{"type":"integer"},"a":{"type":"string"}}}"#);
    assert_eq!(desk.text(TableFormat::Csv, PLAIN), "id,row_number,ok,z,a,error_type,error_message\n");
    assert_eq!(Desk::new(&[]).parquet(PLAIN).num_rows(), 0);
}

#[test]
fn input_rows_become_columns_of_their_own() {
    let with_input = ok(1, r#"{"a":1}"#).replacen("}\n", ",\"input\":{\"a\":\"x\",\"id\":7}}\n", 1);
    let desk = Desk::new(&[with_input]);
    let kept = (TableLayout::Envelope, InputRowInclusion::Included);
    assert_eq!(
        desk.text(TableFormat::Csv, kept),
        "id,row_number,ok,a,error_type,error_message,input.a,input.id\n1,1,true,1,,,x,7\n"
    );
    assert_eq!(
        desk.text(TableFormat::Csv, PLAIN),
        "id,row_number,ok,a,error_type,error_message\n1,1,true,1,,\n"
    );
    assert_eq!(desk.text(TableFormat::Jsonl, PLAIN), ok(1, r#"{"a":1}"#), "without the input");
    assert_eq!(columns(&desk.parquet(kept))[5..], ["input.a Utf8", "input.id Int64"]);
}

#[test]
fn a_flat_table_has_the_input_then_the_result_then_the_envelope() {
    let row = |number, result: &str, input: &str| {
        ok(number, result).replacen("}\n", &format!(",\"input\":{input}}}\n"), 1)
    };
    let desk = Desk::new(&[
        row(1, r#"{"label":"good","new":1}"#, r#"{"text":"t","label":"old","n":1.50,"_ok":"mine"}"#),
        failed(2).replacen("}\n", ",\"input\":{\"text\":\"u\",\"input_label\":\"kept\"}}\n", 1),
        failed(3).replacen("}\n", ",\"input\":null}\n", 1),
    ]);
    let flat = (TableLayout::Flat, InputRowInclusion::Excluded);
    assert_eq!(
        desk.text(TableFormat::Jsonl, flat),
        concat!(
            r#"{"text":"t","input_input_label":"old","n":1.50,"_ok":"mine","label":"good","new":1,"_id":1,"_row_number":1,"__ok":true,"_error_type":null,"_error_message":null}"#,
            "\n",
            r#"{"text":"u","input_label":"kept","_id":2,"_row_number":2,"__ok":false,"_error_type":"ServerError","_error_message":"overloaded"}"#,
            "\n",
            r#"{"_id":3,"_row_number":3,"__ok":false,"_error_type":"ServerError","_error_message":"overloaded"}"#,
            "\n"
        )
    );
    let header = "text,input_input_label,n,_ok,input_label,label,new,_id,_row_number,__ok,_error_type,_error_message\n";
    assert!(desk.text(TableFormat::Csv, flat).starts_with(header));
    assert_eq!(columns(&desk.parquet(flat))[2], "n Float64");
}

#[test]
fn a_flat_table_of_envelopes_without_input_rows_is_refused() {
    let desk = Desk::new(&[ok(1, "1"), ok(2, "2").replacen("}\n", ",\"input\":{}}\n", 1)]);
    let target = TableTarget::File(desk.path("out.csv"));
    let problem =
        desk.draft(TableFormat::Csv, (TableLayout::Flat, InputRowInclusion::Included), &target).unwrap_err();
    assert_eq!(problem.code, ProblemCode::RunUnusable);
    assert_eq!(
        problem.message,
        "1 of 2 envelopes do not contain their input row, so they cannot be merged with it"
    );
}

#[test]
fn thousands_of_rows_come_back_in_order() {
    let lines: Vec<String> = (1..=9_000).map(|number| ok(number, &format!("{{\"n\":{number}}}"))).collect();
    let rows = records(&Desk::new(&lines).parquet(PLAIN));
    assert_eq!(rows.len(), 9_000);
    assert!((1..).zip(&rows).all(|(number, row)| row["n"] == json!(number)));
}

#[test]
fn nothing_is_in_its_place_before_a_draft_is_published_and_what_came_meanwhile_stays() {
    let desk = Desk::new(&[ok(1, "1")]);
    let target = TableTarget::File(desk.path("out.csv"));
    drop(desk.draft(TableFormat::Csv, PLAIN, &target).unwrap());
    assert_eq!(desk.names(), ["envelopes.jsonl"], "no litter");

    let draft = desk.draft(TableFormat::Csv, PLAIN, &target).unwrap();
    fs::write(desk.path("out.csv"), "mine").unwrap();
    let problem = draft.publish(OutputClaimMode::New).unwrap_err();
    assert_eq!(problem.code, ProblemCode::OutputExists);
    assert_eq!(fs::read_to_string(desk.path("out.csv")).unwrap(), "mine");
    assert_eq!(desk.names(), ["envelopes.jsonl", "out.csv"]);

    std::os::unix::fs::symlink("out.csv", desk.path("link.csv")).unwrap();
    let target = TableTarget::File(desk.path("link.csv"));
    desk.draft(TableFormat::Csv, PLAIN, &target).unwrap().publish(OutputClaimMode::Overwrite).unwrap();
    assert!(desk.path("link.csv").is_symlink(), "a link stays a link");
    assert!(fs::read_to_string(desk.path("out.csv")).unwrap().starts_with("id,"));
}

#[test]
fn a_split_table_has_a_file_for_each_value_and_replaces_only_its_own_files() {
    let label = |number, label: &str| ok(number, &format!("{{\"label\":{label},\"n\":{number}}}"));
    let target =
        |desk: &Desk| TableTarget::Folder { path: desk.path("parts"), split_by: "result.label".into() };
    let desk = Desk::new(&[
        label(1, "\"a\""),
        label(2, "\"../b\""),
        label(3, "\"a\""),
        failed(4),
        label(5, "null"),
        label(6, "true"),
    ]);
    let draft = desk.draft(TableFormat::Csv, PLAIN, &target(&desk)).unwrap();
    assert_eq!((draft.rows, draft.files), (6, 4));
    draft.publish(OutputClaimMode::New).unwrap();
    let part = |name: &str| fs::read_to_string(desk.path("parts").join(name)).unwrap();
    assert_eq!(
        part("a.csv"),
        "id,row_number,ok,label,n,error_type,error_message\n1,1,true,a,1,,\n3,3,true,a,3,,\n"
    );
    assert_eq!(part("_null.csv").lines().count(), 3);
    assert_eq!(part("true.csv").lines().count(), 2);
    assert_eq!(desk.names(), ["envelopes.jsonl", "parts"], "nothing leaves the folder");

    fs::write(desk.path("parts/notes.txt"), "mine").unwrap();
    let again = Desk::at(desk, &[label(1, "\"a\""), label(2, "\"c\"")]);
    again
        .draft(TableFormat::Parquet, PLAIN, &target(&again))
        .unwrap()
        .publish(OutputClaimMode::Resume)
        .unwrap();
    let mut names = again.names_in("parts");
    names.retain(|name| !name.starts_with('.'));
    assert_eq!(names, ["a.parquet", "c.parquet", "notes.txt"]);
}
