//! Results that the user's own pydantic model checks.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::faults_support::{Home, assert_all_ok};
use crate::support::{KEY, Place, each, finish, scripted, wait_for};

const SHAPES: &str = r#"
print("imported")
from pydantic import BaseModel, field_validator

class Review(BaseModel):
    label: str
    score: int = 5

    @field_validator("label")
    @classmethod
    def known(cls, value):
        if value == "bug":
            raise KeyError("no such thing")
        if value not in ("good", "bad"):
            raise ValueError(f"{value} is no label; use good or bad")
        return value.upper()
"#;

/// A search path on which the Python with pydantic comes first.
fn path_with_pydantic() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin");
    let output = Command::new(folder.join("python3")).args(["-c", "import pydantic"]).output();
    assert!(
        output.is_ok_and(|output| output.status.success()),
        "pydantic is missing in `.venv`: run `bash scripts/prepare-python` first"
    );
    format!("{}:/usr/bin:/bin", folder.display())
}

/// A folder with a pydantic model, and a provider that returns these answers in turn, repeating the
/// last one.
fn with_model(answers: &'static [&'static str]) -> (Simulator, Place) {
    let given = Arc::new(AtomicUsize::new(0));
    let script = SimulatorScript::new().key(KEY).answer_prompts(move |_, _| {
        let at = given.fetch_add(1, Ordering::Relaxed);
        SimulatedAnswer::Text(answers[at.min(answers.len() - 1)].to_owned())
    });
    let (simulator, mut place) = scripted(script);
    place.set("PATH", &path_with_pydantic());
    place.write("shapes.py", SHAPES);
    (simulator, place)
}

const FLAGS: &[&str] =
    &["-m", "openai.m", "-p", "{{n}}", "--schema-model", "shapes:Review", "--parallel", "1"];

