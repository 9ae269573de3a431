//! Five hundred rows through reference servers, one of which is killed in the middle.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::{Value, json};

use crate::faults_support::{Home, assert_all_ok};
use crate::mcp::kit::{
    Everything, PARALLEL, Victim, call, card, entry, home, installed, number, own_entry, processes, run,
};

const ROWS: usize = 500;
/// The row at which the fault starts.
const FROM: usize = 151;

/// The results of the rows, in input order. All rows are ok.
fn results(home: &Home) -> Vec<String> {
    let envelopes = home.envelopes();
    assert_all_ok(&envelopes, ROWS);
    envelopes.iter().map(|envelope| envelope["result"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn three_servers_over_stdio_serve_500_rows_and_one_that_is_killed_comes_back() {
    let home = home(ROWS, "", &card(&servers_of_the_card()));
    let folder = home.path("").canonicalize().unwrap().display().to_string();
    let database = home.path("rows.db").display().to_string();
    let config = [
        entry("files", &[&installed("mcp-server-filesystem"), &folder], "tools = [\"*_file\"]"),
        entry(
            "db",
            &[&installed("mcp-server-sqlite"), "--db-path", &database],
            "idempotent = [\"read_query\"]",
        ),
    ];
    home.write("rowmill.toml", &config.concat());
    let victim = Arc::new(Victim::of(FROM, &home, "filesystem"));
    let script = SimulatorScript::new().answer_calls({
        let (victim, folder) = (Arc::clone(&victim), folder.clone());
        move |seen| {
            let row = number(seen.prompt);
            let file = format!("{folder}/{row}.txt");
            match (row % 3, seen.turn) {
                (0, 1) => call("db__read_query", json!({"query": format!("SELECT {row} * {row} AS square")})),
                (1, 1) => {
                    victim.called(row);
                    call("files__write_file", json!({"path": file, "content": format!("text of row {row}")}))
                }
                (1, 2) => call("files__read_text_file", json!({"path": file})),
                (2, 1) => call("everything__get-sum", json!({"a": row, "b": 1000})),
                (1, _) => {
                    victim.answered();
                    SimulatedAnswer::Text(seen.last.to_owned())
                }
                _ => SimulatedAnswer::Text(seen.last.to_owned()),
            }
        }
    });
    let simulator = Simulator::start_blocking(script);

    run(&home, &simulator).args(&["--parallel", &PARALLEL.to_string()]).ends_with(0);

    assert_eq!(processes(&home), []);
    assert!(victim.is_dead());
    for (row, result) in (1..).zip(results(&home)) {
        let expected = match row % 3 {
            0 => format!("[{{'square': {}}}]", row * row),
            1 => format!("text of row {row}"),
            _ => format!("The sum of {row} and 1000 is {}.", row + 1000),
        };
        assert_eq!(result, expected, "row {row}");
    }
    assert_eq!(simulator.stats().repeated_turns, 0);
}

fn servers_of_the_card() -> String {
    let program = installed("mcp-server-everything");
    format!("servers: [files, db]\nmcp_connect:\n  everything:\n    command: {program}\n    tools: [get-sum]")
}

#[test]
fn a_tool_that_must_not_run_twice_does_not_when_its_server_is_killed_and_the_model_is_reported() {
    let home = home(ROWS, "", &card("servers: [db]"));
    let database = home.path("rows.db");
    let command = [&installed("mcp-server-sqlite"), "--db-path", database.to_str().unwrap()];
    home.write("rowmill.toml", &entry("db", &command, ""));
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute("CREATE TABLE done (row INTEGER)", ()).unwrap();
    let victim = Arc::new(Victim::of(FROM, &home, "sqlite"));
    let script = SimulatorScript::new().answer_calls({
        let victim = Arc::clone(&victim);
        move |seen| {
            let row = number(seen.prompt);
            if seen.turn == 1 {
                victim.called(row);
                return call("db__write_query", json!({"query": format!("INSERT INTO done VALUES ({row})")}));
            }
            victim.answered();
            SimulatedAnswer::Text(seen.last.to_owned())
        }
    });
    let simulator = Simulator::start_blocking(script);

    run(&home, &simulator).args(&["--parallel", &PARALLEL.to_string()]).ends_with(0);

    assert_eq!(processes(&home), []);
    assert!(victim.is_dead());
    let mut statement = connection.prepare("SELECT row, count(*) FROM done GROUP BY row").unwrap();
    let done: BTreeMap<u32, u32> =
        statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let mut reported = 0;
    for (row, result) in (1..).zip(results(&home)) {
        let times = done.get(&row).copied().unwrap_or_default();
        if result.ends_with("whether it took effect is unknown") {
            assert!(times <= 1, "row {row} ran {times} times");
            assert!(result.starts_with("the tool failed: the connection with the MCP server `db` broke"));
            reported += 1;
        } else {
            assert_eq!((times, result.as_str()), (1, "[{'affected_rows': 1}]"), "row {row}");
        }
    }
    assert!((1..=PARALLEL).contains(&reported), "{reported} rows were told");
}

#[test]
fn a_server_over_http_serves_500_rows_and_is_found_again_after_it_was_killed() {
    let server = Everything::start(None);
    let (process, port) = (server.process(), server.port());
    let home = home(ROWS, &server.entry("far"), &card("servers: [far]\ntools: {far: [get-sum, echo]}"));
    let (died, dead) = mpsc::channel();
    let victim = Victim::new(FROM, move || process);
    let script = SimulatorScript::new().answer_calls(move |seen| {
        let row = number(seen.prompt);
        if seen.turn > 1 {
            victim.answered();
            return SimulatedAnswer::Text(seen.last.to_owned());
        }
        let was_dead = victim.is_dead();
        victim.called(row);
        if victim.is_dead() && !was_dead {
            died.send(()).unwrap();
        }
        match row % 2 {
            0 => call("far__get-sum", json!({"a": row, "b": 1000})),
            _ => call("far__echo", json!({"message": format!("row {row}")})),
        }
    });
    let simulator = Simulator::start_blocking(script);
    let running = run(&home, &simulator).args(&["--parallel", &PARALLEL.to_string()]).start();

    dead.recv().unwrap();
    drop(server);
    let _again = Everything::start(Some(port));

    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(processes(&home), []);
    for (row, result) in (1..).zip(results(&home)) {
        let expected = match row % 2 {
            0 => format!("The sum of {row} and 1000 is {}.", row + 1000),
            _ => format!("Echo: row {row}"),
        };
        assert_eq!(result, expected, "row {row}");
    }
}

#[test]
fn every_row_has_a_server_of_its_own_where_it_is_wanted_and_none_is_left() {
    const ROWS: usize = 24;
    let config = [own_entry("own", &[], "per_row = true"), own_entry("shared", &[], "")];
    let home = home(ROWS, &config.concat(), &card("servers: [own, shared]"));
    let script = SimulatorScript::new().answer_calls(|seen| match seen.turn {
        1 | 2 => SimulatedAnswer::Calls {
            text: String::new(),
            calls: ["own__whoami", "shared__whoami"].map(|tool| (tool.to_owned(), json!({}))).into(),
        },
        _ => {
            let results = seen.messages.iter().flat_map(|message| &message.answers);
            SimulatedAnswer::Json(results.map(|result| json!(result.text)).collect::<Value>())
        }
    });
    let simulator = Simulator::start_blocking(script);

    run(&home, &simulator).args(&["--parallel", "8"]).ends_with(0);

    assert_eq!(processes(&home), []);
    let envelopes = home.envelopes();
    assert_all_ok(&envelopes, ROWS);
    let (mut own, mut shared) = (Vec::new(), Vec::new());
    for envelope in &envelopes {
        let reported: Vec<u32> = serde_json::from_str::<Vec<String>>(envelope["result"].as_str().unwrap())
            .unwrap()
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        assert_eq!(
            (reported[0], reported[1]),
            (reported[2], reported[3]),
            "both turns of a row reach the same servers"
        );
        own.push(reported[0]);
        shared.push(reported[1]);
    }
    for (numbers, different) in [(&mut own, ROWS), (&mut shared, 1)] {
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), different, "{numbers:?}");
    }
}
