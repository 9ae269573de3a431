//! Stubs, recording answers, and several hosts as one.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_core::redact::Redactor;
use rowmill_tools::{CombinedToolHost, HostToolNames, StubHost, StubTool, ToolRecorder};
use rowmill_types::{ProblemCode, RowId, Secret, ToolOutput};
use serde_json::{Value, json};
use tempfile::TempDir;

async fn ask(host: &dyn ToolHost, row: u64, tool: &str, arguments: Value) -> Result<ToolOutput, ToolFailure> {
    let arguments = arguments.to_string();
    host.call(ToolRequest {
        row,
        id: &RowId::Number(row),
        key: "k",
        tool,
        arguments: &arguments,
        idempotent: true,
        timeout: None,
    })
    .await
}

async fn text(host: &dyn ToolHost, row: u64, tool: &str, arguments: Value) -> String {
    ask(host, row, tool, arguments).await.unwrap().text
}

fn stub(lines: &str) -> (TempDir, Result<StubTool, rowmill_types::Problem>) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("answers.jsonl");
    fs::write(&path, lines).unwrap();
    let read = StubTool::read("weather", path.to_str().unwrap());
    (folder, read)
}

#[tokio::test]
async fn the_line_that_fits_best_answers() {
    let lines = r#"
{"result": "anything"}
{"row": 2, "result": {"row": [2, "ü"]}}
{"arguments": {"city": "Bonn", "days": 1}, "result": "rain"}
{"row": 3, "arguments": {"days": 1, "city": "Bonn"}, "result": "snow", "is_error": true}
"#;
    let host = StubHost::new(vec![stub(lines).1.unwrap()]);
    let bonn = json!({"days": 1.0, "city": "Bonn"});
    assert_eq!(text(&host, 1, "weather", bonn.clone()).await, "rain");
    assert_eq!(text(&host, 2, "weather", bonn.clone()).await, "rain");
    assert_eq!(ask(&host, 3, "weather", bonn).await.unwrap(), ToolOutput::error("snow"));
    assert_eq!(text(&host, 2, "weather", json!({"city": "Rome"})).await, r#"{"row":[2,"ü"]}"#);
    assert_eq!(text(&host, 1, "weather", json!({})).await, "anything");
    assert!(!ask(&host, 1, "other", json!({})).await.unwrap_err().may_have_run);
}

#[tokio::test]
async fn lines_are_used_in_turn_by_each_row_and_the_last_one_repeats() {
    let lines = "{\"result\": 1}\n{\"result\": 2}\n{\"result\": 3}\n";
    let host = StubHost::new(vec![stub(lines).1.unwrap()]);
    for (row, expected) in [(1, "1"), (1, "2"), (2, "1"), (1, "3"), (1, "3"), (2, "2")] {
        assert_eq!(text(&host, row, "weather", json!({})).await, expected, "row {row}");
    }
    host.release_row(1).await;
    assert_eq!(text(&host, 1, "weather", json!({})).await, "1");
}

#[tokio::test]
async fn a_call_without_an_answer_is_reported_and_a_text_answers_all() {
    let (_folder, read) = stub("{\"arguments\": {\"city\": \"Bonn\"}, \"result\": \"rain\"}");
    let host = StubHost::new(vec![read.unwrap()]);
    let output = ask(&host, 1, "weather", json!({"city": "Rome"})).await.unwrap();
    assert!(
        output.is_error && output.text.contains("answers.jsonl` fits these arguments: {\"city\":\"Rome\"}")
    );

    let fixed = StubTool::read("weather", "text:It is: sunny").unwrap();
    assert_eq!(fixed.permissive_spec().schema["additionalProperties"], json!(true));
    let host = StubHost::new(vec![fixed]);
    assert_eq!(text(&host, 9, "weather", json!({"x": 1})).await, "It is: sunny");
}

#[test]
fn a_line_that_is_no_answer_is_named_with_its_number() {
    let cases = [
        ("{\"result\": 1}\n\n{\"result\": \n", "line 3 of "),
        ("{\"reslt\": 1}", "unknown field `reslt`"),
        ("{\"row\": 1}", "missing field `result`"),
        ("{\"row\": \"1\", \"result\": 1}", "invalid type: string \"1\", expected u64"),
        ("{\"arguments\": [1], \"result\": 1}", "expected a map"),
        ("\n\n", "has no answers for the tool `weather`"),
    ];
    for (lines, expected) in cases {
        let problem = stub(lines).1.unwrap_err();
        assert!(problem.message.contains(expected), "{}", problem.message);
        assert!(problem.message.contains("answers.jsonl"), "{}", problem.message);
        assert_eq!(problem.code, ProblemCode::StubUnusable);
    }
    let problem = StubTool::read("weather", "/no/such.jsonl").unwrap_err();
    assert_eq!(problem.message, "cannot read the answers for the tool `weather`: `/no/such.jsonl`");
}

/// Answers with the arguments, an image, or nothing.
#[derive(Debug)]
struct Echo(&'static str);

impl ToolHost for Echo {
    fn call<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> futures_util::future::BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        let output = match request.tool {
            "breaks" => Err(ToolFailure { message: "broken".into(), may_have_run: true }),
            "refuses" => Ok(ToolOutput::error("no")),
            tool => {
                Ok(ToolOutput::from_text(format!("{} {tool} {} {}", self.0, request.row, request.arguments)))
            }
        };
        Box::pin(std::future::ready(output))
    }
}

#[tokio::test]
async fn what_is_recorded_can_stand_in_for_the_tool() {
    let folder = TempDir::new().unwrap();
    let names = HashMap::from([("solo/search".to_owned(), "search".to_owned())]);
    let recorder = ToolRecorder::new(Arc::new(Echo("real")), folder.path().join("made"), names).unwrap();
    for row in [1, 2] {
        text(&recorder, row, "solo/search", json!({"q": "ä\n"})).await;
    }
    ask(&recorder, 1, "refuses", json!({})).await.unwrap();
    ask(&recorder, 1, "breaks", json!({})).await.unwrap_err();
    text(&recorder, 1, "/a/tools.py:add", json!({})).await;
    text(&recorder, 1, "/b/tools.py:add", json!({})).await;
    assert_eq!(recorder.problem(), None);

    let file = |name: &str| folder.path().join("made").join(name).to_str().unwrap().to_owned();
    let stubs =
        ["search", "refuses"].map(|tool| StubTool::read(tool, &file(&format!("{tool}.jsonl"))).unwrap());
    let host = StubHost::new(stubs.into());
    assert_eq!(text(&host, 2, "search", json!({"q": "ä\n"})).await, "real solo/search 2 {\"q\":\"ä\\n\"}");
    assert_eq!(ask(&host, 1, "refuses", json!({})).await.unwrap(), ToolOutput::error("no"));
    assert_eq!(fs::read_dir(folder.path().join("made")).unwrap().count(), 4, "paths have files of their own");
}

/// Makes a call for a row that has an id.
async fn ask_by_id(host: &dyn ToolHost, (id, row): (&str, u64), tool: &str, arguments: &str) -> String {
    let id = &RowId::Text(id.into());
    let request = ToolRequest { row, id, key: "k", tool, arguments, idempotent: true, timeout: None };
    host.call(request).await.unwrap().text
}

#[tokio::test]
async fn what_is_recorded_is_found_by_the_id_of_a_row_wherever_the_row_is_now() {
    let folder = TempDir::new().unwrap();
    let recorder = ToolRecorder::new(Arc::new(Echo("real")), folder.path().into(), HashMap::new()).unwrap();
    for (id, row) in [("a", 1), ("b", 2)] {
        ask_by_id(&recorder, (id, row), "search", "{}").await;
    }
    let file = folder.path().join("search.jsonl");
    assert!(fs::read_to_string(&file).unwrap().starts_with("{\"id\":\"a\",\"arguments\":{}"));
    let host = StubHost::new(vec![StubTool::read("search", file.to_str().unwrap()).unwrap()]);
    for (id, row, expected) in [("b", 1, "real search 2 {}"), ("a", 7, "real search 1 {}")] {
        assert_eq!(ask_by_id(&host, (id, row), "search", "{}").await, expected);
    }
}

#[tokio::test]
async fn secrets_are_in_no_recording() {
    let folder = TempDir::new().unwrap();
    let recorder = ToolRecorder::new(Arc::new(Echo("real")), folder.path().into(), HashMap::new()).unwrap();
    recorder.redact_with(Redactor::new([&Secret::new("sk-planted-4711")]).unwrap());
    let given = text(&recorder, 1, "search", json!({"q": "sk-planted-4711"})).await;
    assert!(given.contains("sk-planted-4711"), "the model is told what the tool gave");
    let written = fs::read_to_string(folder.path().join("search.jsonl")).unwrap();
    assert_eq!(written.matches("***").count(), 2, "{written}");
    assert!(!written.contains("planted"), "{written}");
}

#[tokio::test]
async fn a_recording_that_cannot_be_written_disturbs_no_call_and_is_reported() {
    let folder = TempDir::new().unwrap();
    let recorder = ToolRecorder::new(Arc::new(Echo("real")), folder.path().into(), HashMap::new()).unwrap();
    fs::create_dir(folder.path().join("search.jsonl")).unwrap();
    assert!(text(&recorder, 1, "search", json!({})).await.starts_with("real"));
    assert_eq!(recorder.problem().unwrap().code, ProblemCode::WriteFailed);
}

#[tokio::test]
async fn files_of_recorded_answers_come_back() {
    let lines = r#"{"result": "a picture", "attachments": [{"name": "a.png", "media_type": "image/png", "data": "AAEC"}]}"#;
    let host = StubHost::new(vec![stub(lines).1.unwrap()]);
    let first = ask(&host, 1, "weather", json!({})).await.unwrap();
    assert_eq!(&first.attachments[0].bytes[..], [0, 1, 2]);
    let folder = TempDir::new().unwrap();
    let recorder = ToolRecorder::new(Arc::new(host), folder.path().into(), HashMap::new()).unwrap();
    ask(&recorder, 1, "weather", json!({})).await.unwrap();
    let recorded = folder.path().join("weather.jsonl");
    let again = StubHost::new(vec![StubTool::read("weather", recorded.to_str().unwrap()).unwrap()]);
    assert_eq!(ask(&again, 1, "weather", json!({})).await.unwrap(), first);
}

#[tokio::test]
async fn each_call_goes_to_the_host_that_has_the_tool() {
    let names = |name: &str, tool: &str| HostToolNames::As { name: name.into(), tool: tool.into() };
    let hosts: Vec<(Vec<HostToolNames>, Arc<dyn ToolHost>)> = vec![
        (vec![HostToolNames::Prefix("files__".into())], Arc::new(Echo("a"))),
        (
            vec![HostToolNames::Prefix("files__deep__".into()), HostToolNames::Exact("files__exact".into())],
            Arc::new(Echo("b")),
        ),
        (
            vec![names("writer/execute", "execute"), HostToolNames::Exact("files__exact".into())],
            Arc::new(Echo("c")),
        ),
    ];
    let tools = CombinedToolHost::new(hosts);
    let cases = [
        ("files__read", "a files__read"),
        ("files__deep__read", "b files__deep__read"),
        ("files__exact", "b files__exact"),
        ("writer/execute", "c execute"),
    ];
    for (tool, expected) in cases {
        assert_eq!(text(&tools, 4, tool, json!({})).await, format!("{expected} 4 {{}}"));
    }
    let failure = ask(&tools, 1, "execute", json!({})).await.unwrap_err();
    assert_eq!((failure.message.as_str(), failure.may_have_run), ("there is no tool `execute`", false));
}

#[tokio::test]
async fn the_end_of_a_row_reaches_every_host() {
    let (_folder, read) = stub("{\"result\": 1}\n{\"result\": 2}\n");
    let inner: Arc<dyn ToolHost> = Arc::new(StubHost::new(vec![read.unwrap()]));
    let tools = CombinedToolHost::new(vec![
        (Vec::new(), Arc::new(Echo("a"))),
        (vec![HostToolNames::Exact("weather".into())], Arc::clone(&inner)),
    ]);
    assert_eq!(text(&tools, 1, "weather", json!({})).await, "1");
    tools.release_row(1).await;
    assert_eq!(text(&tools, 1, "weather", json!({})).await, "1");
    tools.close().await;
}