#[test]
fn validators_run_their_messages_go_into_the_repair_and_defaults_are_filled() {
    let answers = &[r#"{"label": "fine"}"#, r#"{"label": "good"}"#];
    let (simulator, place) = with_model(answers);
    place.write_rows(1);
    place.run_rows(FLAGS).ok();
    assert_eq!(each(&place.json("out.jsonl"), "/result"), [json!({"label": "GOOD", "score": 5})]);
    let requests = simulator.requests();
    assert_eq!(requests.len(), 2);
    let feedback = requests[1].json()["messages"][2]["content"].to_string();
    assert!(feedback.contains("- at `/label`: Value error, fine is no label; use good or bad"), "{feedback}");
}

#[test]
fn what_a_model_refuses_after_all_repairs_fails_the_row_and_a_broken_model_asks_for_none() {
    let (simulator, place) = with_model(&[r#"{"label": "fine"}"#]);
    place.write_rows(1);
    place.run_rows(FLAGS).code(3);
    let error = place.json("out.jsonl")[0]["error"].clone();
    assert_eq!(error["type"], "StructuredOutputError");
    let message = "the answer does not satisfy the JSON schema: at `/label`: Value error, fine is no label; \
                   use good or bad";
    assert_eq!((&error["message"], simulator.requests().len()), (&json!(message), 2));

    let (simulator, place) = with_model(&[r#"{"label": "bug"}"#]);
    place.write_rows(1);
    place.run_rows(FLAGS).code(3);
    let error = place.json("out.jsonl")[0]["error"].clone();
    let message = "the answer could not be checked: the schema model failed: KeyError: 'no such thing'";
    assert_eq!((&error["message"], simulator.requests().len()), (&json!(message), 1));
}

#[test]
fn an_answer_that_is_used_again_keeps_what_the_model_made_of_it() {
    let (simulator, place) = with_model(&[r#"{"label": "good"}"#]);
    place.write("rows.jsonl", "{\"n\":1}\n{\"n\":1}\n{\"n\":1}\n");
    place.run_rows(&[FLAGS, &["--dedupe"]].concat()).ok();
    let results: Vec<Value> = each(&place.json("out.jsonl"), "/result");
    assert_eq!(simulator.requests().len(), 1);
    // The validator turned the answer into `GOOD`, which is not validated again.
    assert_eq!(results, vec![json!({"label": "GOOD", "score": 5}); 3]);
}

#[test]
fn a_resume_with_another_model_code_is_refused() {
    let (_simulator, place) = with_model(&[r#"{"label": "good"}"#]);
    place.write_rows(2);
    place.run_rows(&[FLAGS, &["--limit", "1"]].concat()).ok();
    place.write("shapes.py", SHAPES.replace("value.upper()", "value.title()"));
    place
        .run_rows(&[FLAGS, &["--resume"]].concat())
        .code(1)
        .says("schema: unchanged, but the Python code of the model that checks answers has changed");
    place.write("shapes.py", SHAPES);
    place.run_rows(&[FLAGS, &["--resume"]].concat()).ok();
    assert_eq!(place.json("out.jsonl").len(), 2);
}

/// Whether everything that a local server sent has been read.
fn is_all_read(url: &str) -> bool {
    let port: u16 = url.trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok()).unwrap();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().skip(1).all(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (remote, queues) = (fields[2], fields[4]);
        !remote.ends_with(&format!(":{port:04X}")) || queues.ends_with(":00000000")
    })
}

#[test]
fn answers_that_wait_for_the_model_at_a_second_ctrl_c_are_kept_and_not_paid_for_again() {
    const ROWS: usize = 5;
    let script =
        SimulatorScript::new().answer_prompts(|_, _| SimulatedAnswer::Text(r#"{"label": "good"}"#.into()));
    let simulator = Simulator::start_blocking(script);
    let home = Home::with_rows(ROWS);
    home.write("gate", "");
    let gate = std::fs::File::open(home.path("gate")).unwrap();
    gate.lock().unwrap();
    // The first answer waits at the call gate, and the others wait for their turn.
    let waits =
        "        import fcntl\n        fcntl.flock(open('gate'), fcntl.LOCK_SH)\n        if value == ";
    home.write("shapes.py", &SHAPES.replace("        if value == ", waits));
    let flags = ["--schema-model", "shapes:Review", "--parallel", "5"];
    let run = || home.run().on(&simulator).args(&flags).env("PATH", &path_with_pydantic());
    let mut running = run().start();
    simulator.wait_until_blocking(|stats| stats.answers == ROWS as u64 && stats.in_flight == 0);
    // Once everything that was sent has been read, the rows are waiting.
    wait_for(|| is_all_read(&simulator.url()).then_some(()));
    for reply in ["stopping: finishing rows in progress", "aborting: cancelling calls in flight"] {
        running.signal(Signal::INT);
        running.wait_for_talk(reply);
    }
    gate.unlock().unwrap();
    let ended = running.end();
    ended.says(&["5 rows: 5 ok"]);
    assert_all_ok(&home.envelopes(), ROWS);
    run().args(&["--resume"]).ends_with(0).resumed(5, 0, 0);
    assert_eq!(simulator.stats().requests, ROWS as u64);
}

#[test]
fn a_process_that_the_module_leaves_behind_is_not_waited_for() {
    let (_simulator, place) = with_model(&[r#"{"label": "good"}"#]);
    place.write_rows(1);
    // It keeps the file handles of the process that started it, and leaves its group.
    let behind = "import subprocess, sys\nkept = subprocess.Popen(['tail', '-f', '/dev/null'], start_new_session=True)\n\
                  with open('behind', 'a') as file: print(kept.pid, file=file)\n";
    place.write("shapes.py", format!("{behind}{SHAPES}"));
    let ended = finish(place.start_rows(FLAGS));
    for process in place.read("behind").lines() {
        Command::new("kill").arg(process).status().unwrap();
    }
    ended.ok();
}

#[test]
fn a_module_that_ends_python_is_reported_with_how_it_ended_and_what_shows_why() {
    let (simulator, place) = with_model(&["{}"]);
    place.write_rows(1);
    let silent = "before it returned the schema of `NAME:Review`, without a message";
    let loud = "before it returned the schema of `NAME:Review`: no licence";
    // Each has a name of its own: Python keeps what it compiled of a file that has the same size and age.
    for (name, code, how, words) in [
        ("seven", "import os; os._exit(7)", "exit status: 7", silent),
        ("zero", "import os; os._exit(0)", "exit status: 0", silent),
        ("killed", "import os; os.kill(os.getpid(), 9)", "signal: 9 (SIGKILL)", silent),
        ("left", "import sys; sys.exit('no licence')", "exit status: 1", loud),
    ] {
        place.write(&format!("{name}.py"), code);
        let ended = place.run_rows(&["-m", "openai.m", "--schema-model", &format!("{name}:Review")]).code(1);
        let message = format!("error[RM1103]: `python3` exited ({how}) {}\n", words.replace("NAME", name));
        let hint = format!("help: run `python3 -c 'import {name}'` to see why\n");
        ended.says(&message).says(&hint);
    }
    assert_eq!(simulator.stats().requests, 0);
}

#[test]
fn a_model_that_is_named_wrongly_is_answered_with_what_was_meant() {
    let (_simulator, place) = with_model(&["{}"]);
    place.write_rows(1);
    for (name, code, hint) in [
        ("shapes:Reviev", 1, "did you mean `shapes:Review`?"),
        ("shapes:review", 1, "did you mean `shapes:Review`?"),
        ("shapes:Order", 1, "it has these models: `shapes:Review`"),
        ("shapes.py:Review", 2, "write it as `--schema-model shapes:Review`"),
        ("./my/shapes.py:Review", 2, "write it as `--schema-model my.shapes:Review`"),
        ("shapes.Review", 2, "write it as `--schema-model shapes:Review`"),
    ] {
        let ended = place.run_rows(&["-m", "openai.m", "--schema-model", name]);
        ended.code(code).says(&format!("help: {hint}\n"));
    }
}
