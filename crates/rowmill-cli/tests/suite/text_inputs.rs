//! Packed text, JSON lists and several files are inputs like any other.

use crate::support::Place;
use serde_json::Value;

/// `{"n":1}` and `{"n":2}` on lines, packed with gzip.
const PACKED: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xabV\xcaS\xb22\xac\xe5\xaa\x06\xd1F\xb5\\\x00E\xc6\x98\xbe\x10\x00\x00\x00";

/// The row number and the result of each envelope, or the message of its error.
fn told(envelopes: &[Value]) -> Vec<(u64, String)> {
    let what = |envelope: &Value| match &envelope["error"]["message"] {
        Value::String(message) => message.clone(),
        _ => envelope["result"].to_string(),
    };
    envelopes.iter().map(|envelope| (envelope["row_number"].as_u64().unwrap(), what(envelope))).collect()
}

#[test]
fn packed_rows_come_from_files_pipes_and_samples_alike() {
    let place = Place::new();
    place.write("rows.jsonl.gz", PACKED);
    place.run(&["-i", "rows.jsonl.gz", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}"]).ok();
    let whole = [(1, "\"1\"".to_owned()), (2, "\"2\"".to_owned())];
    assert_eq!(told(&place.json("out.jsonl")), whole);
    for flags in [&[][..], &["--sample", "2"]] {
        let flags =
            [&["--input-format", "jsonl", "-o", "-", "-m", "passthrough", "-p", "{{n}}"], flags].concat();
        assert_eq!(told(&place.pipe(PACKED, &flags).ok().lines()), whole);
    }
}

#[test]
fn rows_before_the_place_where_packed_input_is_cut_are_kept_and_a_resume_does_the_rest() {
    let place = Place::new();
    let flags = ["-i", "rows.jsonl.gz", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}"];
    // Everything but the end of the checksum is there.
    place.write("rows.jsonl.gz", &PACKED[..PACKED.len() - 3]);
    place
        .run(&flags)
        .code(1)
        .says("error[RM1002]: input ends in the middle of its gzip data: `rows.jsonl.gz`");
    assert_eq!(place.json("out.jsonl").len(), 2);
    place.write("rows.jsonl.gz", PACKED);
    place.run(&[&flags[..], &["--resume", "--accept-changes"]].concat()).ok();
    assert_eq!(told(&place.json("out.jsonl")), [(1, "\"1\"".to_owned()), (2, "\"2\"".to_owned())]);
}

#[test]
fn a_pattern_and_a_list_are_inputs_and_bad_rows_name_their_file() {
    let place = Place::new();
    place.write("in/a.jsonl", "{\"n\":1}\n");
    place.write("in/b.jsonl", "{\"n\":2}\nnope\n");
    place.write("list.json", "[{\"n\": 1},\n 7]");
    place.run(&["-i", "in/*.jsonl", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}"]).code(3);
    assert_eq!(
        told(&place.json("out.jsonl")),
        [
            (1, "\"1\"".to_owned()),
            (2, "\"2\"".to_owned()),
            (3, "`in/b.jsonl`, line 2: expected ident at column 2".to_owned())
        ]
    );
    place.run(&["-i", "list.json", "-o", "list.jsonl", "-m", "passthrough", "-p", "{{n}}"]).code(3);
    assert_eq!(
        told(&place.json("list.jsonl")),
        [(1, "\"1\"".to_owned()), (2, "Item 2: expected a JSON object, got a number".to_owned())]
    );
    let ended = place.run(&["-i", "in/*.csv", "-o", "none.jsonl", "-m", "passthrough"]);
    ended.code(1).says("error[RM1001]: no input file matches `in/*.csv`");
}
