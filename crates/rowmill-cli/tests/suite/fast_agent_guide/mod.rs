//! Every command line of fast-agent's guide to batches, word for word. Shell functions map its commands
//! to rowmill; the provider is the simulator, and the hub a stand-in.

mod commands;
mod hub_front;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::{Ended, KEY, Place, each, finish, keys, row_numbers, wait_for};
use commands::*;
use hub_front::hub_with_tools;
use rowmill_testkit::hub::{FileKind, HubSimulator};
use rowmill_testkit::{SimulatedAnswer, SimulatedAnswerRules, Simulator, SimulatorScript, mcp_server};
use serde_json::{Value, json};

/// Replaces the commands of the guide.
const SHELL: &str = r#"
fast-agent() { exec "$ROWMILL" "$@"; }
uvx() { shift; exec "$ROWMILL" "$@"; }
"#;

const ENVELOPE: [&str; 5] = ["id", "row_number", "ok", "result", "error"];

/// A simulator of the provider, and a folder with the files of the guide.
fn guide() -> (Simulator, Place) {
    guide_with(SimulatorScript::new().key(KEY))
}

fn guide_with(script: SimulatorScript) -> (Simulator, Place) {
    let simulator = Simulator::start_blocking(script);
    let mut place = Place::with(&simulator);
    place.set("ROWMILL", env!("CARGO_BIN_EXE_rowmill"));
    place.write_rows(12);
    place.write(
        "reviews.jsonl",
        "{\"id\": \"r1\", \"review\": \"The battery lasts all day.\", \"product\": \"phone\"}\n\
         {\"id\": \"r2\", \"review\": \"Arrived late and the box was damaged.\", \"product\": \"custom_model\"}\n",
    );
    place.write("sentiment-instructions.md", INSTRUCTIONS);
    place.write("review-template.md", "Product: {{product}}\nReview: {{review}}\n");
    place.write("record-template.md", "{{text}}");
    place.write("sentiment.schema.json", SENTIMENT_SCHEMA);
    place.write("review-worker.md", format!("---\nname: reviewer\n---\n{INSTRUCTIONS}"));
    (simulator, place)
}

