//! Which files are kept, continued, rejected and removed.

use rowmill_types::ProblemCode;

use super::*;

#[test]
fn a_row_that_failed_is_in_the_manifest_and_one_without_a_call_has_no_trace() {
    let home = tempfile::tempdir().unwrap();
    let (settings, reported) = (settings(), transcript());
    let mut sink = open(&home.path().join("traces"), OutputClaimMode::New);
    let path = home.path().join("traces");
    publish(&mut sink, &record(&RowId::Number(1), 1, &failed(RowErrorKind::InvalidJson), None, &settings));
    publish(
        &mut sink,
        &record(&RowId::Number(2), 2, &failed(RowErrorKind::TurnLimit), Some(&reported), &settings),
    );
    let untraced =
        br#"{"event":"row_ended","envelope":{"id":3,"row_number":3,"ok":true,"error":null},"telemetry":{}}"#;
    publish(&mut sink, &RowRecord::parse(untraced.to_vec()).unwrap());

    let manifest = lines(&path, "manifest.jsonl");
    assert_eq!((&manifest[0]["trace"], &manifest[0]["record_count"]), (&Value::Null, &0.into()));
    let error = serde_json::json!({"type": RowErrorKind::InvalidJson.name(), "message": "cannot use ***"});
    assert_eq!(manifest[0]["error"], error);
    assert_eq!((&manifest[2]["ok"], &manifest[2]["trace"]), (&true.into(), &Value::Null));
    let session = lines(&path, manifest[1]["trace"].as_str().unwrap());
    let tail: Vec<_> = session[session.len() - 2..].iter().map(|record| &record["payload"]["type"]).collect();
    assert_eq!(tail, ["error", "task_complete"]);
    let spanned = lines(&path, "spans.jsonl");
    assert_eq!(spanned.len(), 2, "nobody knows when the last row ran");
    assert_eq!(spans(&spanned[0])[0]["status"], serde_json::json!({"code":2,"message":"cannot use ***"}));
}

#[test]
fn a_run_that_goes_on_after_a_crash_ends_with_one_line_per_row_in_input_order() {
    let (home, name) = one_row();
    let (settings, reported) = (settings(), transcript());
    let before = files(home.path());
    // The crash interrupted a trace and a line.
    fs::write(home.path().join(".trace.rowmill-new"), "{\"half").unwrap();
    for file in ["manifest.jsonl", "spans.jsonl"] {
        let torn = [before[file].as_slice(), b"{\"run_id\":\"x\",\"row_n"].concat();
        fs::write(home.path().join(file), torn).unwrap();
    }
    let mut sink = open(home.path(), OutputClaimMode::Resume);
    let stands_in = failed(RowErrorKind::InvalidJson);
    publish(&mut sink, &record(&RowId::Number(1), 1, &stands_in, Some(&reported), &settings));
    publish(&mut sink, &record(&RowId::Text("a/b".into()), 3, &ok(), Some(&reported), &settings));
    drop(sink);
    settle_traces(home.path()).unwrap();
    // The row became readable later, and has an id.
    let mut sink = open(home.path(), OutputClaimMode::Resume);
    publish(&mut sink, &record(&RowId::Text("one".into()), 1, &ok(), Some(&reported), &settings));
    drop(sink);
    settle_traces(home.path()).unwrap();

    let after = files(home.path());
    let names: Vec<&str> = after.keys().map(String::as_str).collect();
    let one = "row-000001__id-one__lead.codex.jsonl";
    assert_eq!(names, ["manifest.jsonl", one, &name, "spans.jsonl"]);
    assert_eq!(after[&name], before[&name], "what is published again is the same");
    let rows = |file| lines(home.path(), file);
    let numbers: Vec<_> = rows("manifest.jsonl").iter().map(|line| line["row_number"].clone()).collect();
    assert_eq!(numbers, [1, 3]);
    assert_eq!(rows("manifest.jsonl")[0]["trace"], one);
    let numbers: Vec<_> = rows("spans.jsonl")
        .iter()
        .map(|line| attribute(&spans(line)[0], "rowmill.row.number")["intValue"].clone())
        .collect();
    assert_eq!(numbers, ["1", "3"]);
}

#[test]
fn a_folder_with_traces_is_refused_or_replaced_and_other_files_in_it_stay() {
    let (home, name) = one_row();
    fs::write(home.path().join("row-notes.txt"), "mine").unwrap();
    // A foreign file is in the way that has a name of one of the run's traces.
    let other = home.path().join("row-000009__id-9__lead.codex.jsonl");
    fs::write(&other, "mine, too").unwrap();
    for claim in [OutputClaimMode::New, OutputClaimMode::Overwrite] {
        let problem = TraceFolder::claim(home.path(), claim).unwrap_err();
        assert!(problem.message.contains("rowmill did not write it"), "{}", problem.message);
    }
    assert_eq!(fs::read_to_string(&other).unwrap(), "mine, too");
    fs::remove_file(&other).unwrap();
    let problem = TraceFolder::claim(home.path(), OutputClaimMode::New).unwrap_err();
    assert_eq!(problem.code, ProblemCode::OutputExists);
    assert!(problem.message.ends_with("has the traces of an earlier run"), "{}", problem.message);

    let held = TraceFolder::claim(home.path(), OutputClaimMode::Overwrite).unwrap();
    assert_eq!(held.run_id().as_deref(), Some("20260101T000000Z-0badcafe"));
    let busy = TraceFolder::claim(home.path(), OutputClaimMode::Resume).unwrap_err();
    assert_eq!(busy.code, ProblemCode::OutputBusy);
    assert!(home.path().join(&name).exists(), "a claim changes nothing");
    drop(held.sink(settings()).unwrap());
    let left: Vec<String> = files(home.path()).into_keys().collect();
    assert_eq!(left, ["manifest.jsonl", "row-notes.txt", "spans.jsonl"]);
    let file =
        TraceFolder::claim(&home.path().join("row-notes.txt"), OutputClaimMode::Overwrite).unwrap_err();
    assert_eq!(file.code, ProblemCode::OutputPath);
}
