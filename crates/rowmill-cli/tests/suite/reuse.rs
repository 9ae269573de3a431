//! Not paying twice: rows with the same request, answers of earlier runs, and the provider's cache.

use crate::faults_support::{Home, Run, assert_all_ok};
use rowmill_testkit::{Simulator, SimulatorScript, parse_flags};
use serde_json::Value;

/// Sixty rows with twenty prompts, three rows of each, far apart.
fn sixty_rows() -> Home {
    Home::with_prompts((0..60).map(|row| format!("prompt {}", row % 20)))
}

/// The number of envelopes with this mark.
fn reused(home: &Home, how: &str) -> usize {
    home.envelopes().iter().filter(|line| line["reused"] == how).count()
}

#[track_caller]
fn assert_results(home: &Home) {
    for (row, envelope) in home.envelopes().iter().enumerate() {
        assert_eq!(envelope["result"], format!("answer to: prompt {}", row % 20));
    }
}

#[test]
fn rows_that_ask_the_same_are_sent_once_and_every_row_gets_its_envelope() {
    for parallel in ["1", "7", "auto"] {
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let home = sixty_rows();
        let args = ["--dedupe", "--parallel", parallel, "--final-summary"];
        let telemetry = ["--telemetry-output", "telemetry.jsonl"];
        let ended = home.run().on(&simulator).args(&args).args(&telemetry).ends_with(0);
        assert_eq!(simulator.stats().requests, 20, "{parallel}");
        assert_all_ok(&home.envelopes(), 60);
        assert_results(&home);
        assert_eq!(reused(&home, "duplicate"), 40);
        assert_eq!(ended.summary()["reused"], serde_json::json!({"duplicate": 40, "cache": 0}));
        ended.says(&["reused: 40 rows identical to another row\n"]);
        assert_eq!(home.json_lines("telemetry.jsonl").len(), 60);
        assert_eq!(home.names(), ["in.jsonl", "out.jsonl", "telemetry.jsonl"], "its store is gone");
    }
}

#[test]
fn without_dedupe_rows_that_ask_the_same_are_sent_each() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = sixty_rows();
    home.run().on(&simulator).ends_with(0);
    assert_eq!(simulator.stats().requests, 60);
    assert!(home.envelopes().iter().all(|line| line.get("reused").is_none()));
}

#[test]
fn a_killed_run_that_sends_the_same_once_goes_on_without_asking_again() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(10));
    let home = sixty_rows();
    let args = ["--dedupe", "--parallel", "2"];
    let running = home.run().on(&simulator).args(&args).start();
    simulator.wait_until_blocking(|stats| stats.answers == 10 && stats.in_flight == 2);
    running.kill();
    simulator.release();
    home.run().on(&simulator).args(&args).args(&["--resume"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 60);
    assert_results(&home);
    let stats = simulator.stats();
    assert!(stats.answers <= 20 + 2, "{} answers: only what was in flight is sent again", stats.answers);
    assert!(reused(&home, "duplicate") >= 60 - 20 - 2, "others are asked once at most");
}

#[test]
fn answers_that_are_on_record_are_not_paid_for_again_though_their_store_lost_them() {
    for (reuse, store) in
        [(&["--dedupe"][..], ".out.jsonl.rowmill/answers"), (&["--cache", "answers"], "answers")]
    {
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(10));
        let home = sixty_rows();
        let args = [reuse, &["--parallel", "2"]].concat();
        let running = home.run().on(&simulator).args(&args).start();
        simulator.wait_until_blocking(|stats| stats.answers == 10 && stats.in_flight == 2);
        running.kill();
        home.remove(store);
        simulator.release();
        home.run().on(&simulator).args(&args).args(&["--resume"]).ends_with(0);
        assert_all_ok(&home.envelopes(), 60);
        assert_results(&home);
        assert!(simulator.stats().answers <= 20 + 2, "{reuse:?}: {} answers", simulator.stats().answers);
    }
}