/// Starts a command line of the guide in a shell.
fn start(place: &Place, printed: &str) -> Child {
    let rowmill = place.command(&[]);
    let mut shell = Command::new("bash");
    shell.args(["-euc", &format!("{SHELL}{printed}")]).current_dir(place.path("")).env_clear();
    shell.envs(rowmill.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn run(place: &Place, printed: &str) -> Ended {
    finish(start(place, printed))
}

/// Writes a Parquet file with the rows of a JSONL text.
fn write_parquet(place: &Place, name: &str, rows: &str) {
    place.write("rows-of-table.jsonl", rows);
    let flags = ["-m", "passthrough", "--flatten", "--no-final-summary"];
    place.run(&[&["-i", "rows-of-table.jsonl", "-o", name], &flags[..]].concat()).ok();
}

/// The fields of each envelope are those of the guide, in its order, and every row is ok.
#[track_caller]
fn assert_ok_envelopes(envelopes: &[Value], ids: &[Value]) {
    for envelope in envelopes {
        assert_eq!(keys(envelope)[..5], ENVELOPE, "{envelope}");
        assert_eq!((&envelope["ok"], &envelope["error"]), (&json!(true), &Value::Null), "{envelope}");
    }
    assert_eq!(each(envelopes, "/id"), ids);
}

/// The bodies of the requests to the Responses API.
fn bodies(simulator: &Simulator) -> Vec<Value> {
    simulator.requests().iter().map(|request| request.json()).collect()
}

#[test]
fn a_first_run_sends_the_whole_row_with_the_settings_of_the_model_string() {
    let (simulator, place) = guide();
    run(&place, FIRST).ok();
    assert_ok_envelopes(&place.json("results.jsonl"), &(1..=10).map(Value::from).collect::<Vec<_>>());
    // Rows that are sent at once arrive in any order.
    let first = "Input record:\n\n{\n  \"n\": 1\n}\n";
    assert_eq!(simulator.calls().iter().filter(|call| call.prompt == first).count(), 1);
    assert_eq!(bodies(&simulator)[0]["reasoning"]["effort"], "low");

    let (simulator, place) = guide();
    run(&place, FLEX).ok();
    assert_eq!(place.json("results.jsonl").len(), 12);
    assert!(bodies(&simulator).iter().all(|body| body["service_tier"] == "flex"));
}

#[test]
fn rows_have_envelopes_and_their_input_where_it_is_asked_for() {
    let (_simulator, place) = guide();
    run(&place, REVIEWS).ok();
    let envelopes = place.json("review-results.jsonl");
    assert_ok_envelopes(&envelopes, &[json!(1), json!(2)]);
    assert_eq!(keys(&envelopes[0]), ENVELOPE);

    let (_simulator, place) = guide();
    run(&place, INCLUDE_INPUT).ok();
    let envelopes = place.json("review-results.jsonl");
    assert_ok_envelopes(&envelopes, &[json!("r1"), json!("r2")]);
    assert_eq!(each(&envelopes, "/input"), place.json("reviews.jsonl"));
}

#[test]
fn the_instruction_comes_from_a_file_or_from_a_card() {
    for printed in [INSTRUCTION, AGENT_CARD] {
        let (simulator, place) = guide();
        run(&place, printed).ok();
        assert_ok_envelopes(&place.json("review-results.jsonl"), &[json!(1), json!(2)]);
        for call in simulator.calls() {
            assert_eq!(call.system.trim(), INSTRUCTIONS.trim());
            assert_eq!(call.model, "gpt-5.5");
        }
    }
}

#[test]
fn a_template_makes_the_prompt() {
    for (printed, prompt) in [
        (TEMPLATE, "Product: phone\nReview: The battery lasts all day.\n"),
        (
            PROMPT,
            "Classify this phone review into positive, neutral, or negative: The battery lasts all day.",
        ),
    ] {
        let (simulator, place) = guide();
        run(&place, printed).ok();
        let calls = simulator.calls();
        assert!(calls.iter().any(|call| call.prompt == prompt), "{calls:?}");
    }
}

#[test]
fn results_have_the_shape_of_the_schema_in_one_call_at_a_time_and_in_several() {
    for printed in [SCHEMA, PARALLEL] {
        let (simulator, place) = guide();
        run(&place, printed).ok();
        let envelopes = place.json("review-results.jsonl");
        assert_ok_envelopes(&envelopes, &[json!(1), json!(2)]);
        for result in each(&envelopes, "/result") {
            assert_eq!(keys(&result), ["sentiment", "reason"]);
        }
        assert!(simulator.calls().iter().all(|call| call.path == "/v1/responses"));
    }
}

#[test]
fn a_work_folder_of_ones_own_holds_what_a_resume_needs() {
    let (simulator, place) = guide();
    run(&place, WORK_DIR).ok();
    assert_ok_envelopes(&place.json("review-results.jsonl"), &[json!(1), json!(2)]);
    assert!(place.exists(".batch/reviews/run.json") && !place.exists(".review-results.jsonl.rowmill"));
    run(&place, &WORK_DIR.replace("--parallel 4", "--parallel 4 --resume")).ok();
    assert_eq!(simulator.stats().requests, 2, "what is done is not asked again");
}

#[test]
fn what_was_answered_before_a_kill_is_not_asked_again_by_the_resume() {
    let with_ids = |resume: &str| resume.replace("  --resume \\\n", "");
    for (first_run, resume) in [
        // As printed, `--id-field` comes only with the resume.
        (SCHEMA.to_owned(), RESUME),
        (WORK_DIR.to_owned(), RESUME_WORK_DIR),
        (with_ids(RESUME), RESUME),
        (with_ids(RESUME_WORK_DIR), RESUME_WORK_DIR),
    ] {
        let (simulator, place) = guide_with(SimulatorScript::new().key(KEY).hold_after(1));
        let mut killed = start(&place, &first_run);
        simulator.wait_until_blocking(|stats| stats.answers == 1 && stats.requests == 2);
        // Either of the two rows may have been answered: the output, which is in input order, may be
        // empty.
        wait_for(|| {
            let ledgers = [".review-results.jsonl.rowmill", ".batch/reviews"];
            let ledgers = ledgers.map(|folder| place.path(&format!("{folder}/ledger-1.jsonl")));
            let ended =
                |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains("row_ended"));
            ledgers.iter().any(ended).then_some(())
        });
        killed.kill().unwrap();
        killed.wait().unwrap();
        simulator.release();
        run(&place, resume).ok().says("1 row");
        assert_ok_envelopes(&place.json("review-results.jsonl"), &[json!("r1"), json!("r2")]);
        assert_eq!(simulator.stats().requests, 3, "{resume}");
    }
}

#[test]
fn telemetry_summary_and_errors_are_files_of_their_own() {
    let (_simulator, place) = guide();
    // The second row lacks a field of the template.
    place.write(
        "reviews.jsonl",
        "{\"id\": \"r1\", \"review\": \"Fine.\", \"product\": \"phone\"}\n{\"id\": \"r2\"}\n",
    );
    let ended = run(&place, TELEMETRY).code(3);
    let errors = place.json("review-errors.jsonl");
    assert_eq!(errors, place.json("review-results.jsonl")[1..]);
    assert_eq!(keys(&errors[0]), ENVELOPE);
    assert_eq!(errors[0]["error"]["type"], "MissingTemplateField");

    let mut telemetry = place.json("review-telemetry.jsonl");
    telemetry.sort_by_key(|line| line["row_number"].as_u64());
    assert_eq!(keys(&telemetry[0]), ["id", "row_number", "ok", "timing", "usage"]);
    assert!(telemetry[0]["timing"]["duration_ms"].is_number(), "{}", telemetry[0]);
    assert!(telemetry[0]["timing"]["time_to_response_ms"].is_number(), "{}", telemetry[0]);
    assert!(telemetry[0]["usage"]["turn"]["input_tokens"].is_number(), "{}", telemetry[0]);
    assert_eq!(row_numbers(&telemetry), [1, 2]);

    let summary: Value = serde_json::from_str(&place.read("review-summary.json")).unwrap();
    assert_eq!(summary, ended.summary());
    for (field, value) in
        [("selected_rows", 2), ("processed_rows", 2), ("skipped_rows", 0), ("failed_rows", 1)]
    {
        assert_eq!(summary[field], value, "{field}");
    }
    assert_eq!(
        (&summary["model"], &summary["input"]),
        (&json!("responses.gpt-5.5"), &json!("reviews.jsonl"))
    );
    assert_eq!(keys(&summary["timing_ms"]), ["duration", "ttft", "time_to_response"]);
}

#[test]
fn rows_come_from_the_hub_and_from_a_query() {
    let hub = HubSimulator::start();
    let (simulator, mut place) = guide();
    place.set("HF_ENDPOINT", &hub.url());
    let rows =
        "{\"id\":1,\"text\":\"one\",\"split\":\"train\"}\n{\"id\":2,\"text\":\"two\",\"split\":\"eval\"}\n";
    write_parquet(&place, "rows.parquet", rows);
    let table = fs::read(place.path("rows.parquet")).unwrap();
    hub.convert("datasets/evalstate/my-dataset", "default", "train", &[&table]);
    hub.put("datasets/evalstate/my-dataset", "data/train.jsonl", rows, FileKind::Large);

    for (printed, prompts) in [
        (HUB_SPLIT, ["one", "two"].as_slice()),
        (HUB_FILE, &["\"text\": \"one\"", "\"text\": \"two\""]),
        (SQL, &["{\n  \"id\": 2,\n  \"text\": \"two\"\n}"]),
    ] {
        let before = simulator.calls().len();
        drop(fs::remove_file(place.path("results.jsonl")));
        run(&place, printed).ok();
        assert_eq!(place.json("results.jsonl").len(), prompts.len());
        let mut seen: Vec<String> =
            simulator.calls()[before..].iter().map(|call| call.prompt.clone()).collect();
        seen.sort();
        let fits = seen.iter().zip(prompts).all(|(seen, prompt)| seen.contains(prompt));
        assert!(fits && seen.len() == prompts.len(), "{printed}: {seen:?}");
    }
}

/// The hub's MCP server, on this machine. It ends when this is dropped.
struct HubTools {
    process: Child,
    url: String,
}

impl HubTools {
    fn start() -> Self {
        let words = mcp_server();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(["--http", "0", "--token", KEY])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned() }
    }
}

