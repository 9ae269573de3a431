//! Servers over streamable HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use rowmill_core::ports::ToolHost;
use rowmill_core::redact::Redactor;
use rowmill_tools::{
    ClientCredentials, McpHost, McpServerSettings, McpSettings, McpTransport, ReconnectPolicy,
};
use rowmill_types::{Secret, ToolOutput};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::mcp::kit::{Events, Network, call, problem, settings, start, text};

/// A server with a single attempt and no pause afterwards.
fn impatient(network: &Network) -> McpServerSettings {
    let mut server = network.server();
    server.reconnect = ReconnectPolicy { tries: 1, pause: Duration::ZERO, ..ReconnectPolicy::default() };
    server
}

#[tokio::test]
async fn calls_are_answered_as_json_and_as_events() {
    for flags in [&[][..], &["--sse"], &["--redirect"]] {
        let network = Network::new(flags).await;
        let mcp = start(network.server()).await;
        let rows = (0..64).map(|row| text(&mcp, row, "add", json!({"a": row, "b": 1})));
        let answers = futures_util::future::join_all(rows).await;
        let expected: Vec<_> = (1..=64).map(|sum: u64| sum.to_string()).collect();
        assert_eq!(answers, expected, "{flags:?}");
        assert_eq!(text(&mcp, 1, "big", json!({"bytes": 10_000_000})).await.len(), 10_000_000);
        let failed = call(&mcp, 1, "refuse", json!({"message": "bad"})).await.unwrap();
        assert_eq!(failed, ToolOutput::error("bad"));
        mcp.close().await;
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_fails_its_call_and_no_other() {
    for flags in [&[][..], &["--sse"]] {
        let network = Network::new(flags).await;
        let mcp = start(network.server()).await;
        let (large, small) = tokio::join!(
            call(&mcp, 1, "big", json!({"bytes": 65 << 20})),
            text(&mcp, 2, "echo", json!({"text": "small"})),
        );
        let expected = "the tool's answer has more than 64 MiB and was thrown away";
        assert_eq!(large.unwrap(), ToolOutput::error(expected), "{flags:?}");
        assert_eq!(small, "small");
        mcp.close().await;
    }
}

#[tokio::test]
async fn a_forgotten_session_is_replaced() {
    for flags in [&[][..], &["--unknown-session", "400"]] {
        let network = Network::new(flags).await;
        let mcp = start(network.server()).await;
        assert_eq!(text(&mcp, 1, "forget", json!({})).await, "forgotten");
        assert_eq!(text(&mcp, 1, "count", json!({"label": "x"})).await, "counted", "{flags:?}");
        mcp.close().await;
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_missed_and_found_again() {
    let network = Network::new(&[]).await;
    let (port, server) = (network.port(), impatient(&network));
    let mcp = start(server).await;
    network.kill().await;
    let failure = call(&mcp, 1, "count", json!({})).await.unwrap_err();
    assert_eq!(
        (failure.message.as_str(), failure.may_have_run),
        ("the MCP server `t` does not answer", false)
    );
    let _again = Network::at(port, &[]).await;
    assert_eq!(text(&mcp, 1, "count", json!({})).await, "counted");
    mcp.close().await;
}

#[tokio::test]
async fn a_call_that_was_under_way_when_the_server_died_may_have_run() {
    let events = Events::new().await;
    let network = Network::new(&events.flags()).await;
    events.process("started").await;
    let mcp = start(impatient(&network)).await;
    let (outcome, ()) = tokio::join!(call(&mcp, 1, "hang", json!({})), async {
        assert_eq!(events.next().await, "call hang");
        network.kill().await;
    });
    let failure = outcome.unwrap_err();
    assert!(failure.may_have_run, "{failure:?}");
    mcp.close().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let events = Events::new().await;
    let network = Network::new(&events.flags()).await;
    events.process("started").await;
    let mut server = network.server();
    server.timeout = Duration::from_millis(300);
    let mcp = start(server).await;
    let (failure, reported) = tokio::join!(call(&mcp, 1, "hang", json!({})), events.next());
    assert!(failure.unwrap_err().may_have_run);
    assert_eq!((reported.as_str(), events.next().await.as_str()), ("call hang", "cancelled"));
    let ((), reported) = tokio::join!(mcp.close(), events.next());
    assert_eq!(reported, "deleted");
}

#[tokio::test]
async fn a_server_that_asks_for_a_credential_says_what_helps() {
    let network = Network::new(&["--token", "tok-12345678"]).await;
    let found = problem(vec![network.server()]).await;
    let expected = format!("the MCP server `t` asks for a credential (HTTP 401): `{}`", network.url);
    assert_eq!(found.message, expected);
    let hint = found.hint.unwrap();
    assert!(hint.contains("`access_token`") && hint.contains("`auth`"), "{hint}");
    let mut server = network.server();
    if let McpTransport::Http { headers, .. } = &mut server.transport {
        headers.insert("Authorization".to_owned(), Secret::new("Bearer tok-12345678"));
    }
    let mcp = start(server).await;
    assert_eq!(text(&mcp, 1, "echo", json!({"text": "let in"})).await, "let in");
    mcp.close().await;
}

#[tokio::test]
async fn a_grant_gives_a_token_and_another_when_that_is_refused() {
    let folder = TempDir::new().unwrap();
    let count = folder.path().join("count");
    let network = Network::new(&["--oauth", "me:sesame-open", "--count", count.to_str().unwrap()]).await;
    let with = |secret: &str| {
        let scopes = vec!["read".to_owned()];
        let auth = Some(ClientCredentials {
            client_id: "me".to_owned(),
            client_secret: Secret::new(secret),
            scopes,
        });
        McpServerSettings::new(
            "t",
            McpTransport::Http { url: network.url.clone(), headers: BTreeMap::new(), auth },
        )
    };
    let found = problem(vec![with("wrong-secret")]).await;
    assert_eq!(found.message, format!("the MCP server `t` returned no token: `{}`", network.url));
    let mcp = start(with("sesame-open")).await;
    assert_eq!(text(&mcp, 1, "revoke", json!({})).await, "forgotten");
    assert_eq!(text(&mcp, 1, "echo", json!({"text": "still in"})).await, "still in");
    mcp.close().await;
    let grants = std::fs::read_to_string(count).unwrap();
    assert_eq!(grants, "client_credentials read\nclient_credentials read\n");
}

#[tokio::test]
async fn a_token_is_known_as_a_secret_before_the_server_sees_it() {
    let network = Network::new(&["--oauth", "me:sesame-open"]).await;
    let auth = ClientCredentials {
        client_id: "me".to_owned(),
        client_secret: Secret::new("sesame-open"),
        scopes: Vec::new(),
    };
    let transport =
        McpTransport::Http { url: network.url.clone(), headers: BTreeMap::new(), auth: Some(auth) };
    let run = Redactor::default();
    let settings = settings().with_redactor(run.clone());
    let mcp = McpHost::start(vec![McpServerSettings::new("t", transport)], settings).await.unwrap();
    let first = text(&mcp, 1, "credential", json!({})).await;
    assert_eq!(text(&mcp, 1, "revoke", json!({})).await, "forgotten");
    let second = text(&mcp, 1, "credential", json!({})).await;
    assert!(first != second && second.ends_with("-planted"), "{first} {second}");
    for seen in [first, second] {
        assert_eq!(run.redact(&seen), "Bearer ***");
    }
    mcp.close().await;
}

#[tokio::test]
async fn an_address_where_nothing_or_something_else_is_is_one_problem() {
    let network = Network::new(&[]).await;
    let (server, url) = (network.server(), network.url.clone());
    network.kill().await;
    let found = problem(vec![server]).await;
    assert_eq!(found.message, format!("the MCP server `t` does not answer: `{url}`"));
    assert_eq!(found.hint.as_deref(), Some("start the server or correct its `url`"));
}

#[tokio::test]
async fn a_status_that_refuses_a_call_says_whether_the_tool_may_have_run() {
    let cases = [
        ("413", "`t`: HTTP 413: <html>", false),
        ("429", "`t`: the server limits requests (HTTP 429)", false),
        ("500", "the connection with the MCP server `t` broke: HTTP 500", true),
        ("503", "the connection with the MCP server `t` broke: HTTP 503", false),
        ("200", "`t`: Unexpected content type: Some(\"text/html\")", true),
    ];
    for (status, message, maybe_ran) in cases {
        let network = Network::new(&["--status", status]).await;
        let mcp = start(network.server()).await;
        let failure = call(&mcp, 1, "count", json!({})).await.unwrap_err();
        assert_eq!((failure.message.as_str(), failure.may_have_run), (message, maybe_ran));
        mcp.close().await;
    }
}

/// A proxy that lets nobody through, and what it is asked first.
async fn asked_of_proxy(proxy: &TcpListener) -> String {
    let mut connection = BufReader::new(proxy.accept().await.unwrap().0);
    let mut first = String::new();
    connection.read_line(&mut first).await.unwrap();
    let mut line = String::from("header");
    while !line.trim().is_empty() {
        line.clear();
        connection.read_line(&mut line).await.unwrap();
    }
    connection.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    first
}

#[tokio::test]
async fn servers_are_reached_through_the_proxy_that_the_environment_names() {
    let oauth = || ClientCredentials {
        client_id: "me".to_owned(),
        client_secret: Secret::new("sesame"),
        scopes: Vec::new(),
    };
    for auth in [None, Some(oauth())] {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", proxy.local_addr().unwrap());
        let environment = |name: &str| (name == "HTTP_PROXY").then(|| address.clone());
        let url = "http://mcp.invalid/mcp".to_owned();
        let server = McpServerSettings::new(
            "t",
            McpTransport::Http { url, headers: BTreeMap::new(), auth: auth.clone() },
        );
        let asked = tokio::select! {
            asked = asked_of_proxy(&proxy) => asked,
            started = McpHost::start(vec![server], McpSettings::new(1, &environment)) => panic!("{started:?}"),
        };
        let (method, rest) = asked.split_once(' ').unwrap();
        assert_eq!(method, if auth.is_some() { "GET" } else { "POST" }, "{asked}");
        assert!(rest.starts_with("http://mcp.invalid/"), "{asked}");
    }
}

#[tokio::test]
async fn a_proxy_that_only_the_process_knows_of_is_not_used() {
    const AGAIN: &str = "ROWMILL_TEST_BEHIND_A_PROXY";
    if std::env::var_os(AGAIN).is_none() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "mcp::network::a_proxy_that_only_the_process_knows_of_is_not_used"]);
        // Nothing listens there.
        for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            again.env(name, "http://127.0.0.1:9");
        }
        let ended =
            again.env_remove("NO_PROXY").env_remove("no_proxy").env(AGAIN, "1").output().await.unwrap();
        let message = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && message.contains("1 passed"), "{message}");
        return;
    }
    let network = Network::new(&[]).await;
    let mcp = start(network.server()).await;
    assert_eq!(text(&mcp, 1, "echo", json!({"text": "direct"})).await, "direct");
    mcp.close().await;
}
