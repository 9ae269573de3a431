//! Resuming an earlier run: rows that moved or are gone, outputs that were changed, and queries that
//! return different rows each time.

use std::collections::BTreeSet;

use crate::faults_support::{Home, assert_all_ok, names};
use crate::support::wait_for;
use rowmill_testkit::{Simulator, SimulatorScript};
use serde_json::Value;

fn row(id: &str) -> String {
    format!("{{\"id\":\"{id}\",\"p\":\"prompt {id}\"}}\n")
}

fn rows(ids: &str) -> String {
    ids.split(' ').map(row).collect()
}

/// The ids of the output in its order. Numbers must count up from 1, and results must match the ids.
#[track_caller]
fn ids_in_order(home: &Home) -> String {
    let envelopes = home.envelopes();
    for (number, line) in (1u64..).zip(&envelopes) {
        assert_eq!(line["row_number"], number, "{line}");
        let id = line["id"].as_str().unwrap();
        assert!(
            line["result"].as_str().is_some_and(|text| text.ends_with(&format!("prompt {id}"))),
            "{line}"
        );
    }
    envelopes.iter().map(|line| line["id"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

const WITH_IDS: [&str; 2] = ["--id-field", "id"];

#[test]
fn rows_that_moved_are_in_the_output_where_they_are_in_the_input_now() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    home.write("in.jsonl", &rows("a b c d"));
    home.run().on(&simulator).args(&WITH_IDS).ends_with(0);
    home.write("in.jsonl", &rows("x d b y a c"));
    let resume = || home.run().on(&simulator).args(&WITH_IDS).args(&["--resume"]).ends_with(0);
    let ended = resume();
    ended
        .resumed(4, 0, 0)
        .says(&["moved:  4 rows changed position in the input and were reordered in the output"]);
    assert_eq!(ids_in_order(&home), "x d b y a c");
    assert_eq!(simulator.stats().requests, 6);
    let before = home.read("out.jsonl");
    let ended = resume();
    assert!(!ended.err.contains("moved:"), "{}", ended.err);
    assert_eq!((home.read("out.jsonl"), simulator.stats().requests), (before, 6));
}

#[test]
fn rows_that_moved_after_a_kill_are_found_in_ledger_and_output() {
    let home = Home::new();
    home.write("in.jsonl", &rows("a b c d e f"));
    for (input, answers) in [("a b c d e f", 3), ("f e d c b a", 1)] {
        home.write("in.jsonl", &rows(input));
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(answers));
        let args = [&WITH_IDS[..], &["--parallel", "1", "--resume"]].concat();
        let running = home.run().on(&simulator).args(&args).start();
        simulator.wait_until_blocking(|stats| stats.requests == answers + 1);
        running.kill();
    }
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    home.write("in.jsonl", &rows("b new f a d c e"));
    home.run().on(&simulator).args(&WITH_IDS).args(&["--resume"]).ends_with(0);
    assert_eq!(ids_in_order(&home), "b new f a d c e");
    assert_eq!(simulator.stats().requests, 3, "four were answered before");
}

#[test]
fn rows_whose_calls_were_cut_are_counted_by_their_ids_when_rows_move_between_kills() {
    let home = Home::new();
    for (input, unknown) in [("a b c d", 0), ("c d a b", 2)] {
        home.write("in.jsonl", &rows(input));
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(0));
        let args = [&WITH_IDS[..], &["--parallel", "2", "--resume"]].concat();
        let running = home.run().on(&simulator).args(&args).start();
        simulator.wait_until_blocking(|stats| stats.requests == 2);
        let ended = running.kill();
        if unknown > 0 {
            ended.resumed(0, 0, unknown);
        }
    }
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let ended = home.run().on(&simulator).args(&WITH_IDS).args(&["--resume"]).ends_with(0);
    ended.resumed(0, 0, 4);
    assert_eq!(ids_in_order(&home), "c d a b");
}

