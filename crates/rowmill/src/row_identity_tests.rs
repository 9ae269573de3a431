use rowmill_core::ports::InputIdentity;
use rowmill_core::resume::ResumeExclusions;
use rowmill_data::{InputFormat, InputSpec, open_dataset};

use super::*;
use crate::query_recording::QueryRecording;

fn header(field: Option<&str>) -> RunHeader {
    let fingerprint = RunFingerprint {
        input: InputIdentity { path: "/in.jsonl".into(), size: Some(9), probe: Some("p".into()) },
        id_field: None,
        model: "m".into(),
        prompt: String::new(),
        instruction: None,
        schema: None,
        agents: None,
        query: None,
        delimiter: None,
        columns: None,
        files: None,
    };
    let ids = IdRule { field: field.map(Into::into), ..IdRule::default() };
    RunHeader::new("r", "now", &crate::prepare_input::fingerprint(&fingerprint, &ids), None)
}

fn refusal(before: Option<&str>, now: Option<&str>) -> String {
    let recording = QueryRecording::Unneeded;
    let new = NewRun { header: header(now), input: None, recording, scope: ResumeExclusions::default() };
    let problem = row_identity(Some(&header(before)), new, None).unwrap_err();
    assert_eq!(problem.code, ProblemCode::ChangedRun);
    format!("{}; {}", problem.message, problem.hint.unwrap())
}

#[test]
fn an_id_field_may_not_be_removed_or_become_another_one() {
    let removed = refusal(Some("id"), None);
    assert!(removed.contains("identified by the field `id`; with their numbers instead"), "{removed}");
    let other = refusal(Some("id"), Some("key"));
    assert!(other.contains("with the field `key` instead") && other.contains("`id_field: id`"), "{other}");
    let stream = refusal(None, Some("id"));
    assert!(stream.contains("`id_field: id` cannot be added") && stream.contains("a stream"), "{stream}");
}

#[test]
fn rows_with_numbers_are_the_same_only_in_the_same_input_and_query() {
    let before = header(None).fingerprint;
    assert_eq!(reason_against(&before, &before), None);
    let grown = InputIdentity { size: Some(10), ..before.input.clone() };
    let elsewhere = InputIdentity { path: "/other".into(), ..before.input.clone() };
    let query = Some("SELECT 1".to_owned());
    for (now, word) in [
        (RunFingerprint { input: grown, ..before.clone() }, "content"),
        (RunFingerprint { input: elsewhere, ..before.clone() }, "a different one"),
        (RunFingerprint { query, ..before.clone() }, "query"),
    ] {
        assert!(reason_against(&before, &now).is_some_and(|reason| reason.contains(word)));
    }
}

#[test]
fn envelopes_whose_ids_nobody_wants_any_more_get_their_numbers_back() {
    let mut known_by = RowIdentity::of_header(&header(None));
    let head = |id| EnvelopeHead::new(id, 3, true, "");
    assert_eq!(known_by.identify_head(head(RowId::Number(3))).id, RowId::Number(3));
    assert!(matches!(known_by, RowIdentity::ByNumber(FinalIds::Same)));
    assert_eq!(known_by.identify_head(head(RowId::Text("c".into()))).id, RowId::Number(3));
    assert!(matches!(known_by, RowIdentity::ByNumber(FinalIds::Numbers)));
    let mut by_ids = RowIdentity::of_header(&header(Some("id")));
    assert_eq!(by_ids.identify_head(head(RowId::Text("c".into()))).id, RowId::Text("c".into()));
}

#[test]
fn ids_are_looked_up_in_order_and_rows_without_one_keep_their_number() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("in.jsonl");
    std::fs::write(&path, "{\"k\":\"a\"}\n{\"k\":2}\nbroken\n{\"other\":1}\n{\"k\":\"e\"}\n").unwrap();
    let rows = open_dataset(&InputSpec::new(InputLocation::File(path), Some(InputFormat::Jsonl))).unwrap();
    let ids = IdRule { field: Some("k".into()), ..IdRule::default() };
    let input = NumberedInput { fingerprint: header(None).fingerprint, ids, rows };
    let mut reader = InputIdReader::open(&input).unwrap();
    let text = |id: &str| RowId::Text(id.into());
    let expected = [text("2"), RowId::Number(3), RowId::Number(4), text("e"), RowId::Number(9)];
    assert_eq!([2, 3, 4, 5, 9].map(|number| reader.id_of(number).unwrap()), expected);
}
