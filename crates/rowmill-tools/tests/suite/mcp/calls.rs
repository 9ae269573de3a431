//! Successful calls, and what they return.

use std::time::Duration;

use rowmill_core::ports::{ToolHost, ToolRequest};
use rowmill_tools::McpTransport;
use rowmill_types::{Secret, ToolOutput};
use serde_json::{Value, json};

use crate::mcp::kit::{Events, call, gone, ours, start, text};

#[tokio::test]
async fn what_a_tool_gives_reaches_the_model() {
    let mcp = start(ours(&["--chatter"])).await;
    let cases = [
        ("echo", json!({"text": "grüße"}), ToolOutput::from_text("grüße")),
        ("add", json!({"a": 1, "b": 2.5}), ToolOutput::from_text("3.5")),
        ("fail", json!({"message": "no luck"}), ToolOutput::error("no luck")),
        ("refuse", json!({"message": "bad input"}), ToolOutput::error("bad input")),
        ("structured", json!({}), ToolOutput::from_text(r#"{"answer":42}"#)),
        ("odd", json!({}), ToolOutput::from_text(r#"{"strange":["thing"]}"#)),
    ];
    for (tool, arguments, expected) in cases {
        assert_eq!(call(&mcp, 1, tool, arguments).await.unwrap(), expected, "{tool}");
    }
    let files = call(&mcp, 1, "binary", json!({})).await.unwrap().attachments;
    let files: Vec<_> =
        files.iter().map(|file| (file.name.as_str(), file.media_type.as_str(), file.bytes.len())).collect();
    assert_eq!(files, [("image-1.png", "image/png", 70), ("data.bin", "application/octet-stream", 256)]);
    assert_eq!(text(&mcp, 1, "big", json!({"bytes": 10_000_000})).await.len(), 10_000_000);
    mcp.close().await;
}

#[tokio::test]
async fn arguments_that_are_no_object_are_reported_to_the_model() {
    let mcp = start(ours(&[])).await;
    let ask = async |arguments: &str| {
        let request = ToolRequest {
            row: 1,
            id: &rowmill_types::RowId::Number(1),
            key: "k",
            tool: "t__echo",
            arguments,
            idempotent: true,
            timeout: None,
        };
        mcp.call(request).await.unwrap()
    };
    assert!(ask("{\"text\": ").await.text.starts_with("the arguments are no JSON object: "));
    assert!(ask("[1]").await.is_error);
    assert_eq!(ask("").await, ToolOutput::from_text(""));
    mcp.close().await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_fails_its_call_and_no_other() {
    let mcp = start(ours(&[])).await;
    let before = text(&mcp, 1, "whoami", json!({})).await;
    let (large, small) = tokio::join!(
        call(&mcp, 1, "big", json!({"bytes": 65 << 20})),
        text(&mcp, 2, "echo", json!({"text": "small"})),
    );
    let expected = "the tool's answer has more than 64 MiB and was thrown away";
    assert_eq!(large.unwrap(), ToolOutput::error(expected));
    assert_eq!(small, "small");
    assert_eq!(text(&mcp, 1, "whoami", json!({})).await, before);
    mcp.close().await;
}

#[tokio::test]
async fn rows_share_a_connection_and_their_calls_run_side_by_side() {
    let events = Events::new().await;
    let mcp = start(ours(&events.flags())).await;
    let process = events.process("started").await;
    let hanging = call(&mcp, 1, "hang", json!({}));
    let others = async {
        assert_eq!(events.next().await, "call hang");
        let (first, reported) = tokio::join!(text(&mcp, 2, "whoami", json!({})), events.next());
        assert_eq!((first, reported), (process.to_string(), "call whoami".to_owned()));
        let (done, _) = tokio::join!(text(&mcp, 3, "release", json!({})), events.next());
        done
    };
    let (hung, done) = tokio::join!(hanging, others);
    assert_eq!((hung.unwrap().text.as_str(), done.as_str()), ("released", "done"));
    mcp.close().await;
}

#[tokio::test]
async fn a_row_has_a_process_of_its_own_until_it_is_released() {
    let mut server = ours(&[]);
    server.per_row = true;
    let mcp = start(server).await;
    let process = async |row| text(&mcp, row, "whoami", json!({})).await.parse::<u32>().unwrap();
    let (first, second) = (process(1).await, process(2).await);
    assert_ne!(first, second);
    assert_eq!(process(1).await, first);
    mcp.release_row(1).await;
    gone(first).await;
    assert_eq!(process(2).await, second);
    let third = process(1).await;
    assert!(![first, second].contains(&third));
    mcp.close().await;
    gone(second).await;
    gone(third).await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let events = Events::new().await;
    let mut server = ours(&events.flags());
    server.timeout = Duration::from_millis(300);
    let mcp = start(server).await;
    events.process("started").await;
    let (failure, reported) = tokio::join!(call(&mcp, 1, "hang", json!({})), events.next());
    let failure = failure.unwrap_err();
    assert_eq!((failure.message.as_str(), failure.may_have_run), ("`t` did not answer within 300 ms", true));
    assert_eq!((reported.as_str(), events.next().await.as_str()), ("call hang", "cancelled"));
    mcp.close().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled() {
    let events = Events::new().await;
    let mcp = start(ours(&events.flags())).await;
    events.process("started").await;
    tokio::select! {
        answer = call(&mcp, 1, "hang", json!({})) => panic!("{answer:?}"),
        reported = events.next() => assert_eq!(reported, "call hang"),
    }
    assert_eq!(events.next().await, "cancelled");
    mcp.close().await;
}

#[tokio::test]
async fn what_a_server_asks_for_is_declined() {
    let mcp = start(ours(&[])).await;
    let replies: Value = serde_json::from_str(&text(&mcp, 1, "ask", json!({})).await).unwrap();
    assert_eq!(replies[0]["error"]["code"], -32601);
    assert_eq!(replies[1]["result"]["action"], "decline");
    assert_eq!(replies[2]["result"]["roots"], json!([]));
    mcp.close().await;
}

#[tokio::test]
async fn a_server_gets_only_what_programs_need_and_what_it_is_given() {
    let mut server = ours(&[]);
    if let McpTransport::Stdio { env, cwd, .. } = &mut server.transport {
        env.insert("GIVEN".to_owned(), Secret::new("to it"));
        *cwd = Some("/".into());
    }
    let mcp = start(server).await;
    let names = text(&mcp, 1, "env", json!({})).await;
    let names: Vec<_> = names.split(' ').collect();
    assert!(["GIVEN", "HOME", "PATH"].iter().all(|name| names.contains(name)), "{names:?}");
    // What starts Python may set variables itself.
    let set_anyway =
        |name: &str| ["PATH", "HOME", "PWD", "SHLVL", "_"].contains(&name) || name.contains("PYENV");
    let ours = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let leaked: Vec<_> = ours.filter(|name| !set_anyway(name) && names.contains(&name.as_str())).collect();
    assert_eq!(leaked, [""; 0]);
    assert_eq!(text(&mcp, 1, "env", json!({"name": "GIVEN"})).await, "to it");
    mcp.close().await;
}