#[test]
fn a_row_that_was_mended_is_counted_as_done_beside_a_ledger_that_was_kept() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    let run = |code: i32, args: &[&str]| {
        home.run().on(&simulator).args(&WITH_IDS).args(&["--keep-temp"]).args(args).ends_with(code)
    };
    home.write("in.jsonl", &format!("{}broken\n{}", row("a"), row("c")));
    run(3, &[]);
    home.write("in.jsonl", &rows("x a b c"));
    run(0, &["--resume", "--accept-changes"]).resumed(2, 1, 0);
    run(0, &["--resume"]).resumed(4, 0, 0);
    assert_eq!(ids_in_order(&home), "x a b c");
}

/// Checks that there is one envelope per row of the input, in its order; an unreadable row has its
/// number as the id.
#[track_caller]
fn assert_follows_input(home: &Home, ids: &[&str]) {
    let envelopes = home.envelopes();
    for (number, (id, line)) in (1u64..).zip(ids.iter().zip(&envelopes)) {
        let expected = if *id == "broken" { Value::from(number) } else { Value::from(*id) };
        assert_eq!((&line["id"], &line["row_number"]), (&expected, &Value::from(number)), "{line}");
    }
    assert_eq!(envelopes.len(), ids.len());
}

#[test]
fn rows_that_cannot_be_read_and_moved_are_found_beside_a_ledger_that_was_kept() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let text = |ids: &[&str]| -> String {
        ids.iter().map(|id| if *id == "broken" { "broken\n".into() } else { row(id) }).collect()
    };
    let names: Vec<String> = (1..=20).map(|number| format!("r{number}")).collect();
    let before: Vec<&str> = (1..=20)
        .zip(&names)
        .map(|(number, name)| if [5, 6, 7, 15].contains(&number) { "broken" } else { name.as_str() })
        .collect();
    let shuffled = [&["new"], &before[10..], &before[..8], &before[9..10]].concat();
    for (first, then) in [
        (&["a", "b", "c", "broken", "d", "e"][..], &["x", "a", "b", "c", "broken", "d", "e"][..]),
        (&before, &shuffled),
    ] {
        let home = Home::new();
        home.write("in.jsonl", &text(first));
        let run = |args: &[&str]| {
            home.run().on(&simulator).args(&WITH_IDS).args(&["--keep-temp"]).args(args).ends_with(3)
        };
        run(&[]);
        home.write("in.jsonl", &text(then));
        for _ in 0..2 {
            run(&["--resume", "--accept-changes", "--removed-rows", "drop"]);
            assert_follows_input(&home, then);
        }
    }
}

#[test]
fn rows_that_are_gone_are_kept_at_the_end_and_reported_or_dropped_if_the_user_says_so() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    home.write("in.jsonl", &rows("a b c d"));
    let run = |args: &[&str]| home.run().on(&simulator).args(&WITH_IDS).args(args).ends_with(0);
    run(&[]);
    home.write("in.jsonl", &rows("d c x"));
    let ended = run(&["--resume"]);
    ended.says(&["gone:   2 rows are no longer in the input", "`--removed-rows drop`"]);
    assert_eq!(ids_in_order(&home), "d c x a b");
    // A row that is merely not selected is not gone.
    let ended = run(&["--resume", "--removed-rows", "drop", "--limit", "1"]);
    ended.says(&["gone:   2 rows are no longer in the input and dropped from the output"]);
    assert_eq!(ids_in_order(&home), "d c x");
    home.write("in.jsonl", &rows("d c x a"));
    run(&["--resume"]);
    assert_eq!((ids_in_order(&home).as_str(), simulator.stats().requests), ("d c x a", 6));
}

