//! `rowmill simulate` as a program: rowmill calls it, and its statistics show what happened.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::support::{Place, each, finish, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The headers that Anthropic requires.
const KEY: &str = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";

/// The program while it runs; it ends with the test.
struct Program {
    child: Option<Child>,
    url: String,
    /// The folder in which it runs, which must live as long as the program.
    place: Place,
}

impl Program {
    fn start(flags: &[&str]) -> Self {
        Self::start_in(Place::new(), flags)
    }

    fn start_in(place: Place, flags: &[&str]) -> Self {
        let mut child =
            place.command(&[&["simulate"], flags].concat()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self { child: Some(child), url, place }
    }

    /// A folder in which this program is the provider.
    fn place(&self) -> Place {
        let mut place = Place::new();
        for (provider, path) in [("OPENAI", "/v1"), ("ANTHROPIC", ""), ("GEMINI", "")] {
            place.set(&format!("{provider}_BASE_URL"), &format!("{}{path}", self.url));
            place.set(&format!("{provider}_API_KEY"), "k");
        }
        place
    }

    fn stats(&self) -> Value {
        serde_json::from_str(&self.get("/stats")).unwrap()
    }

    /// The body of a document.
    fn get(&self, path: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\n{KEY}connection: close\r\n\r\n")).unwrap()
    }

    /// The body of the answer to a request; `None` if there is no answer.
    fn send(&self, request: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        Some(reply.split_once("\r\n\r\n")?.1.to_owned())
    }

    /// Ends it like a user with a signal; returns the folder in which it ran.
    fn end(mut self, signal: Signal) -> Place {
        let child = self.child.take().unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(finish(child).code, 0, "{signal:?}");
        std::mem::replace(&mut self.place, Place::new())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[test]
fn rowmill_runs_against_it_and_the_statistics_add_up() {
    let program = Program::start(&[
        "--key",
        "k",
        "--model",
        "m",
        "--latency",
        "uniform:0ms..2ms",
        "--answer-tokens",
        "10",
        "--price",
        "input=1,output=4",
        "--keep-prompts",
        "--rpm",
        "600000",
        "--tpm",
        "60000000",
    ]);
    assert!(program.url.starts_with("http://127.0.0.1:"), "{}", program.url);
    let models = ["openai.m", "responses.m", "anthropic.m?stream=true", "google.m"];
    for model in models {
        let place = program.place();
        place.write_rows(5);
        place.run_rows(&["-m", model, "-p", "prompt number {{n}}"]).ok();
        assert_eq!(each(&place.json("out.jsonl"), "/ok"), vec![json!(true); 5], "{model}");
    }
    let stats = program.stats();
    assert_eq!((&stats["answers"], &stats["answers_by_prompt"]["prompt number 3"]), (&json!(20), &json!(4)));
    // Each prompt has 15 characters, which are 4 tokens.
    assert_eq!((&stats["input_tokens"], &stats["output_tokens"]), (&json!(80), &json!(200)));
    assert_eq!(stats["cost_usd"], json!(0.00088));
    let admitted: u64 =
        stats["minutes"].as_array().unwrap().iter().map(|minute| minute["requests"].as_u64().unwrap()).sum();
    assert_eq!(admitted, 20);
    assert!(stats["minutes"][0]["quota_requests"].is_u64(), "{stats}");

    let place = program.place();
    place.write_rows(1);
    place.run_rows(&["-m", "openai.other", "-p", "x"]).code(1).says("RM2002");
}

#[test]
fn it_does_damage_at_the_rates_that_it_is_given() {
    let program = Program::start(&["--fault", "400=1", "--seed", "4"]);
    let place = program.place();
    place.write_rows(3);
    place.run_rows(&["-m", "openai.m"]).code(3);
    assert_eq!(program.stats()["by_status"], json!({"400": 3}));
}

#[test]
fn it_has_an_instant_path() {
    let program = Program::start(&["--instant", "--instant-text", "ready", "--latency", "1ms"]);
    let place = program.place();
    place.write_rows(3);
    place.run_rows(&["-m", "openai.m"]).ok();
    assert_eq!(each(&place.json("out.jsonl"), "/result"), vec![json!("ready"); 3]);
    assert_eq!(program.stats()["answers"], 3);
}

#[test]
fn it_serves_batch_jobs_loses_answers_and_leaves_no_files() {
    let mut place = Place::new();
    place.write("temporary/.keep", "");
    let temporary = place.path("temporary").display().to_string();
    place.set("TMPDIR", &temporary);
    let flags = ["--batch-duration", "2h", "--time-scale", "1e9", "--batch-lose-creates", "1"];
    let program = Program::start_in(place, &flags);
    let params = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]});
    let body = json!({"requests": [{"custom_id": "a", "params": params}]}).to_string();
    let path = "/v1/messages/batches";
    let request = format!(
        "POST {path} HTTP/1.1\r\n{KEY}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(program.send(&request), None, "the first answer is lost");
    let job: Value = serde_json::from_str(&program.send(&request).unwrap()).unwrap();
    assert_eq!(job["processing_status"], "in_progress");
    let results = format!("{path}/{}/results", job["id"].as_str().unwrap());
    let line = wait_for(|| Some(program.get(&results)).filter(|text| text.contains("custom_id")));
    assert!(line.contains("answer to: Hi"), "{line}");
    let stats = wait_for(|| Some(program.stats()).filter(|stats| stats["batches"]["answers"] == 2));
    let counts = ["jobs", "rows_submitted_more_than_once", "repeated_answers", "result_downloads"];
    assert_eq!(counts.map(|name| stats["batches"][name].as_u64().unwrap()), [2, 1, 1, 1]);
    let folder = program.place.path("temporary");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "the folder of the program and `.keep`");
    let place = program.end(Signal::TERM);
    assert_eq!(std::fs::read_dir(place.path("temporary")).unwrap().count(), 1);
}