#[test]
fn an_answer_on_record_is_the_same_whether_it_is_text_or_json() {
    for (schema, prompt) in [(None, "say \\\"yes\\\""), (Some(r#"{"type":"string"}"#), "a string")] {
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(1));
        let home = Home::with_prompts([prompt, "another", prompt]);
        let mut args = vec!["--cache", "answers", "--parallel", "1"];
        if let Some(schema) = schema {
            home.write("schema.json", schema);
            args.extend(["--json-schema", "schema.json"]);
        }
        let running = home.run().on(&simulator).args(&args).start();
        simulator.wait_until_blocking(|stats| stats.answers == 1 && stats.in_flight == 1);
        running.kill();
        home.remove("answers");
        simulator.release();
        home.run().on(&simulator).args(&args).args(&["--resume"]).ends_with(0);
        let envelopes = home.envelopes();
        assert_all_ok(&envelopes, 3);
        assert_eq!(envelopes[0]["result"], envelopes[2]["result"]);
        assert_eq!(envelopes[2]["reused"], "cache", "{}", envelopes[2]);
    }
}

#[test]
fn when_a_row_fails_the_next_one_that_asks_the_same_is_sent() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[400x1]]"; 4]);
    home.run().on(&simulator).args(&["--dedupe", "--parallel", "4"]).ends_with(3);
    let envelopes = home.envelopes();
    assert_eq!(envelopes[0]["error"]["type"], "BadRequest");
    assert!(envelopes[1]["ok"] == true && envelopes[1].get("reused").is_none(), "{}", envelopes[1]);
    assert!(envelopes[2]["reused"] == "duplicate" && envelopes[3]["reused"] == "duplicate");
    assert_eq!(simulator.stats().requests, 2);
    home.run().on(&simulator).args(&["--dedupe", "--resume"]).ends_with(0).resumed(3, 1, 0);
    assert_all_ok(&home.envelopes(), 4);
    assert_eq!(simulator.stats().requests, 2, "the answer was kept");
}

/// A run with a cache beside the output.
fn cached(home: &Home, simulator: &Simulator) -> Run {
    home.run().on(simulator).args(&["--cache", "answers", "--overwrite", "--final-summary"])
}

#[test]
fn answers_of_an_earlier_run_are_used_again_and_nothing_is_called() {
    let price = parse_flags::parse_price("input=1,output=4").unwrap();
    let simulator = Simulator::start_blocking(SimulatorScript::new().price(price));
    let home = sixty_rows();
    home.write("rowmill.toml", "[prices.\"generic.m\"]\ninput = 1\noutput = 4\n");
    cached(&home, &simulator).ends_with(0);
    // Rows that come after the answer find it in the cache.
    let shared = reused(&home, "duplicate") + reused(&home, "cache");
    assert_eq!((simulator.stats().requests, shared), (20, 40));
    let results: Vec<Value> = home.envelopes().iter().map(|line| line["result"].clone()).collect();

    let ended = cached(&home, &simulator).ends_with(0);
    assert_eq!(simulator.stats().requests, 20, "the second run calls nothing");
    assert_all_ok(&home.envelopes(), 60);
    assert_eq!(home.envelopes().iter().map(|line| line["result"].clone()).collect::<Vec<_>>(), results);
    // Rows with the same request at the same time are looked up once.
    assert_eq!(reused(&home, "cache") + reused(&home, "duplicate"), 60);
    assert!(reused(&home, "cache") >= 20);
    assert_eq!(
        (&ended.summary()["cost"]["usd"], &ended.summary()["calls"]["made"]),
        (&0.0.into(), &0.into())
    );
    ended.says(&["answered from the cache"]);
}

#[test]
fn a_cache_serves_two_runs_at_once() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(0));
    let shared = Home::new();
    let cache = shared.path("answers");
    let args = ["--cache", cache.to_str().unwrap(), "--parallel", "3"];
    let homes = [sixty_rows(), sixty_rows()];
    let running = homes.each_ref().map(|home| home.run().on(&simulator).args(&args).start());
    simulator.wait_until_blocking(|stats| stats.in_flight == 6);
    simulator.release();
    for (home, running) in homes.iter().zip(running) {
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert_all_ok(&home.envelopes(), 60);
        assert_results(home);
    }
    let asked = simulator.stats().requests;
    assert!((20..=40).contains(&asked), "{asked}");
    let third = sixty_rows();
    third.run().on(&simulator).args(&args).ends_with(0);
    assert_eq!(simulator.stats().requests, asked);
}

