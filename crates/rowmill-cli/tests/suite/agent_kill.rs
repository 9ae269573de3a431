//! Rows with many turns that are killed repeatedly: no finished turn is paid twice, and no tool that
//! must not run twice does so unless the row allows it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::agent_support::{
    Answered, Kept, Mark, Tools, Used, counted, labels, last_call, row_of, run, runs_once, spent,
    total_usage, turns, wait_for_calls,
};
use crate::faults_support::{Home, assert_all_ok, attempts};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::{Value, json};

use crate::faults_support;

const ROWS: u64 = 500;
const KILLS: u64 = 50;
const PARALLEL: usize = 32;

/// Pseudo-random numbers that are the same in every run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// The state after the processes that were killed so far.
#[derive(Default)]
struct Account {
    kept: Kept,
    answered: BTreeMap<Mark, u64>,
    /// Answers that no ledger has: they were on their way when the process died.
    lost: Vec<Mark>,
}

impl Account {
    /// Records a process that has just died; returns the turns that were answered during it.
    fn died(&mut self, home: &Home, answered: BTreeMap<Mark, u64>) -> BTreeSet<Mark> {
        let mut now = BTreeSet::new();
        for (mark, count) in &answered {
            let more = count - self.answered.get(mark).copied().unwrap_or_default();
            assert!(more <= 1, "{mark:?} was asked {more} times in one life");
            if more == 1 {
                assert!(!self.kept.has(mark), "{mark:?} was asked again though the ledger has its answer");
                now.insert(*mark);
            }
        }
        self.answered = answered;
        self.kept.read(home);
        let lost: Vec<Mark> = now.iter().filter(|mark| !self.kept.has(mark)).copied().collect();
        // A row waits for one answer at a time, or for two.
        let rows: BTreeSet<u64> = lost.iter().map(|mark| mark.0).collect();
        assert!(rows.len() <= PARALLEL && lost.len() <= 2 * rows.len(), "{lost:?}");
        self.lost.extend(lost);
        now
    }

    /// The number of turns that are still to be answered.
    fn left(&self) -> u64 {
        (1..=ROWS).flat_map(turns).filter(|mark| !self.kept.has(mark)).count() as u64
    }

    /// The usage of the answers that were lost.
    fn lost_use(&self, telemetry: &[Value]) -> Used {
        let mut sum = Used::default();
        for mark in &self.lost {
            let last = || {
                let line = telemetry.iter().rfind(|line| line["row_number"] == mark.0 && line["ok"] == true);
                last_call(line.unwrap())
            };
            sum.add(self.kept.turns.get(mark).copied().unwrap_or_else(last));
        }
        sum
    }
}

fn command(home: &Home, simulator: &Simulator) -> faults_support::Run {
    let parallel = PARALLEL.to_string();
    run(home).on(simulator).args(&["--checkpoint-turns", "--resume", "--keep-temp", "--parallel", &parallel])
}

/// Kills the run [`KILLS`] times, then lets it end as far as it can.
fn kill_over_and_over(home: &Home, simulator: &Simulator, answered: &Answered) -> Account {
    let mut dice = Dice(5);
    let mut account = Account::default();
    for kill in 0..KILLS {
        let before = simulator.stats();
        // Sometimes it dies before its first answer; otherwise somewhere in its share of the turns.
        let share = 2 * account.left() / (KILLS - kill + 4);
        let answers = if dice.below(8) == 0 { 0 } else { 1 + dice.below(share) };
        let running = command(home, simulator).start();
        simulator.wait_until_blocking(|now| {
            now.requests > before.requests && now.answers >= before.answers + answers
        });
        let ended = running.kill();
        assert_eq!(ended.code, None, "it must have died, not ended: {}", ended.err);
        simulator.wait_until_blocking(|now| now.in_flight == 0);
        account.died(home, answered.counts());
    }
    let last = command(home, simulator).end();
    account.died(home, answered.counts());
    let undecided = account.kept.undecided().len();
    assert_eq!(last.code, Some(if undecided == 0 { 0 } else { 3 }), "{}", last.err);
    account
}