#[test]
fn an_input_that_has_none_of_the_rows_any_more_does_not_drop_them_all() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    home.write("in.jsonl", &rows("a b c"));
    home.run().on(&simulator).args(&WITH_IDS).ends_with(0);
    let before = home.read("out.jsonl");
    home.write("in.jsonl", "");
    let drop = ["--resume", "--removed-rows", "drop"];
    let ended = home.run().on(&simulator).args(&WITH_IDS).args(&drop).ends_with(1);
    ended.says(&["none of the rows of `out.jsonl` is still in the input", "nothing was dropped"]);
    assert_eq!(home.read("out.jsonl"), before);
}

#[test]
fn rows_can_be_dropped_only_where_ids_tell_which_are_gone() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(3);
    home.run().on(&simulator).ends_with(0);
    let ended = home.run().on(&simulator).args(&["--resume", "--removed-rows", "drop"]).ends_with(2);
    ended.says(&["`--removed-rows drop` needs ids", "`--id-field`"]);
    home.run().on(&simulator).args(&["--removed-rows", "drop"]).ends_with(2).says(&["--resume"]);
    assert_eq!(simulator.stats().requests, 3);
}

/// A change of an output by someone else, and whether the changed file is kept beside it.
type Damage = (&'static str, fn(&Home), bool);

#[test]
fn an_output_that_somebody_changes_while_the_run_goes_on_is_made_whole_from_the_ledger() {
    let damages: [Damage; 5] = [
        ("emptied", |home| home.write("out.jsonl", ""), false),
        ("deleted", |home| home.remove("out.jsonl"), false),
        ("edited", |home| home.write("out.jsonl", &home.read("out.jsonl").replace("row 2", "row X")), false),
        ("cut", |home| home.write("out.jsonl", home.read("out.jsonl").get(..200).unwrap()), true),
        ("written to", |home| home.append("out.jsonl", "my notes\n"), true),
    ];
    for (what, damage, is_set_aside) in damages {
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(6));
        let home = Home::with_rows(10);
        let running = home.run().on(&simulator).args(&["--parallel", "1"]).start();
        simulator.wait_until_blocking(|stats| stats.requests == 7);
        wait_for(|| Some(()).filter(|()| home.read("out.jsonl").lines().count() == 6));
        damage(&home);
        simulator.release();
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{what}: {}", ended.err);
        ended.says(&["rebuilt: the output was modified during the run"]);
        assert_all_ok(&home.envelopes(), 10);
        for (number, line) in (1..).zip(home.envelopes()) {
            assert_eq!(line["result"], format!("answer to: row {number}"), "{what}");
        }
        let expected: &[&str] = if is_set_aside {
            &["in.jsonl", "out.jsonl", "out.jsonl.changed"]
        } else {
            &["in.jsonl", "out.jsonl"]
        };
        assert_eq!(home.names(), expected, "{what}");
        assert_eq!(simulator.stats().requests, 10, "{what}");
    }
}