#[test]
fn whatever_shapes_an_answer_makes_another_question_of_it() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(3);
    home.write("kind.md", "Be kind.");
    home.write("short.md", "Be short.");
    home.write("a.json", r#"{"type":"object","properties":{"a":{"type":"string"}}}"#);
    home.write("b.json", r#"{"type":"object","properties":{"b":{"type":"string"}}}"#);
    let questions: [&[&str]; 7] = [
        &["-m", "generic.m"],
        &["-m", "generic.other"],
        &["-m", "generic.m?temperature=0"],
        &["-m", "generic.m", "--instruction", "kind.md"],
        &["-m", "generic.m", "--instruction", "short.md"],
        &["-m", "generic.m", "--json-schema", "a.json"],
        &["-m", "generic.m", "--json-schema", "b.json"],
    ];
    for (asked, args) in (1..).zip(questions) {
        let run = || {
            let args = [args, &["--cache", "answers", "--overwrite"]].concat();
            home.run().at(&simulator.url()).args(&args).ends_with(0)
        };
        run();
        assert_eq!(simulator.stats().requests, 3 * asked, "{args:?}");
        run();
        assert_eq!(simulator.stats().requests, 3 * asked, "the same again: {args:?}");
    }
    // Settings of speed and retries do not affect answers.
    let args = ["--parallel", "1", "--retries", "0", "--no-prime", "--rpm", "100000"];
    cached(&home, &simulator).args(&args).key("another").ends_with(0);
    assert_eq!(simulator.stats().requests, 21);
}

#[test]
fn failures_are_not_kept() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a", "b [[400x1]]", "c [[refusalx1]]", "d [[lengthx1]]", "e [[emptyx1]]"]);
    let ended = cached(&home, &simulator).ends_with(3);
    assert_eq!(ended.summary()["failed_rows"], 4);
    cached(&home, &simulator).ends_with(0);
    assert_all_ok(&home.envelopes(), 5);
    assert_eq!((simulator.stats().requests, reused(&home, "cache")), (9, 1));
}

#[test]
fn an_answer_that_had_to_be_repaired_is_kept_as_it_was_in_the_end() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[wrongx1]]"]);
    home.write("s.json", r#"{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}}"#);
    let run = || cached(&home, &simulator).args(&["--json-schema", "s.json"]).ends_with(0);
    run();
    let first = home.envelopes()[0]["result"].clone();
    run();
    assert_eq!((home.envelopes()[0]["result"].clone(), reused(&home, "cache")), (first, 1));
    assert_eq!(simulator.stats().requests, 2);
}

/// A run whose instruction is long enough for the provider's cache, with a price.
fn with_long_instruction(simulator: &Simulator, model: &str) -> (Home, Run) {
    let home = Home::with_rows(20);
    home.write("long.md", &"four".repeat(1_200));
    home.write("rowmill.toml", &format!("[prices.\"{model}\"]\ninput = 1.0\ncached = 0.1\noutput = 4.0\n"));
    let run = home.run().model(simulator, model).args(&["--instruction", "long.md", "--final-summary"]);
    (home, run)
}

#[test]
fn the_first_call_goes_alone_so_that_all_others_find_the_prefix_in_the_providers_cache() {
    // Calls that are sent before the first answer find nothing in the cache, so the count matters.
    for (model, cached) in [("openai.m", 1_152), ("responses.m", 1_152), ("anthropic.m", 1_200)] {
        let simulator =
            Simulator::start_blocking(SimulatorScript::new().latency(std::time::Duration::from_millis(30)));
        let (home, run) = with_long_instruction(&simulator, model);
        let ended = run.ends_with(0);
        assert_all_ok(&home.envelopes(), 20);
        assert_eq!(simulator.stats().cached_tokens, 19 * cached, "{model}");
        let summary = ended.summary();
        assert_eq!(summary["cache"]["read_tokens"], 19 * cached, "{model}");
        assert!(summary["cost"]["saved_by_cache_usd"].as_f64().unwrap() > 0.0, "{model}: {summary}");
        ended.says(&[" from cache), ", " saved by the provider's cache"]);
    }
}

#[test]
fn a_first_call_that_fails_still_leaves_the_next_one_alone() {
    let script = SimulatorScript::new()
        .latency(std::time::Duration::from_millis(30))
        .fault(rowmill_testkit::FaultTrigger::Nth(1), rowmill_testkit::SimulatedFault::from_status(500));
    let simulator = Simulator::start_blocking(script);
    let (home, run) = with_long_instruction(&simulator, "openai.m");
    run.ends_with(0);
    assert_all_ok(&home.envelopes(), 20);
    assert_eq!(simulator.stats().cached_tokens, 19 * 1_152);
}

#[test]
fn the_first_call_has_company_if_the_user_says_so_or_the_prefix_is_short() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(0));
    let (_home, run) = with_long_instruction(&simulator, "openai.m");
    let running = run.args(&["--no-prime", "--parallel", "4"]).start();
    simulator.wait_until_blocking(|stats| stats.in_flight == 4);
    simulator.release();
    assert_eq!(running.end().code, Some(0));

    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(0));
    let home = Home::with_rows(20);
    home.write("short.md", &"four".repeat(900));
    let args = ["--instruction", "short.md", "--parallel", "4"];
    let running = home.run().model(&simulator, "openai.m").args(&args).start();
    simulator.wait_until_blocking(|stats| stats.in_flight == 4);
    simulator.release();
    assert_eq!(running.end().code, Some(0));
}
