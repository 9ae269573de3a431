//! Limits of a provider, seen from outside: calls wait for them, no row fails because of them, and an
//! exhausted quota pauses the run or stops it.

use crate::faults_support::{Home, PROTOCOLS, Running, assert_all_ok, attempts};
use rowmill_testkit::{
    FaultTrigger, RandomDistribution, SimulatedFault, SimulatedLimits, Simulator, SimulatorScript,
};
use serde_json::Value;

#[test]
fn a_refusal_because_of_a_limit_is_waited_out_and_costs_its_row_no_try() {
    for model in PROTOCOLS {
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let home = Home::with_prompts([
            "a [[429x3,retry-after-ms=20]]",
            "b",
            "c [[429x1,retry-after-ms=20]]",
            "d [[429x1]]",
        ]);
        let ended = home
            .run()
            .model(&simulator, model)
            .args(&["--retries", "0", "--telemetry-output", "telemetry.jsonl", "--final-summary"])
            .ends_with(0);
        assert_all_ok(&home.envelopes(), 4);
        let summary = ended.summary();
        assert_eq!(summary["calls"]["failed"], serde_json::json!({"RateLimited": 5}), "{model}");
        let repeated = "retries: 5 of 9 calls failed and were retried or given up: 5 RateLimited\n";
        assert!(ended.err.contains(repeated), "{model}: {}", ended.err);
        let mut lines = home.json_lines("telemetry.jsonl");
        lines.sort_by_key(|line| line["row_number"].as_u64());
        assert_eq!(lines.iter().map(attempts).collect::<Vec<_>>(), [4, 1, 2, 2], "{model}");
    }
}

#[test]
fn the_wait_that_a_refusal_asks_for_is_kept_by_all_rows() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[429x1,retry-after=1]]", "b", "c"]);
    let args = ["--parallel", "1", "--retries", "0", "--final-summary"];
    let ended = home.run().on(&simulator).args(&args).ends_with(0);
    assert_all_ok(&home.envelopes(), 3);
    assert!(ended.summary()["duration_ms"].as_f64().unwrap() >= 1_000.0);
    assert_eq!(simulator.stats().requests, 4, "nothing was sent into the pause");
}

#[test]
fn a_refusal_that_stands_alone_is_waited_for_by_its_row_and_not_by_the_others() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let prompts = (1..=40).map(|row| match row {
        30 => "x [[429x1,retry-after=3600]]".to_owned(),
        _ => format!("row {row}"),
    });
    let home = Home::with_prompts(prompts);
    let running = home.run().on(&simulator).args(&["--parallel", "1", "--retries", "0"]).start();
    // All others are answered, although the refused row waits for an hour with only one slot.
    simulator.wait_until_blocking(|stats| stats.answers == 39);
    running.signal(rustix::process::Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    home.run().on(&simulator).args(&["--resume"]).ends_with(0).resumed(39, 0, 0);
    assert_all_ok(&home.envelopes(), 40);
}

/// A run with one limit set by the user, and its minimum duration.
struct Paced {
    home: Home,
    flag: &'static str,
    least: f64,
    running: Running,
}

/// Starts a run whose calls use 102 tokens of the limited kind.
fn paced(simulator: &Simulator, flag: &'static str, limit: &str, rows: usize, least: f64) -> Paced {
    let prompts = (0..rows).map(|row| format!("{row:>4}{}", "word".repeat(99)));
    let home = Home::with_prompts(prompts);
    let args = [flag, limit, "--final-summary", "--parallel", "4"];
    let running = home.run().on(simulator).args(&args).start();
    Paced { home, flag, least, running }
}

#[test]
fn limits_of_the_users_own_hold_calls_back() {
    // A slow machine cannot break these checks: they limit how fast a run can be.
    let script = SimulatorScript::new().answer_tokens(RandomDistribution::Constant(100.0));
    let simulator = Simulator::start_blocking(script);
    let runs = [
        paced(&simulator, "--rpm", "600", 70, 1_900.0),
        paced(&simulator, "--tpm", "24000", 14, 1_500.0),
        paced(&simulator, "--itpm", "12000", 15, 1_500.0),
        paced(&simulator, "--otpm", "12000", 15, 1_500.0),
    ];
    for Paced { home, flag, least, running } in runs {
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{flag}: {}", ended.err);
        let took = ended.summary()["duration_ms"].as_f64().unwrap();
        assert!(took >= least, "{flag}: {took} ms");
        assert_all_ok(&home.envelopes(), home.read("in.jsonl").lines().count());
    }
}

/// A run of `rows` rows of which 100 are answered and `parallel` wait for their answers.
fn held(home: &Home, simulator: &Simulator, model: &str, parallel: u64) -> Running {
    let parallel_text = parallel.to_string();
    let running = home.run().model(simulator, model).args(&["--parallel", &parallel_text]).start();
    simulator.wait_until_blocking(|stats| stats.answers == 100 && stats.in_flight == parallel);
    running
}

#[test]
fn limits_that_change_in_mid_run_are_followed_before_they_are_met() {
    let requests = |limit| SimulatedLimits { requests: Some(limit), ..SimulatedLimits::default() };
    let runs = ["generic.m", "responses.m", "anthropic.m"].map(|model| {
        let simulator =
            Simulator::start_blocking(SimulatorScript::new().limits(requests(60_000)).hold_after(100));
        let home = Home::with_rows(220);
        let running = held(&home, &simulator, model, 4);
        // The bucket has 60 calls left, and gets 20 per second from now on.
        simulator.set_limits(requests(60));
        simulator.set_limits(requests(1_200));
        simulator.release();
        (model, simulator, home, running)
    });
    for (model, simulator, home, running) in runs {
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{model}: {}", ended.err);
        assert_all_ok(&home.envelopes(), 220);
        let stats = simulator.stats();
        // At most one in two hundred calls may be refused.
        assert!(stats.rate_limited <= 1, "{model}: {} calls were refused", stats.rate_limited);
        assert_eq!((stats.answers, stats.repeated_answers), (220, 0), "{model}");
    }
}

