//! The most important guarantee: a run that is killed at any moment, repeatedly, ends with one envelope
//! per row, and requests nothing twice except what was in flight when it died.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::faults_support::{Ended, Home, assert_all_ok};
use rowmill_testkit::{FaultTrigger, SimulatedAnswer, SimulatedFault, Simulator, SimulatorScript};

const ROWS: usize = 5_000;
const KILLS: u64 = 55;
const PARALLEL: u64 = 32;

/// Pseudo-random numbers that are the same in every run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// The state after the kills so far.
#[derive(Default)]
struct Account {
    /// How often each row was in flight when the process died, according to the ledger.
    in_flight: BTreeMap<u64, u64>,
    /// The number of rows that each resume reported to send again.
    sent_again: Vec<u64>,
    ledger_read: usize,
}

impl Account {
    /// Reads what the ledger has of the process that just died.
    fn died(&mut self, home: &Home) {
        let path = home.path(".out.jsonl.rowmill/ledger-1.jsonl");
        let ledger = fs::read(path).unwrap_or_default();
        let mut flying = BTreeSet::new();
        for line in ledger[self.ledger_read..].split_inclusive(|byte| *byte == b'\n') {
            if line.last() != Some(&b'\n') {
                break; // Torn by the kill; the resume truncates it.
            }
            self.ledger_read += line.len();
            let line: serde_json::Value = serde_json::from_slice(line).unwrap();
            if let Some(rows) = line["rows"].as_array() {
                flying.extend(rows.iter().map(|row| row.as_u64().unwrap()));
            } else {
                flying.remove(&line["envelope"]["row_number"].as_u64().unwrap());
            }
        }
        assert!(flying.len() as u64 <= PARALLEL, "{flying:?}");
        for row in flying {
            *self.in_flight.entry(row).or_default() += 1;
        }
    }

    /// Records the message of a resume.
    fn resumed(&mut self, ended: &Ended) {
        let Some((before, _)) = ended.err.split_once(" with unknown outcome") else {
            return; // It died before it could say anything.
        };
        self.sent_again.push(before.rsplit(' ').nth(1).unwrap().parse().unwrap());
    }

    fn total(&self) -> u64 {
        self.in_flight.values().sum()
    }
}

/// Counts how often each prompt was answered successfully.
#[derive(Clone, Default)]
struct Answered(Arc<Mutex<BTreeMap<String, u64>>>);

impl Answered {
    fn script(&self, seed: u64) -> SimulatorScript {
        let counts = self.0.clone();
        SimulatorScript::new()
            .seed(seed)
            .latency(Duration::from_millis(1))
            .jitter(Duration::from_millis(9))
            .forget_prompts()
            .answer_prompts(move |prompt, _| {
                *counts.lock().unwrap().entry(prompt.to_owned()).or_default() += 1;
                SimulatedAnswer::Text(format!("answer to {prompt}"))
            })
    }

    fn of_row(&self, row: u64) -> u64 {
        self.0.lock().unwrap().get(&format!("row {row}")).copied().unwrap_or_default()
    }
}

/// How many times a run with shared answers is killed; `cargo xtask soak resume` sets a higher number.
fn kills_of_shared() -> u64 {
    std::env::var_os("ROWMILL_SOAK_KILLS").map_or(12, |kills| kills.to_str().unwrap().parse().unwrap())
}

/// Three rows for every prompt. The run is killed repeatedly; every prompt is paid for once, and again
/// only if a row that sent it was in flight.
fn killed_with_shared_answers(reuse: &[&str], seed: u64) {
    let kills = kills_of_shared();
    let questions = 40 * kills;
    let answered = Answered::default();
    let simulator = Simulator::start_blocking(answered.script(seed));
    let home = Home::with_prompts((0..3 * questions).map(|row| format!("row {}", row % questions)));
    let args = [reuse, &["--parallel", "4", "--resume"]].concat();
    let (mut dice, mut account) = (Dice(seed), Account::default());
    for kill in 0..kills {
        let before = simulator.stats();
        let left = questions.saturating_sub(before.answers);
        let answers = 1 + dice.below(2 * left / (kills - kill + 2));
        let running = home.run().on(&simulator).args(&args).start();
        simulator.wait_until_blocking(|now| {
            now.requests > before.requests && now.answers >= before.answers + answers
        });
        let ended = running.kill();
        assert_eq!(ended.code, None, "it must have died, not ended: {}", ended.err);
        simulator.wait_until_blocking(|now| now.in_flight == 0);
        account.died(&home);
    }
    home.run().on(&simulator).args(&args).ends_with(0);
    let envelopes = home.envelopes();
    assert_all_ok(&envelopes, 3 * questions as usize);
    for (row, envelope) in (0..).zip(&envelopes) {
        assert_eq!(envelope["result"], format!("answer to row {}", row % questions));
    }
    let excess = simulator.stats().answers - questions;
    assert!(excess <= account.total(), "{excess} paid twice, {} were in flight", account.total());
    println!("{reuse:?}: {kills} kills, {questions} questions, {excess} paid twice of {}", account.total());
}