#[test]
fn ctrl_c_and_sigterm_end_it_in_order() {
    for signal in [Signal::INT, Signal::TERM] {
        Program::start(&[]).end(signal);
    }
}

#[test]
fn another_address_is_warned_of_and_a_port_that_is_taken_is_reported() {
    let place = Place::new();
    let mut child = place.command(&["simulate", "--host", "0.0.0.0"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on http://0.0.0.0:"), "{line}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    finish(child).ok().says("warning: other machines can reach `0.0.0.0`");

    let program = Program::start(&[]);
    let port = program.url.rsplit_once(':').unwrap().1;
    place.rowmill(&["simulate", "--port", port]).code(2).says("choose another `--port`");
}

#[test]
fn flags_that_make_no_sense_are_refused_with_what_to_write() {
    for (flag, value, problem) in [
        ("--fault", "weather=1", "is not a fault"),
        ("--fault", "503=2", "not a share between 0 and 1"),
        ("--fault", "503", "KIND=RATE"),
        ("--latency", "soon", "write `200ms`"),
        ("--answer-tokens", "many", "write `50`"),
        ("--rpm", "0", "0 is not in"),
        ("--at", "rpm=5", "TIME:KEY=VALUE"),
        ("--outage", "60s", "START+LENGTH"),
        ("--outage-kind", "rain", "write `503`"),
        ("--price", "input=1", "needs `input` and `output`"),
        ("--tokenizer", "words", "write `chars` or `o200k`"),
        ("--batch-duration", "soon", "write `2h`"),
        ("--batch-window", "soon", "write `10s`"),
        ("--time-scale", "0", "not a factor"),
        ("--batch-invalid", "url_mismatch", "CODE:LINE"),
        ("--batch-missing", "2", "not a share between 0 and 1"),
        ("--batch-fail-creates", "1:200", "N:STATUS"),
    ] {
        Place::new().rowmill(&["simulate", flag, value]).code(2).says(problem);
    }
}

#[test]
fn the_help_shows_how_to_point_rowmill_at_it() {
    let help = Place::new().rowmill(&["simulate", "--help"]).ok().stdout;
    for part in ["OPENAI_BASE_URL=http://127.0.0.1:8080/v1", "/stats", "--at 120s:rpm=300", "--quota-renews"]
    {
        assert!(help.contains(part), "{part}");
    }
}
