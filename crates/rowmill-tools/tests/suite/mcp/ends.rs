//! No process is left running.

use rowmill_core::ports::ToolHost;
use serde_json::json;

use crate::mcp::kit::{Events, alive, call, gone, kill, ours, problem, process, start};

#[tokio::test]
async fn closing_ends_a_server_that_does_not_want_to_and_what_it_started() {
    let events = Events::new().await;
    let [notify, port] = events.flags();
    let mcp = start(ours(&["--stubborn", "--child", notify, port])).await;
    let (child, server) = (events.process("child").await, events.process("started").await);
    assert!(alive(child) && alive(server));
    mcp.close().await;
    assert!(!alive(server));
    gone(child).await;
    let failure = call(&mcp, 1, "echo", json!({})).await.unwrap_err();
    assert_eq!(failure.message, "the connection with the MCP server `t` was closed");
    assert!(!failure.may_have_run);
}

#[tokio::test]
async fn dropping_the_host_kills_servers_and_what_they_started() {
    let events = Events::new().await;
    let [notify, port] = events.flags();
    let mut server = ours(&["--stubborn", "--child", notify, port]);
    server.per_row = true;
    let mcp = start(server).await;
    let first = (events.process("child").await, events.process("started").await);
    let (answer, second) = tokio::join!(call(&mcp, 1, "echo", json!({"text": "x"})), async {
        let second = (events.process("child").await, events.process("started").await);
        assert_eq!(events.next().await, "call echo");
        second
    });
    assert_eq!(answer.unwrap().text, "x");
    drop(mcp);
    for process in [first.0, first.1, second.0, second.1] {
        gone(process).await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_ends_the_others_too() {
    let events = Events::new().await;
    let (good, bad) = (ours(&events.flags()), process("bad", &["/no/such/program"]));
    let (found, good) = tokio::join!(problem(vec![good, bad]), events.process("started"));
    assert_eq!(found.message, "the MCP server `bad` cannot be started: `/no/such/program`");
    gone(good).await;
}

#[tokio::test]
async fn a_server_behind_a_shell_is_ended_with_it() {
    let events = Events::new().await;
    let words = rowmill_testkit::mcp_server();
    let [notify, port] = events.flags();
    let line = format!("{} --stubborn {notify} {port}; echo never", words.join(" "));
    let mcp = start(process("t", &["sh", "-c", &line])).await;
    let server = events.process("started").await;
    mcp.close().await;
    gone(server).await;
}

#[tokio::test]
async fn what_a_server_started_in_a_session_of_its_own_ends_with_it() {
    let events = Events::new().await;
    let [notify, port] = events.flags();
    let started = async || {
        let mcp = start(ours(&["--child", "--own-session", notify, port])).await;
        let (child, server) = (events.process("child").await, events.process("started").await);
        assert!(alive(child));
        (mcp, child, server)
    };
    let (mcp, child, _) = started().await;
    mcp.close().await;
    gone(child).await;
    let (mcp, child, _) = started().await;
    drop(mcp);
    gone(child).await;
    // One that had ended before.
    let (mcp, child, server) = started().await;
    kill(server);
    gone(server).await;
    mcp.close().await;
    gone(child).await;
}
