//! Provider outages: the run pauses and probes, or uses another model, and no row fails because of it.

use crate::faults_support;

use crate::faults_support::{Home, Running, assert_all_ok};
use rowmill_testkit::{FaultTrigger, OutageKind, SimulatedFault, Simulator, SimulatorScript};

const WAITING: &str = "waiting for the provider to come back: ";

/// A run of which 30 rows are answered and 4 wait for their answers.
fn held(home: &Home, simulator: &Simulator, args: &[&str]) -> Running {
    let running = home.run().on(simulator).args(&["--parallel", "4"]).args(args).start();
    simulator.wait_until_blocking(|stats| stats.answers == 30 && stats.in_flight == 4);
    running
}

fn ok_rows(home: &Home) -> u64 {
    home.envelopes().iter().filter(|line| line["ok"] == true).count() as u64
}

#[test]
fn an_outage_in_mid_run_is_waited_out_no_row_fails_and_the_reason_is_reported() {
    for kind in [OutageKind::Status(503), OutageKind::Status(529), OutageKind::Reset, OutageKind::Refuse] {
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(30));
        let home = Home::with_rows(60);
        let mut running = held(&home, &simulator, &["--telemetry-output", "telemetry.jsonl"]);
        simulator.begin_outage(kind);
        simulator.release();
        running.wait_for_talk(WAITING);
        simulator.end_outage();
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{kind:?}: {}", ended.err);
        ended.says(&["60 rows: 60 ok"]);
        assert_all_ok(&home.envelopes(), 60);
        assert_eq!(home.json_lines("telemetry.jsonl").len(), 60, "{kind:?}");
        assert_eq!(simulator.stats().repeated_answers, 0, "{kind:?}");
    }
}

#[test]
fn an_outage_that_lasts_too_long_stops_the_run_and_a_resume_finishes_it() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(30));
    let home = Home::with_rows(60);
    let running = held(&home, &simulator, &["--max-outage", "1s", "--final-summary"]);
    simulator.begin_outage(OutageKind::Status(503));
    simulator.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    ended.says(&[WAITING, "error[RM2005]", "help: run again with `--resume` when the provider is back"]);
    let summary = ended.summary();
    assert_eq!((&summary["status"], &summary["failed_rows"]), (&"stopped".into(), &0.into()));
    let done = simulator.stats().answers;
    assert!((30..=34).contains(&done), "what was let in is answered: {done}");
    assert_eq!(ok_rows(&home), done);

    simulator.end_outage();
    home.run().on(&simulator).args(&["--resume"]).ends_with(0).resumed(done, 0, 0);
    assert_all_ok(&home.envelopes(), 60);
    assert_eq!(simulator.stats().repeated_answers, 0);
}

#[test]
fn without_patience_for_outages_rows_fail_by_their_tries() {
    let script = SimulatorScript::new().fault(FaultTrigger::Always, SimulatedFault::from_status(503));
    let simulator = Simulator::start_blocking(script);
    let home = Home::with_rows(12);
    home.run().on(&simulator).args(&["--max-outage", "0", "--retries", "1"]).ends_with(3);
    let envelopes = home.envelopes();
    assert_eq!(envelopes.len(), 12);
    assert!(envelopes.iter().all(|line| line["error"]["attempts"] == 2), "{envelopes:?}");
    assert_eq!(simulator.stats().requests, 24);
}

#[test]
fn ctrl_c_ends_a_wait_for_a_provider() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(30));
    let home = Home::with_rows(60);
    let mut running = held(&home, &simulator, &[]);
    simulator.begin_outage(OutageKind::Status(503));
    simulator.release();
    running.wait_for_talk(WAITING);
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.end().code, Some(130));
    assert_eq!(ok_rows(&home), simulator.stats().answers);
    simulator.end_outage();
    home.run().on(&simulator).args(&["--resume"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 60);
    assert_eq!(simulator.stats().repeated_answers, 0);
}

