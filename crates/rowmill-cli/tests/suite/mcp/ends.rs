//! However a run ends, none of its processes remains.

use rowmill_testkit::{Simulator, SimulatorScript};
use rustix::process::Signal;
use serde_json::json;

use crate::faults_support::{Home, Running};
use crate::mcp::kit::{
    calling, card, entry, files, home, installed, own_entry, processes, run, wait_until_gone,
};

const STOPPING: &str = "stopping: finishing rows in progress";
const ABORTING: &str = "aborting: cancelling calls in flight";

/// A run of 40 rows of which 8 wait for the model, with servers of which one ends only by force.
struct Held {
    home: Home,
    simulator: Simulator,
    running: Running,
}

fn held(config: &str, tool: &'static str) -> Held {
    let home = home(40, config, &card("servers: [t]"));
    let script = calling(tool, |row| json!({"text": row.to_string()})).hold_after(20);
    let simulator = Simulator::start_blocking(script);
    let running = run(&home, &simulator).args(&["--parallel", "8"]).start();
    simulator.wait_until_blocking(|stats| stats.answers == 20 && stats.requests == 28);
    Held { home, simulator, running }
}

/// A server that ignores the end of its input and SIGTERM, and has started another process.
fn stubborn(more: &str) -> String {
    own_entry("t", &["--stubborn", "--child"], more)
}

#[test]
fn ctrl_c_and_sigterm_end_servers_that_do_not_want_to_and_what_these_started() {
    for signal in [Signal::INT, Signal::TERM] {
        let Held { home, simulator, mut running } = held(&stubborn(""), "t__echo");
        assert_eq!(processes(&home).len(), 3, "rowmill, the server and its child");
        running.signal(signal);
        running.wait_for_talk(STOPPING);
        simulator.release();
        let ended = running.end();
        assert_eq!(ended.code, Some(130), "{}", ended.err);
        assert_eq!(processes(&home), []);
        assert!(home.envelopes().iter().all(|envelope| envelope["ok"] == true));
    }
}

#[test]
fn a_second_and_a_third_ctrl_c_leave_no_server_either() {
    for more in ["", "per_row = true"] {
        for signals in [2, 3] {
            let Held { home, simulator: _simulator, mut running } = held(&stubborn(more), "t__echo");
            running.signal(Signal::INT);
            running.wait_for_talk(STOPPING);
            running.signal(Signal::INT);
            running.wait_for_talk(ABORTING);
            if signals == 3 {
                running.signal(Signal::INT);
            }
            let ended = running.end();
            assert_eq!(ended.code, Some(130), "{more} {signals}: {}", ended.err);
            // A killed process disappears a moment later.
            wait_until_gone(&home);
        }
    }
}

#[test]
fn ctrl_c_while_servers_start_does_not_wait_for_them() {
    let config = own_entry("t", &["--silent"], "start_timeout = \"10m\"");
    let home = home(1, &config, &card("servers: [t]"));
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let running = run(&home, &simulator).start();
    while !processes(&home).iter().any(|(_, command)| command.contains("--silent")) {
        std::thread::yield_now();
    }
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    ended.says(&["interrupted before the first row; nothing was sent"]);
    wait_until_gone(&home);
    assert_eq!(simulator.stats().requests, 0);
    assert_eq!(files(&home.path("")).len(), 3, "the rows, the configuration and the card");
}

#[test]
fn a_tool_that_hangs_is_dropped_by_a_second_ctrl_c() {
    let home = home(40, &own_entry("t", &["--count", "calls"], ""), &card("servers: [t]"));
    let simulator = Simulator::start_blocking(calling("t__hang", |row| json!({"label": row.to_string()})));
    let mut running = run(&home, &simulator).args(&["--parallel", "8"]).start();
    let calls = || home.exists("calls") && home.read("calls").lines().count() == 8;
    while !calls() {
        std::thread::yield_now();
    }
    running.signal(Signal::INT);
    running.wait_for_talk(STOPPING);
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert_eq!(processes(&home), []);
    let envelopes = home.envelopes();
    assert_eq!(envelopes.len(), 8);
    for envelope in envelopes {
        assert_eq!(envelope["error"]["type"], "Interrupted", "{envelope}");
    }
}

#[test]
fn reference_servers_end_by_themselves_when_rowmill_is_killed() {
    let (_folder, config) = reference_servers();
    let home = home(40, &config, &card("servers: [t, files, db]"));
    let script = calling("t__echo", |row| json!({"message": row.to_string()})).hold_after(20);
    let simulator = Simulator::start_blocking(script);
    let running = run(&home, &simulator).args(&["--parallel", "8"]).start();
    simulator.wait_until_blocking(|stats| stats.answers == 20 && stats.requests == 28);
    assert_eq!(processes(&home).len(), 4, "rowmill and three servers");
    assert_eq!(running.kill().code, None);
    wait_until_gone(&home);
}

fn reference_servers() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let database = place.join("rows.db");
    let config = [
        entry("t", &[&installed("mcp-server-everything")], ""),
        entry("files", &[&installed("mcp-server-filesystem"), place.to_str().unwrap()], ""),
        entry("db", &[&installed("mcp-server-sqlite"), "--db-path", database.to_str().unwrap()], ""),
    ];
    (folder, config.concat())
}

#[test]
fn servers_of_rows_end_by_themselves_when_rowmill_is_killed() {
    let Held { home, simulator: _simulator, running } =
        held(&own_entry("t", &[], "per_row = true"), "t__echo");
    assert_eq!(running.kill().code, None);
    wait_until_gone(&home);
}
