//! Servers that do not start, break, or cannot be reached.

use std::time::Duration;

use rowmill_core::ports::ToolHost;
use rowmill_tools::{McpTransport, ReconnectPolicy};
use rowmill_types::{ProblemCode, Secret};
use serde_json::json;
use tempfile::TempDir;

use crate::mcp::kit::{Events, call, kill, ours, problem, process, start, text};

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

fn lines(path: &str) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_server_that_does_not_start_is_one_problem_that_says_why() {
    let (mut secret, mut silent) = (ours(&["--exit", "7"]), ours(&["--silent"]));
    if let McpTransport::Stdio { env, .. } = &mut secret.transport {
        env.insert("TEST_SECRET".to_owned(), Secret::new("sk-very-secret"));
    }
    silent.start_timeout = Duration::from_millis(400);
    let mut other = process("t", &["/bin/cat"]);
    other.start_timeout = silent.start_timeout;
    let mut modern = ours(&[]);
    modern.protocol = rowmill_tools::McpProtocolChoice::Modern;
    let cases = [
        (
            secret,
            "exited before it answered",
            "it exited with code 7\non standard error it printed:\ncannot open the database (token ***)",
            "run the command in a shell",
        ),
        (
            ours(&["--garbage"]),
            "exited before it answered",
            "it exited with code 0\non standard output it printed:\nWelcome to the shop!",
            "run the command",
        ),
        (
            ours(&["--bogus"]),
            "exited before it answered",
            "unrecognized arguments: --bogus",
            "run the command",
        ),
        (silent, "did not answer within 400 ms", "", "raise `start_timeout` of `t`"),
        (
            ours(&["--refuse-handshake"]),
            "rejects the handshake (no handshakes here)",
            "",
            "check that the command",
        ),
        (modern, "rejects the handshake (unknown method: server/discover)", "", "check that the command"),
        (other, "did not answer within 400 ms", "", "raise `start_timeout` of `t`"),
    ];
    for (server, what, cause, hint) in cases {
        let place = server.transport.address_text();
        let found = problem(vec![server]).await;
        assert_eq!(found.code, ProblemCode::ToolServer);
        assert_eq!(found.message, format!("the MCP server `t` {what}: `{place}`"));
        let (reported, advice) = (found.cause.unwrap_or_default(), found.hint.unwrap());
        assert!(reported.contains(cause), "{reported}");
        assert!(advice.contains(hint), "{advice}");
    }
}

#[tokio::test]
async fn a_call_that_may_run_twice_is_made_again_when_its_server_dies() {
    let folder = TempDir::new().unwrap();
    let mcp = start(ours(&[])).await;
    let before = text(&mcp, 1, "whoami", json!({})).await;
    assert_eq!(text(&mcp, 1, "flaky", json!({"marker": path(&folder, "marker")})).await, "works");
    assert_ne!(text(&mcp, 1, "whoami", json!({})).await, before);
    mcp.close().await;
}

#[tokio::test]
async fn a_call_that_must_not_run_twice_is_not_made_again() {
    let folder = TempDir::new().unwrap();
    let count = path(&folder, "count");
    let mcp = start(ours(&["--count", &count])).await;
    let failure = call(&mcp, 1, "crash", json!({"label": "once"})).await.unwrap_err();
    assert!(failure.may_have_run);
    assert!(
        failure.message.starts_with("the connection with the MCP server `t` broke"),
        "{}",
        failure.message
    );
    assert_eq!(lines(&count), ["once"]);
    assert_eq!(text(&mcp, 2, "count", json!({"label": "next"})).await, "counted");
    assert_eq!(lines(&count), ["once", "next"]);
    mcp.close().await;
}

#[tokio::test]
async fn a_server_that_died_between_calls_is_back_for_the_next() {
    let events = Events::new().await;
    let mcp = start(ours(&events.flags())).await;
    kill(events.process("started").await);
    // The next call may find the connection closed, or break with it: either way it must not run twice, and
    // it cannot have run before the server was back.
    let (answer, reported) = tokio::join!(call(&mcp, 1, "echo", json!({"text": "again"})), async {
        let started = events.next().await;
        (started.starts_with("started "), events.next().await)
    });
    assert_eq!(answer.unwrap().text, "again");
    assert_eq!(reported, (true, "call echo".to_owned()));
    mcp.close().await;
}

#[tokio::test]
async fn when_a_server_is_killed_its_calls_share_one_new_start() {
    let events = Events::new().await;
    let mcp = start(ours(&events.flags())).await;
    let server = events.process("started").await;
    let calls = futures_util::future::join_all((0..16).map(|row| {
        let tool = if row % 2 == 0 { "hang" } else { "hang_twice" };
        call(&mcp, row, tool, json!({}))
    }));
    let watch = async {
        for _ in 0..16 {
            assert!(events.next().await.starts_with("call hang"));
        }
        kill(server);
        events.process("started").await;
        for _ in 0..8 {
            assert_eq!(events.next().await, "call hang_twice");
        }
        let (done, reported) = tokio::join!(text(&mcp, 99, "release", json!({})), events.next());
        assert_eq!((done.as_str(), reported.as_str()), ("done", "call release"));
    };
    let (outcomes, ()) = tokio::join!(calls, watch);
    for (row, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(output) => assert_eq!((row % 2, output.text.as_str()), (1, "released")),
            Err(failure) => assert_eq!((row % 2, failure.may_have_run), (0, true), "{failure:?}"),
        }
    }
    mcp.close().await;
}

#[tokio::test]
async fn a_server_that_stays_away_is_left_alone_for_a_while() {
    let folder = TempDir::new().unwrap();
    let (started, count) = (path(&folder, "started"), path(&folder, "count"));
    for (pause, back) in [(Duration::from_secs(3600), false), (Duration::ZERO, true)] {
        let mut server = ours(&["--once", &started, "--count", &count]);
        let wait = Duration::from_millis(1);
        server.reconnect = ReconnectPolicy { tries: 2, first_wait: wait, longest_wait: wait, pause };
        let mcp = start(server).await;
        assert!(call(&mcp, 1, "crash", json!({"label": "x"})).await.unwrap_err().may_have_run);
        let failure = call(&mcp, 2, "echo", json!({"text": "x"})).await.unwrap_err();
        assert_eq!(
            (failure.message.as_str(), failure.may_have_run),
            ("the MCP server `t` exited before it answered", false)
        );
        // Now the server would start; after a pause of zero length it does.
        std::fs::remove_file(&started).unwrap();
        let third = call(&mcp, 3, "echo", json!({"text": "back"})).await;
        assert_eq!(third.map(|output| output.text).ok(), back.then(|| "back".to_owned()));
        mcp.close().await;
        drop(std::fs::remove_file(&started));
    }
}