/// Two providers, and a run that uses the second if the first is unavailable.
struct Two {
    home: Home,
    first: Simulator,
    second: Simulator,
}

impl Two {
    fn new(first: SimulatorScript, rows: usize) -> Self {
        let home = Home::with_rows(rows);
        let (first, second) =
            (Simulator::start_blocking(first), Simulator::start_blocking(SimulatorScript::new()));
        Self { home, first, second }
    }

    fn run(&self, args: &[&str]) -> faults_support::Run {
        self.home
            .run()
            .model(&self.first, "generic.a")
            .env("ANTHROPIC_BASE_URL", &self.second.url())
            .args(&["--fallback-model", "anthropic.b", "--telemetry-output", "telemetry.jsonl"])
            .args(args)
    }

    /// Rows by the model that answered them.
    fn answered_by(&self, model: &str) -> usize {
        let telemetry = self.home.json_lines("telemetry.jsonl");
        let answer = |line: &serde_json::Value| {
            let calls = line["usage"]["provider_attempts"].as_array().cloned().unwrap_or_default();
            calls.last().cloned().unwrap_or_default()["model"].clone()
        };
        telemetry.iter().filter(|line| answer(line) == model).count()
    }
}

#[test]
fn another_model_is_asked_once_the_tries_are_used_up() {
    let script = SimulatorScript::new()
        .fault(FaultTrigger::PromptContains("row 2".into(), 99), SimulatedFault::from_status(500));
    let two = Two::new(script, 5);
    two.run(&["--retries", "2"]).ends_with(0);
    assert_all_ok(&two.home.envelopes(), 5);
    assert_eq!((two.answered_by("a"), two.answered_by("b")), (4, 1));
    assert_eq!((two.first.stats().requests, two.second.stats().requests), (4 + 3, 1));
}

#[test]
fn another_model_is_asked_at_once_while_the_provider_of_the_first_is_down() {
    for kind in [SimulatedFault::from_status(503), SimulatedFault::Reset] {
        let two = Two::new(SimulatorScript::new().fault(FaultTrigger::Always, kind.clone()), 50);
        let ended = two.run(&["--parallel", "4"]).ends_with(0);
        assert!(!ended.err.contains(WAITING), "nothing was waited for: {}", ended.err);
        assert_all_ok(&two.home.envelopes(), 50);
        assert_eq!(two.answered_by("b"), 50, "{kind:?}");
        // It takes a few calls to detect the outage; a probe now and then checks whether it is over.
        let asked = two.first.stats().requests;
        assert!((5..=12).contains(&asked), "{kind:?}: {asked} calls");
    }
}

#[test]
fn another_model_is_asked_when_the_answer_is_refused_for_good_only_if_that_can_help() {
    let script = SimulatorScript::new()
        .fault(FaultTrigger::PromptContains("row 2".into(), 99), SimulatedFault::from_status(400));
    let two = Two::new(script, 3);
    two.run(&[]).ends_with(3);
    assert_eq!(two.home.envelopes()[1]["error"]["type"], "BadRequest");
    assert_eq!(two.second.stats().requests, 0);
}

#[test]
fn a_row_fails_when_no_model_answers_it() {
    let two = Two::new(SimulatorScript::new(), 0);
    two.home.write_prompts(["a", "b [[500]]", "c"]);
    two.run(&["--retries", "1"]).ends_with(3);
    let envelopes = two.home.envelopes();
    let ok: Vec<bool> = envelopes.iter().map(|line| line["ok"] == true).collect();
    assert_eq!(ok, [true, false, true]);
    assert_eq!(
        (&envelopes[1]["error"]["type"], &envelopes[1]["error"]["attempts"]),
        (&"ServerError".into(), &4.into())
    );
}