#[test]
fn no_kill_makes_a_run_with_shared_answers_pay_twice_for_more_than_was_in_flight() {
    killed_with_shared_answers(&["--dedupe"], 21);
    killed_with_shared_answers(&["--cache", "answers"], 22);
}

/// Kills a run of [`ROWS`] rows [`KILLS`] times, then lets it end, and checks everything.
fn killed_and_resumed(script: SimulatorScript, answered: &Answered, seed: u64) {
    let simulator = Simulator::start_blocking(script);
    let home = Home::with_rows(ROWS);
    let parallel = PARALLEL.to_string();
    let args =
        ["--parallel", &parallel, "--retries", "9", "--resume", "--telemetry-output", "telemetry.jsonl"];
    let mut dice = Dice(seed);
    let mut account = Account::default();
    for kill in 0..KILLS {
        let before = simulator.stats();
        let left = (ROWS as u64).saturating_sub(before.answers);
        // Sometimes it dies before its first answer; otherwise somewhere in its share of the rows.
        let answers = if dice.below(8) == 0 { 0 } else { 1 + dice.below(2 * left / (KILLS - kill + 2)) };
        let running = home.run().on(&simulator).args(&args).start();
        simulator.wait_until_blocking(|now| {
            now.requests > before.requests && now.answers >= before.answers + answers
        });
        let ended = running.kill();
        assert_eq!(ended.code, None, "it must have died, not ended: {}", ended.err);
        account.resumed(&ended);
        simulator.wait_until_blocking(|now| now.in_flight == 0);
        account.died(&home);
    }
    let ended = home.run().on(&simulator).args(&args).ends_with(0);
    account.resumed(&ended);

    let envelopes = home.envelopes();
    assert_all_ok(&envelopes, ROWS);
    for (number, envelope) in (1..).zip(&envelopes) {
        assert_eq!(envelope["result"], format!("answer to row {number}"));
        let deaths = account.in_flight.get(&number).copied().unwrap_or_default();
        let answers = answered.of_row(number);
        assert!((1..=1 + deaths).contains(&answers), "row {number}: {answers} answers, {deaths} deaths");
    }
    let excess = simulator.stats().answers - ROWS as u64;
    assert!(excess <= account.total(), "{excess} > {}", account.total());
    assert!(excess <= account.sent_again.iter().sum(), "{excess} > {:?}", account.sent_again);
    let telemetry = home.json_lines("telemetry.jsonl");
    let message: BTreeSet<u64> = telemetry.iter().map(|line| line["row_number"].as_u64().unwrap()).collect();
    assert_eq!((message.len(), telemetry.len()), (ROWS, ROWS), "one line per row that ended");
    assert_eq!(home.names(), ["in.jsonl", "out.jsonl", "telemetry.jsonl"]);
}

#[test]
fn a_run_that_is_killed_over_and_over_ends_with_one_ok_envelope_per_row_and_asks_nothing_twice() {
    let answered = Answered::default();
    killed_and_resumed(answered.script(1), &answered, 11);
}

#[test]
fn the_same_holds_when_the_provider_fails_now_and_then() {
    let answered = Answered::default();
    let script = answered
        .script(2)
        .fault(FaultTrigger::Rate(0.02), SimulatedFault::from_status(500))
        .fault(FaultTrigger::Rate(0.02), SimulatedFault::Reset);
    killed_and_resumed(script, &answered, 12);
}