impl Drop for HubTools {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[test]
fn rows_template_and_card_come_from_the_hub_and_the_agent_uses_its_tools() {
    let found = |task: &str| SimulatedAnswer::Calls {
        text: String::new(),
        calls: vec![("huggingface__echo".to_owned(), json!({"text": format!("found for {task}")}))],
    };
    let script = SimulatorScript::new().key(KEY).answer_calls(move |seen| match seen.turn {
        1 => found(seen.prompt.lines().nth(1).unwrap_or_default()),
        _ => SimulatedAnswer::Text(seen.last.to_owned()),
    });
    let (simulator, mut place) = guide_with(script);
    let (hub, tools) = (HubSimulator::start(), HubTools::start());
    // The tools are called with the user's token, which the card does not name.
    place.set("HF_ENDPOINT", &hub_with_tools(&hub.url(), &tools.url));
    place.set("HF_BASE_URL", &format!("{}/v1", simulator.url()));
    place.set("HF_TOKEN", KEY);
    for (name, text) in [
        ("hf-research-questions.jsonl", HUB_QUESTIONS),
        ("hf-research-agent.md", HUB_CARD),
        ("hf-research-template.md", HUB_TEMPLATE),
    ] {
        hub.put("datasets/evalstate/fast-agent-batch-demo", name, text, FileKind::Small);
    }
    run(&place, HUB_AGENT).ok();
    let envelopes = place.json("hf-research-results.jsonl");
    assert_ok_envelopes(&envelopes, &[json!("hf1"), json!("hf2"), json!("hf3")]);
    let result = envelopes[0]["result"].as_str().unwrap();
    assert!(result.starts_with("found for Find a compact sentiment-analysis dataset"), "{result}");
    let calls = simulator.calls();
    assert_eq!(calls.len(), 6, "two turns for each of three rows");
    for call in calls {
        assert!(call.model.starts_with("moonshotai/Kimi-K2.6"), "{}", call.model);
        assert!(call.system.starts_with("You are a concise Hugging Face research assistant."));
    }
}

#[test]
fn competitors_are_looked_up_in_the_web_and_come_in_threes() {
    let found = [("Belkin", "BoostCharge"), ("UGREEN", "Uno"), ("Baseus", "Airpow")]
        .map(|(manufacturer, product)| json!({"manufacturer": manufacturer, "product": product}));
    let rules = json!([{"then": {
        "json": {"competitors": found},
        "cite": [{"url": "https://example.com/power-banks", "title": "Power banks"}],
    }}]);
    let script = SimulatorScript::new()
        .key(KEY)
        .rules(SimulatedAnswerRules::read("rules", &rules.to_string()).unwrap());
    let (simulator, place) = guide_with(script);
    place.write(
        "products.jsonl",
        "{\"id\":\"p1\",\"product\":\"Power bank\"}\n{\"id\":\"p2\",\"product\":\"Headphones\"}\n",
    );
    place.write("competitor-template.md", "Search the web for three competitors of {{product}}.");
    place.write("competitors.schema.json", COMPETITORS_SCHEMA);
    run(&place, COMPETITORS).ok();
    let envelopes = place.json("competitors.jsonl");
    assert_ok_envelopes(&envelopes, &[json!("p1"), json!("p2")]);
    assert_eq!(envelopes[0]["result"], json!({"competitors": found}));
    assert!(simulator.calls().iter().all(|call| call.tools == ["web_search"]));
}
