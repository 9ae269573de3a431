//! What a run reuses or sends beside its prompts, in the batch lane: answers, files, other models.

use rowmill_testkit::sample_files::{pdf, png};
use rowmill_testkit::{SimulatedAnswer, SimulatedCallView, SimulatedFault, SimulatorScript};
use serde_json::json;

use crate::lanes_support::{BATCH, BothLanes, MODEL, provided, write_texts};
use crate::support::{Place, each};

/// How many envelopes have this mark.
fn reused(place: &Place, how: &str) -> usize {
    place.json("out.jsonl").iter().filter(|line| line["reused"] == how).count()
}

#[test]
fn rows_that_ask_the_same_are_in_a_job_once() {
    let prepare = |place: &mut Place| write_texts(place, (0..60).map(|row| format!("prompt {}", row % 20)));
    let flags = ["-m", MODEL, "-p", "{{t}}", "--dedupe"];
    let lanes = BothLanes { script: &SimulatorScript::new, prepare: &prepare, flags: &flags };
    let (_, batch) = lanes.give_the_same();
    assert_eq!((batch.jobs().jobs, batch.jobs().rows, batch.jobs().answers), (1, 20, 20));
    assert_eq!(reused(&batch.place, "duplicate"), 40);
}

#[test]
fn when_a_row_fails_the_next_one_that_asks_the_same_is_in_the_next_job() {
    let prepare = |place: &mut Place| write_texts(place, ["a [[400x1]]"; 4]);
    let flags = ["-m", MODEL, "-p", "{{t}}", "--dedupe"];
    let lanes = BothLanes { script: &SimulatorScript::new, prepare: &prepare, flags: &flags };
    let (_, batch) = lanes.give_the_same();
    assert_eq!((batch.jobs().jobs, batch.jobs().rows), (2, 2));
    assert_eq!(reused(&batch.place, "duplicate"), 2);
}

#[test]
fn rows_with_the_same_file_are_in_a_job_once_however_fast_files_are_read() {
    let prepare = |place: &mut Place| {
        for name in 0..3_u8 {
            place.write(&format!("{name}.png"), png(name));
        }
        let row = |row: usize| {
            format!("{}\n", json!({"t": format!("What is in {}?", row % 3), "f": format!("{}.png", row % 3)}))
        };
        place.write("rows.jsonl", (0..60).map(row).collect::<String>());
    };
    let flags = ["-m", MODEL, "-p", "{{t}}", "--attach", "f", "--dedupe"];
    for _ in 0..4 {
        let lanes = BothLanes { script: &SimulatorScript::new, prepare: &prepare, flags: &flags };
        let (_, batch) = lanes.give_the_same();
        assert_eq!((batch.jobs().jobs, batch.jobs().rows, reused(&batch.place, "duplicate")), (1, 3, 57));
    }
}

#[test]
fn answers_are_shared_through_the_cache_from_lane_to_lane() {
    for (first, second) in [(BATCH, BATCH), (BATCH, &[][..]), (&[][..], BATCH)] {
        let (simulator, place) = provided(SimulatorScript::new());
        let run = |output: &str, lane: &[&str]| {
            let flags = ["-i", "rows.jsonl", "-o", output, "-m", MODEL, "-p", "{{t}}", "--cache", "answers"];
            place.run(&[&flags[..], lane].concat())
        };
        write_texts(&place, ["a", "b", "c"]);
        run("first.jsonl", first).ok();
        write_texts(&place, ["a", "b", "c", "d"]);
        let ended = run("out.jsonl", second).ok();
        assert_eq!(ended.summary()["reused"]["cache"], 3, "{first:?} {second:?}");
        assert_eq!(reused(&place, "cache"), 3);
        let stats = simulator.stats();
        assert_eq!((stats.answers + stats.batches.answers, stats.batches.repeated_answers), (4, 0));
    }
}

#[test]
fn attached_files_are_inside_the_requests_of_jobs() {
    for model in ["openai.gpt-5.4-mini", "responses.gpt-5.4-mini", "anthropic.m", "google.m"] {
        let prepare = |place: &mut Place| {
            for number in 0..4_u8 {
                place.write(&format!("in/{number}.png"), png(number));
                place.write(&format!("in/{number}.pdf"), pdf(&[&format!("Invoice {number}")]));
            }
        };
        let (simulator, mut place) = provided(SimulatorScript::new());
        prepare(&mut place);
        let flags = ["-i", "in", "-o", "out.jsonl", "-m", model, "-p", "What is {{name}}?"];
        place.run(&[&flags[..], BATCH].concat()).ok();
        let results = each(&place.json("out.jsonl"), "/result");
        assert_eq!(results[0], "answer to: What is 0.pdf?", "{model}");
        assert_eq!((results.len(), simulator.stats().batches.answers), (8, 8), "{model}");
        let sent: Vec<u8> = simulator.requests().into_iter().flat_map(|request| request.body).collect();
        let sent = String::from_utf8_lossy(&sent).into_owned();
        for number in 0..4_u8 {
            use base64::Engine as _;
            let encoded = base64::engine::general_purpose::STANDARD.encode(png(number));
            assert!(sent.contains(&encoded), "{model}: {number}.png");
        }
        assert_eq!(simulator.stats().uploads, 0, "{model}: no file is uploaded by itself");
    }
}

#[test]
fn rows_that_a_model_does_not_answer_go_to_the_fallback_model_in_a_further_job() {
    let script = || {
        SimulatorScript::new().answer_calls(|seen: &SimulatedCallView<'_>| {
            match (seen.model, seen.prompt.contains("hard")) {
                ("first", true) => SimulatedAnswer::Fail(SimulatedFault::from_status(503)),
                (model, _) => SimulatedAnswer::Text(format!("{} by {model}", seen.prompt)),
            }
        })
    };
    let prepare = |place: &mut Place| write_texts(place, ["a", "hard b", "c", "hard d", "e [[400]]"]);
    for fallback in ["openai.second", "anthropic.second"] {
        let flags = ["-m", "openai.first", "--fallback-model", fallback, "-p", "{{t}}", "--retries", "1"];
        let flags = [&flags[..], &["--max-outage", "0"]].concat();
        let (_, batch) = BothLanes { script: &script, prepare: &prepare, flags: &flags }.give_the_same();
        let results = each(&batch.place.json("out.jsonl"), "/result");
        assert_eq!(results[..2], [json!("a by first"), json!("hard b by second")], "{fallback}");
        // All rows, the second attempt at two of them, and these with the other model.
        assert_eq!((batch.jobs().jobs, batch.jobs().rows), (3, 5 + 2 + 2), "{fallback}");
    }
}