#[test]
fn what_only_a_changed_output_had_is_reported_and_sent_again_by_a_resume() {
    let home = Home::with_prompts((1..=10).map(|number| match number {
        9 | 10 => format!("row {number} [[400x1]]"),
        _ => format!("row {number}"),
    }));
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    home.run().on(&simulator).ends_with(3);
    let held = Simulator::start_blocking(SimulatorScript::new().hold_after(0));
    let running = home.run().on(&held).args(&["--resume"]).start();
    held.wait_until_blocking(|stats| stats.requests == 2);
    home.write("out.jsonl", "");
    held.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    ended.says(&["lost 8 envelopes of an earlier part of the run", "`--resume`"]);
    assert_eq!(home.envelopes().len(), 2);
    home.run().on(&held).args(&["--resume"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 10);
    assert_eq!(held.stats().answers, 10, "{:?}", held.stats());
}

/// The rows of `in.jsonl` that have an envelope with their own answer.
#[track_caller]
fn answered_rows(home: &Home) -> BTreeSet<String> {
    let envelopes = home.envelopes();
    assert!(envelopes.iter().all(|line| line["ok"] == true));
    let text = |line: &Value| line["result"].as_str().unwrap().to_owned();
    let rows: BTreeSet<String> = envelopes.iter().map(text).collect();
    assert_eq!(rows.len(), envelopes.len(), "no row twice");
    rows
}

#[test]
fn a_query_that_gives_other_rows_each_time_gives_the_same_ones_at_a_resume() {
    let queries: [&[&str]; 4] = [
        &["--sql", "SELECT * FROM input ORDER BY random()"],
        &["--sql", "SELECT * FROM input ORDER BY random() LIMIT 100"],
        &["--sql", "SELECT * FROM input ORDER BY random() LIMIT 100", "--id-field", "id"],
        &["--where", "random() < 0.5"],
    ];
    for query in queries {
        let home = Home::new();
        let line = |number| format!("{{\"id\":\"r{number}\",\"p\":\"row {number}\"}}\n");
        home.write("in.jsonl", &(1..=200).map(line).collect::<String>());
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(40));
        let args = [query, &["--parallel", "4"]].concat();
        let running = home.run().on(&simulator).args(&args).start();
        simulator.wait_until_blocking(|stats| stats.requests == 44);
        running.kill();
        simulator.release();
        let resume = || home.run().on(&simulator).args(&args).args(&["--resume"]).ends_with(0);
        resume().resumed(40, 0, 4).says(&["using the query results from when the run was started"]);
        let asked = simulator.stats().answers_by_prompt;
        let answered = answered_rows(&home);
        assert_eq!(asked.len(), answered.len(), "{query:?}: whatever was paid for has its envelope");
        let expected = if query[1].contains("LIMIT") { 100 } else { 200 };
        match query[0] {
            "--sql" => assert_eq!(answered.len(), expected, "{query:?}"),
            _ => assert!((50..=150).contains(&answered.len()), "{}", answered.len()),
        }
        assert!(simulator.stats().answers <= answered.len() as u64 + 4, "{query:?}");
        let requests = simulator.stats().requests;
        resume().resumed(answered.len() as u64, 0, 0);
        assert_eq!(simulator.stats().requests, requests, "{query:?}: a finished run has its rows, too");
        let left = names(&home.path(".out.jsonl.rowmill"));
        assert!(left.len() == 2 && left[0].starts_with("rows-"), "{left:?}: for the next resume");
    }
}

#[test]
fn rows_of_a_query_are_recorded_only_where_they_may_be_others_and_asked_anew_with_another_query() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    home.write("in.jsonl", &rows("a b c d"));
    let recorded = || {
        let folder = names(&home.path(".out.jsonl.rowmill"));
        folder.into_iter().filter(|name| name.starts_with("rows-")).count()
    };
    let run = |sql: &str, args: &[&str]| {
        home.run().on(&simulator).args(&WITH_IDS).args(&["--sql", sql]).args(args).ends_with(0)
    };
    run("SELECT * FROM input WHERE id <> 'b'", &[]);
    assert_eq!(recorded(), 0);
    home.append("in.jsonl", &row("e"));
    run("SELECT * FROM input WHERE id <> 'b'", &["--resume"]).resumed(3, 0, 0);
    assert_eq!((ids_in_order(&home).as_str(), simulator.stats().requests), ("a c d e", 4));

    run("SELECT * FROM input LIMIT 2", &["--overwrite"]);
    assert_eq!(recorded(), 1);
    home.write("in.jsonl", &rows("x y a b"));
    run("SELECT * FROM input LIMIT 2", &["--resume"]).resumed(2, 0, 0);
    assert_eq!(ids_in_order(&home), "a b");
    // Of the three rows that are selected now, one is done.
    run("SELECT * FROM input LIMIT 3", &["--resume"]).resumed(1, 0, 0);
    assert_eq!((ids_in_order(&home).as_str(), recorded()), ("x y a b", 1));
    run("SELECT * FROM input", &["--resume"]);
    assert_eq!(recorded(), 0, "nobody needs them any more");
}

