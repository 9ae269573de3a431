//! Runs that let the user sign in before the first row.

use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout};

use rowmill_testkit::Simulator;
use serde_json::json;

use crate::faults_support::{Home, Run, assert_all_ok};
use crate::mcp::kit::{OwnServer, calling, card, home, run};
use crate::mcp::people::{get, location, token_files};

/// A folder with a card that uses a server with sign-in, which may be refused.
fn with_server(people: &str) -> (OwnServer, Home, Simulator) {
    let server = OwnServer::start(&["--people", people]);
    let home = home(2, "", &card(&format!("mcp_connect:\n  - target: {}\n    name: docs", server.url)));
    let simulator = Simulator::start_blocking(calling("docs__credential", |_| json!({})));
    (server, home, simulator)
}

/// A run on a terminal.
struct OnTerminal {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    shown: String,
}

impl OnTerminal {
    fn start(run: Run) -> Self {
        let mut child = run.start_on_terminal();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, shown: String::new() }
    }

    /// The address that the user must open.
    fn address(&mut self) -> String {
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            self.shown.push_str(&format!("{line}\n"));
            if line.starts_with("http://") {
                return line.trim().to_owned();
            }
        }
        panic!("nobody was asked: {}", self.shown);
    }

    /// Its output, and its exit code.
    fn end(mut self) -> (String, Option<i32>) {
        self.shown.extend(self.lines.map(|line| line.unwrap() + "\n"));
        (self.shown, self.child.wait().unwrap().code())
    }
}

#[test]
fn a_run_lets_a_person_who_is_present_sign_in_and_goes_on() {
    let (_server, home, simulator) = with_server("yes");
    let mut screen = OnTerminal::start(run(&home, &simulator));
    let back = get(&screen.address());
    assert!(get(location(&back)).contains("You are signed in"));
    let (shown, code) = screen.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("the MCP server `docs` requires you to sign in; open this address:"), "{shown}");
    assert_all_ok(&home.envelopes(), 2);
    assert_eq!(home.envelopes()[0]["result"], "Bearer ***", "its tokens are secrets at once");
    let [file] = token_files(&home).try_into().unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // From now on, no user needs to be present.
    run(&home, &simulator).args(&["--overwrite"]).ends_with(0);
}

#[test]
fn nobody_is_asked_to_sign_in_where_no_person_is_present() {
    let (_server, home, simulator) = with_server("yes");
    for absent in [run(&home, &simulator).env("CI", "true"), run(&home, &simulator).args(&["--no-progress"])]
    {
        let (shown, code) = OnTerminal::start(absent).end();
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("asks for a credential (HTTP 401)"), "{shown}");
        assert!(shown.contains("rowmill mcp login") && !shown.contains("open this address"), "{shown}");
    }
}

#[test]
fn a_sign_in_that_is_interrupted_or_refused_ends_the_run_before_its_first_row() {
    let (_server, home, simulator) = with_server("no");
    let mut screen = OnTerminal::start(run(&home, &simulator));
    screen.address();
    let mut keys = screen.child.stdin.take().unwrap();
    keys.write_all(b"\x03").unwrap();
    let (shown, code) = screen.end();
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("interrupted before the first row; nothing was sent"), "{shown}");

    let mut screen = OnTerminal::start(run(&home, &simulator));
    let back = get(&screen.address());
    assert!(get(location(&back)).contains("Access was denied"));
    let (shown, code) = screen.end();
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("sign-in to `") && shown.contains("access_denied"), "{shown}");
    assert!(token_files(&home).is_empty() && !home.path("out.jsonl").exists());
}