/// Checks the results once nothing more can be done automatically; returns the undecided rows.
fn check_undecided(home: &Home, account: &Account) -> BTreeSet<u64> {
    let undecided = account.kept.undecided();
    let envelopes = home.envelopes();
    let numbers: Vec<u64> = envelopes.iter().map(|line| line["row_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=ROWS).collect::<Vec<_>>(), "one envelope per row");
    for envelope in &envelopes {
        let row = envelope["row_number"].as_u64().unwrap();
        match undecided.contains(&row) {
            false => assert_eq!(envelope["ok"], true, "{envelope}"),
            true => {
                assert_eq!(envelope["error"]["type"], "OutcomeUnknown", "{envelope}");
                let message = envelope["error"]["message"].as_str().unwrap();
                assert!(message.contains("`once__count`"), "{message}");
            }
        }
    }
    let counts = counted(home);
    for row in 1..=ROWS {
        for label in labels(row) {
            let count = counts.get(&label).copied().unwrap_or_default();
            let allowed = match (runs_once(&label), undecided.contains(&row)) {
                (true, false) => 1..=1,
                (true, true) => 0..=1,
                (false, false) => 1..=1 + KILLS,
                (false, true) => 0..=1 + KILLS,
            };
            assert!(allowed.contains(&count), "`{label}` ran {count} times");
        }
    }
    undecided
}

#[test]
fn finished_turns_are_never_paid_twice_and_tools_run_twice_only_where_they_may() {
    let answered = Answered::default();
    let script = answered.script().latency(Duration::from_millis(1)).jitter(Duration::from_millis(9));
    let simulator = Simulator::start_blocking(script);
    let (_tools, home) = Tools::start(ROWS);
    let mut account = kill_over_and_over(&home, &simulator, &answered);
    let undecided = check_undecided(&home, &account);

    // A further resume leaves them alone and reports this.
    let (before, counts) = (simulator.stats().requests, counted(&home));
    let passed = command(&home, &simulator).end();
    assert_eq!((simulator.stats().requests, counted(&home)), (before, counts.clone()));
    assert_eq!(spent(&home), total_usage(&home).tokens(), "each call is counted once over all lives");
    assert_eq!(passed.code, Some(if undecided.is_empty() { 0 } else { 3 }), "{}", passed.err);
    if !undecided.is_empty() {
        let left = match undecided.len() {
            1 => "1 row left as it is".to_owned(),
            rows => format!("{rows} rows left as they are"),
        };
        passed.says(&[&left]);
    }

    // If requested, they are worked on from their start; all others are not.
    command(&home, &simulator).args(&["--retry-unknown"]).ends_with(0);
    let envelopes = home.envelopes();
    assert_all_ok(&envelopes, ROWS as usize);
    for (label, count) in counted(&home) {
        let more = count - counts.get(&label).copied().unwrap_or_default();
        assert_eq!(more, u64::from(undecided.contains(&row_of(&label))), "`{label}`");
    }
    for (mark, count) in answered.counts() {
        let more = count - account.answered.get(&mark).copied().unwrap_or_default();
        assert_eq!(more, u64::from(undecided.contains(&mark.0)), "{mark:?}");
    }

    // Everything that was paid for is reported once, including the time before a kill.
    account.kept.read(&home);
    let telemetry = home.json_lines("telemetry.jsonl");
    assert_eq!(telemetry.len(), ROWS as usize + undecided.len());
    for line in telemetry.iter().filter(|line| line["ok"] == true) {
        let row = line["row_number"].as_u64().unwrap();
        assert_eq!(attempts(line), turns(row).len(), "{line}");
        assert_eq!(line["tool_calls"].as_array().unwrap().len(), labels(row).len(), "{line}");
    }
    let mut paid = total_usage(&home);
    paid.add(account.lost_use(&telemetry));
    let stats = simulator.stats();
    assert_eq!(paid, Used { input: stats.input_tokens, output: stats.output_tokens });
    assert!(account.lost.len() as u64 <= KILLS * 2 * PARALLEL as u64);
}

/// The trace of the first row contains a call without a result.
fn assert_cut_call_is_traced(home: &Home) {
    let spans = &home.json_lines("traces/spans.jsonl")[0]["resourceSpans"][0]["scopeSpans"][0]["spans"];
    let spans = spans.as_array().unwrap();
    let tool = spans.iter().find(|span| span["name"] == "execute_tool once__hang").unwrap();
    let attributes = tool["attributes"].to_string();
    assert!(attributes.contains("outcome_unknown") && attributes.contains("label"), "{attributes}");
    let agent = spans.iter().find(|span| span["spanId"] == tool["parentSpanId"]).unwrap();
    assert_eq!(agent["name"], "invoke_agent solo");
}

#[test]
fn a_call_that_waited_for_its_turn_at_the_kill_never_left_and_is_made() {
    let script = SimulatorScript::new().answer_calls(|seen| match seen.turn {
        1 => SimulatedAnswer::Calls {
            text: String::new(),
            calls: vec![("once__hang".into(), json!({"label": seen.prompt}))],
        },
        _ => SimulatedAnswer::Text(format!("it was {}", seen.last)),
    });
    let simulator = Simulator::start_blocking(script);
    let (tools, home) = Tools::start(2);
    let config = home.read("rowmill.toml");
    home.write("rowmill.toml", &config.replace("[mcp.servers.once]", "[mcp.servers.once]\nmax_parallel = 1"));
    let args = ["--agent", "solo", "--checkpoint-turns", "--resume"];
    let running = run(&home).on(&simulator).args(&args).start();
    // One of them is called, and the other waits: its turn is in the ledger, and nothing after it.
    wait_for_calls(&home, 1);
    simulator.wait_until_blocking(|now| now.answers == 2);
    wait_for_turns(&home, 2);
    assert_eq!(running.kill().code, None);
    assert_eq!(counted(&home).values().sum::<u64>(), 1, "the other one never left");

    let running = run(&home).on(&simulator).args(&args).start();
    wait_for_calls(&home, 2);
    tools.release();
    assert_eq!(running.end().code, Some(3));
    let envelopes = home.envelopes();
    let mut outcomes: Vec<&str> =
        envelopes.iter().map(|line| line["error"]["type"].as_str().unwrap_or("ok")).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["OutcomeUnknown", "ok"]);
    assert!(counted(&home).values().all(|count| *count == 1), "no call was made twice: {:?}", counted(&home));
}

/// Waits until the ledger has this many answers of models.
fn wait_for_turns(home: &Home, turns: usize) {
    let path = home.path(".out.jsonl.rowmill/ledger-1.jsonl");
    while std::fs::read_to_string(&path).unwrap_or_default().matches("{\"answered\":").count() < turns {
        std::thread::yield_now();
    }
}

#[test]
fn a_tool_that_ran_at_the_kill_is_called_again_only_if_it_may_run_twice() {
    let script = SimulatorScript::new().answer_calls(|seen| match seen.turn {
        1 => {
            let server = seen.prompt.split('#').nth(1).unwrap();
            let calls = vec![(format!("{server}__hang"), json!({"label": server}))];
            SimulatedAnswer::Calls { text: String::new(), calls }
        }
        _ => SimulatedAnswer::Text(format!("it was {}", seen.last)),
    });
    let simulator = Simulator::start_blocking(script);
    let (tools, home) = Tools::start(0);
    home.write_prompts(["Use #once#.", "Use #twice#."]);
    let args =
        ["--agent", "solo", "--checkpoint-turns", "--resume", "--export-traces", "traces", "--final-summary"];

    let running = run(&home).on(&simulator).args(&args).start();
    wait_for_calls(&home, 2);
    assert_eq!(running.kill().code, None);
    let running = run(&home).on(&simulator).args(&args).start();
    let counts = wait_for_calls(&home, 3);
    assert_eq!(counts, BTreeMap::from([("once".to_owned(), 1), ("twice".to_owned(), 2)]));
    tools.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    ended.resumed(0, 0, 1).says(&[
        "1 of them continues after its last finished call",
        "1 row is not sent: the run was interrupted during a call of a tool that must not run twice",
        "`--retry-unknown`",
    ]);
    let calls = &ended.summary()["calls"];
    assert_eq!(calls["made"], 1, "the turns before the kill are not of this command");
    let envelopes = home.envelopes();
    assert_eq!(envelopes[0]["error"]["type"], "OutcomeUnknown");
    let message = envelopes[0]["error"]["message"].as_str().unwrap();
    for part in [
        "`solo` called the tool `once__hang` with `{\"label\":\"once\"}`",
        "model call 1",
        "no answer arrived",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_cut_call_is_traced(&home);
    assert_eq!(envelopes[1]["result"], "it was released");
    assert_eq!(simulator.stats().answers, 3, "the turns before the kill were not asked for again");

    let left = run(&home).on(&simulator).args(&args).ends_with(3);
    left.says(&["0 rows: 0 ok, 2 skipped (done before, or left as `OutcomeUnknown`)"]);

    let running = run(&home).on(&simulator).args(&args).args(&["--retry-unknown"]).start();
    wait_for_calls(&home, 4);
    tools.release();
    assert_eq!(running.end().code, Some(0));
    assert_all_ok(&home.envelopes(), 2);
    assert_eq!(counted(&home)["once"], 2);
    assert_eq!(simulator.stats().answers, 5, "the row began anew, and only that one");
}