#[test]
fn answers_that_only_the_ledger_has_are_kept_by_a_resume_that_does_not_come_by_them() {
    let partial: [&[&str]; 5] = [
        &["--limit", "2"],
        &["--offset", "18"],
        &["--sample", "1"],
        &["--where", "p = 'row 2'"],
        &["--max-errors", "0"],
    ];
    for flags in partial {
        // The first row hangs, so that the output is empty and only the ledger has the others.
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let prompts =
            (1..=20).map(|n| if n == 1 { "row 1 [[hangx1]]".to_owned() } else { format!("row {n}") });
        let home = Home::with_prompts(prompts);
        let running = home.run().on(&simulator).args(&["--parallel", "4"]).start();
        let recorded = || home.read(".out.jsonl.rowmill/ledger-1.jsonl").matches("row_ended").count();
        simulator.wait_until_blocking(|stats| stats.answers == 19);
        wait_for(|| (recorded() == 19).then_some(()));
        running.kill();
        home.run().on(&simulator).args(&["--resume"]).args(flags).end();
        home.run().on(&simulator).args(&["--resume"]).ends_with(0);
        assert_all_ok(&home.envelopes(), 20);
        assert!(simulator.stats().answers <= 21, "{flags:?}: {} answers", simulator.stats().answers);
    }
}

#[test]
fn rows_that_were_recorded_are_taken_although_the_input_has_changed_since() {
    let queries: [&[&str]; 3] = [
        &["--sql", "SELECT * FROM input ORDER BY random()"],
        &["--sql", "SELECT id, p, count(*) AS n FROM input GROUP BY id, p"],
        &["--where", "abs(random() % 2) < 2"],
    ];
    for query in queries {
        let home = Home::new();
        home.write("in.jsonl", &rows("a b c d e f"));
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(2));
        let args = [query, &["--parallel", "1"]].concat();
        let running = home.run().on(&simulator).args(&args).start();
        simulator.wait_until_blocking(|stats| stats.requests == 3);
        running.kill();
        simulator.release();
        home.write("in.jsonl", &rows("x y z"));
        let resume = || home.run().on(&simulator).args(&args).args(&["--resume"]);
        resume().ends_with(0).resumed(2, 0, 1);
        let expected = "a b c d e f".split(' ').map(|id| format!("answer to: prompt {id}"));
        assert_eq!(answered_rows(&home), expected.collect::<BTreeSet<_>>(), "{query:?}");
        // Without the recorded rows it is unknown which rows these numbers were.
        let recorded =
            names(&home.path(".out.jsonl.rowmill")).into_iter().find(|name| name.starts_with("rows-"));
        home.remove(&format!(".out.jsonl.rowmill/{}", recorded.unwrap()));
        resume().ends_with(1).says(&["error[RM1306]", "input"]);
    }
}

#[test]
fn a_resume_keeps_input_rows_in_envelopes_if_the_run_began_so() {
    let home = Home::with_rows(6);
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(2));
    let running = home.run().on(&simulator).args(&["--include-input", "--parallel", "1"]).start();
    simulator.wait_until_blocking(|stats| stats.requests == 3);
    running.kill();
    simulator.release();
    home.run().on(&simulator).args(&["--resume"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 6);
    for (number, line) in (1..).zip(home.envelopes()) {
        assert_eq!(line["input"]["p"], format!("row {number}"), "{line}");
    }
    home.command("export", &["out.jsonl", "-o", "table.csv", "--flatten"]).ends_with(0);
}

#[test]
fn rows_that_another_query_leaves_out_are_not_called_gone_from_the_input() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    home.write("in.jsonl", &rows("a b c"));
    let run = |sql: &str, args: &[&str]| {
        home.run().on(&simulator).args(&WITH_IDS).args(&["--sql", sql]).args(args).ends_with(0)
    };
    run("SELECT * FROM input", &[]);
    let ended = run("SELECT * FROM input WHERE id <> 'b'", &["--resume"]);
    ended.says(&["gone:   1 row is no longer in the result of `--sql` and kept at the end of the output"]);
}