#[test]
fn a_fallback_that_cannot_be_used_is_refused_before_anything_is_sent() {
    let two = Two::new(SimulatorScript::new(), 3);
    let run = |model: &str| two.home.run().model(&two.first, "generic.a").args(&["--fallback-model", model]);
    run("nowhere.m").ends_with(1).says(&["error[RM1201]: unknown provider `nowhere`"]);
    run("groq.m").ends_with(1).says(&["error[RM1202]: `groq` needs a key"]);
    assert_eq!(two.first.stats().requests, 0);
    assert!(!two.home.exists("out.jsonl"));
}

#[test]
fn too_few_open_files_bound_the_calls_at_once_and_are_no_outage_of_the_provider() {
    for parallel in ["500", "auto"] {
        let latency = std::time::Duration::from_millis(5);
        let simulator = Simulator::start_blocking(SimulatorScript::new().latency(latency));
        let home = Home::with_rows(300);
        let args = ["--parallel", parallel, "--retries", "0", "--progress"];
        // Hard and soft limit are equal, so that it cannot be raised.
        let ended = home.run().on(&simulator).args(&args).under("ulimit -n 64").ends_with(0);
        ended.says(&[
            "warning: this machine allows 64 open files, so at most ",
            "raise the limit with `ulimit -n ",
        ]);
        assert!(!ended.err.contains("is down"), "{}", ended.err);
        assert_all_ok(&home.envelopes(), 300);
        let most = simulator.stats().max_in_flight;
        assert!((8..64).contains(&most), "{most} calls at once");
    }
}

#[test]
fn a_soft_limit_on_open_files_is_raised_and_nothing_is_reported_of_it() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(300);
    let ended = home.run().on(&simulator).args(&["--parallel", "200"]).under("ulimit -S -n 64").ends_with(0);
    assert!(!ended.err.contains("open files"), "{}", ended.err);
    assert_all_ok(&home.envelopes(), 300);
}

#[test]
fn with_too_few_open_files_a_command_says_so_in_one_message_and_leaves_nothing_behind() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(5);
    let before = home.names();
    // With three, not even the libraries of the program can be loaded.
    for files in (4..=14).chain([18, 22, 26, 30, 34]) {
        let head = home.command("head", &["in.jsonl"]);
        for run in [home.run().on(&simulator), home.plan().on(&simulator), head] {
            let ended = run.under(&format!("ulimit -n {files}")).ends_with(1);
            let message =
                format!("error[RM2007]: this machine allows {files} open files, but rowmill needs ");
            ended.says(&[&message, "help: raise the limit with `ulimit -n 1024`"]);
            assert_eq!(ended.err.lines().count(), 2, "{}", ended.err);
            assert_eq!(home.names(), before);
        }
    }
    assert_eq!(simulator.stats().requests, 0);
    home.run().on(&simulator).under("ulimit -n 40").ends_with(0);
    home.run().on(&simulator).args(&["--overwrite"]).under("ulimit -S -n 6").ends_with(0);
}

#[test]
fn a_provider_that_refuses_every_call_is_not_waited_for_if_that_is_not_wanted() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[429]]", "b [[429]]"]);
    let ended = home.run().on(&simulator).args(&["--retries", "0", "--max-outage", "0"]).ends_with(3);
    ended.says(&["failed: 2 RateLimited"]);
}

#[test]
fn a_provider_that_asks_for_a_long_wait_is_not_waited_for_if_that_is_not_wanted() {
    for (status, kind) in [(429, "RateLimited"), (503, "ServerError")] {
        let fault = SimulatedFault::from_status(status).with_header("retry-after", "86400");
        let simulator = Simulator::start_blocking(SimulatorScript::new().fault(FaultTrigger::Always, fault));
        let home = Home::with_rows(2);
        let args = ["--retries", "2", "--max-outage", "0"];
        let ended = home.run().on(&simulator).args(&args).ends_with(3);
        ended.says(&[&format!("failed: 2 {kind}")]);
        assert_eq!(simulator.stats().requests, 6, "{kind}");
    }
}