#[test]
fn limits_that_are_lifted_in_mid_run_hold_nothing_back_any_more() {
    let limits = SimulatedLimits { requests: Some(108), ..SimulatedLimits::default() };
    let simulator = Simulator::start_blocking(SimulatorScript::new().limits(limits).hold_after(100));
    let home = Home::with_rows(600);
    let running = held(&home, &simulator, "generic.m", 4);
    simulator.set_limits(SimulatedLimits { requests: Some(60_000), ..SimulatedLimits::default() });
    simulator.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_all_ok(&home.envelopes(), 600);
}

#[test]
fn two_models_of_one_run_do_not_slow_each_other() {
    // The first model is refused for an hour; the second answers meanwhile.
    let first = Simulator::start_blocking(SimulatorScript::new().quota_requests(10));
    let second = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(60);
    home.run()
        .model(&first, "generic.a")
        .env("OPENAI_BASE_URL", &format!("{}/v1", second.url()))
        .args(&["--fallback-model", "openai.b"])
        .ends_with(0);
    assert_all_ok(&home.envelopes(), 60);
    assert_eq!((first.stats().answers, second.stats().answers), (10, 50));
}

#[test]
fn a_quota_that_is_used_up_stops_the_run_without_a_failed_row_if_the_user_says_so() {
    for model in PROTOCOLS {
        let simulator = Simulator::start_blocking(SimulatorScript::new().quota_requests(20));
        let home = Home::with_rows(40);
        let args = ["--on-quota", "stop", "--final-summary"];
        let ended = home.run().model(&simulator, model).args(&args).ends_with(1);
        ended.says(&["error[RM2004]", "help: raise the quota, then run again with `--resume`"]);
        let summary = ended.summary();
        assert_eq!((&summary["status"], &summary["failed_rows"]), (&"stopped".into(), &0.into()), "{model}");
        let envelopes = home.envelopes();
        assert_eq!(envelopes.len(), 20, "{model}");
        assert!(envelopes.iter().all(|line| line["ok"] == true), "{model}");

        simulator.renew_quota();
        home.run().model(&simulator, model).args(&["--resume"]).ends_with(0).resumed(20, 0, 0);
        assert_all_ok(&home.envelopes(), 40);
        let stats = simulator.stats();
        assert_eq!((stats.answers, stats.repeated_answers), (40, 0), "{model}");
    }
}

#[test]
fn a_quota_that_is_used_up_is_waited_for_and_the_reason_is_reported() {
    // OpenAI does not report when a quota is renewed, but a proxy in front of it may.
    let body = r#"{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let spent = SimulatedFault::from_status(429).with_header("retry-after", "1").with_body(body);
    for model in ["generic.m", "responses.m"] {
        let simulator =
            Simulator::start_blocking(SimulatorScript::new().fault(FaultTrigger::Nth(21), spent.clone()));
        let home = Home::with_rows(40);
        let args = ["--retries", "0", "--final-summary"];
        let ended = home.run().model(&simulator, model).args(&args).ends_with(0);
        ended.says(&["waiting for quota: You exceeded your current quota", "; next attempt in "]);
        let message = ended.err.lines().filter(|line| line.starts_with("waiting for quota")).count();
        assert_eq!(message, 1, "it is told once: {}", ended.err);
        assert_all_ok(&home.envelopes(), 40);
        let stats = simulator.stats();
        assert_eq!((stats.answers, stats.repeated_answers), (40, 0), "{model}");
        let failed: &Value = &ended.summary()["calls"]["failed"];
        assert_eq!(
            failed["QuotaExhausted"].as_u64(),
            stats.by_status.get(&429).copied(),
            "{model}: {failed}"
        );
    }
}

#[test]
fn a_wait_for_quota_ends_with_ctrl_c_and_leaves_no_failed_row() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().quota_requests(5));
    let home = Home::with_rows(20);
    let mut running = home.run().on(&simulator).args(&["--parallel", "2"]).start();
    running.wait_for_talk("waiting for quota: ");
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.end().code, Some(130));
    let envelopes = home.envelopes();
    assert!(envelopes.len() == 5 && envelopes.iter().all(|line| line["ok"] == true), "{envelopes:?}");
    simulator.renew_quota();
    home.run().on(&simulator).args(&["--resume", "--limit", "10"]).ends_with(0).resumed(5, 0, 0);
    assert_all_ok(&home.envelopes(), 10);
}

#[test]
#[ignore = "takes half a minute: `cargo xtask soak memory`; tests of the engine are its short form"]
fn five_hundred_prompts_of_a_megabyte_stay_within_a_bound_on_memory() {
    let home = Home::with_rows(500);
    home.write("long.md", &format!("{{{{p}}}} {}", "word ".repeat(200_000)));
    let script = SimulatorScript::new().hold_after(60).keep_requests(0).forget_prompts().answer_bytes(10);
    let simulator = Simulator::start_blocking(script);
    let args = ["-i", "in.jsonl", "-o", "out.jsonl", "--template", "long.md", "--parallel", "500"];
    let running = home.command("run", &args).on(&simulator).start();
    simulator.wait_until_blocking(|stats| stats.requests >= 80);
    simulator.release();
    simulator.wait_until_blocking(|stats| stats.requests >= 500);
    let peak = running.peak_memory();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_all_ok(&home.envelopes(), 500);
    // Five hundred prompts with their requests would be twice that.
    assert!(peak < 600 << 20, "{} MiB", peak >> 20);
}
