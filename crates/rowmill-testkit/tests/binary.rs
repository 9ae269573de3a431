//! The simulator as a program.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use support::{CHAT, Client, chat};

/// The program while it runs; it ends with the test.
struct Program {
    child: Child,
    address: String,
}

impl Program {
    fn start(flags: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rowmill-simulator"))
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        Self { child, address }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn the_program_says_where_it_listens_and_follows_its_flags() {
    let program = Program::start(&[
        "--key",
        "k",
        "--model",
        "m",
        "--latency",
        "1ms",
        "--answer-bytes",
        "64",
        "--keep-prompts",
    ]);
    assert!(program.address.starts_with("127.0.0.1:"));
    let mut client = Client::at(&program.address);
    assert_eq!(client.post(CHAT, "", &chat("x")).status, 401);
    let answer = client.post(CHAT, "authorization: Bearer k\r\n", &chat("x")).json();
    assert_eq!(answer["choices"][0]["message"]["content"].as_str().unwrap().len(), 64);
    assert_eq!(client.get("/stats").json()["answers_by_prompt"], json!({"x": 1}));
}

#[test]
fn the_program_does_damage_at_the_rates_that_it_is_given() {
    let program = Program::start(&["--fault", "503=1", "--seed", "4"]);
    assert_eq!(Client::at(&program.address).post(CHAT, "", &chat("x")).status, 503);
}

#[test]
fn the_program_has_an_instant_path() {
    let program = Program::start(&["--instant", "--instant-text", "{\"n\":1}"]);
    let answer = Client::at(&program.address).post(CHAT, "", "{}").json();
    assert_eq!(answer["choices"][0]["message"]["content"], "{\"n\":1}");
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    for flags in [["--fault", "weather=1"], ["--fault", "503=2"], ["--fault", "503"], ["--latency", "soon"]] {
        let status = Command::new(env!("CARGO_BIN_EXE_rowmill-simulator"))
            .args(flags)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(2), "{flags:?}");
    }
}
