//! `rowmill simulate` as a model that calls tools, from a file of rules or with canned bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::support::Place;
use serde_json::{Value, json};

/// The program while it runs; it ends with the test.
struct Program {
    child: Child,
    address: String,
}

impl Program {
    fn start(place: &Place, flags: &[&str]) -> Self {
        let mut child =
            place.command(&[&["simulate"], flags].concat()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        Self { child, address }
    }

    /// The answer of the model to these messages.
    fn ask(&self, messages: &Value) -> Value {
        let tool = json!({"type": "function", "function": {"name": "find"}});
        let body = json!({"model": "m", "messages": messages, "tools": [tool]}).to_string();
        let length = body.len();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        // Canned answers do not close the connection, so only the available bytes are read.
        let mut reply = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reply.read_line(&mut line).unwrap();
            match line.trim().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                _ if line == "\r\n" => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reply.read_exact(&mut body).unwrap();
        serde_json::from_slice::<Value>(&body).unwrap()["choices"][0]["message"].clone()
    }

    /// Answers one tool call of the model; returns the next text of the model.
    fn answer(&self, messages: &mut Value, result: &str) -> Value {
        let message = self.ask(messages);
        let list = messages.as_array_mut().unwrap();
        let id = message["tool_calls"][0]["id"].clone();
        list.push(message);
        list.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
        self.ask(messages)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

const RULES: &str = r#"{"when": {"turn": 1, "tool": "find"}, "then": {"calls": [{"name": "find", "arguments": {"q": "{{prompt}}"}}]}}
{"when": {"last": "otters"}, "then": {"text": "{{last}} it is"}}
"#;

#[test]
fn rules_of_a_file_call_tools_and_the_log_tells_what_came() {
    let place = Place::new();
    place.write("rules.jsonl", RULES);
    let program = Program::start(
        &place,
        &["--script", "rules.jsonl", "--log-requests", "calls.jsonl", "--log-messages"],
    );
    let mut messages =
        json!([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Who swims?"}]);
    let message = program.answer(&mut messages, "otters");
    assert_eq!(message["content"], "otters it is");
    assert_eq!(messages[2]["tool_calls"][0]["function"]["arguments"], r#"{"q":"Who swims?"}"#);
    let seen = &place.json("calls.jsonl")[1];
    assert_eq!(
        (&seen["system"], &seen["turn"], &seen["tools"]),
        (&json!("Be kind."), &json!(2), &json!(["find"]))
    );
    assert_eq!(seen["messages"][2]["answers"][0]["text"], "otters");
}

#[test]
fn prepared_answers_can_call_a_tool_first() {
    let place = Place::new();
    let program = Program::start(
        &place,
        &["--instant-turns", "1", "--tool", r#"find {"q": 1}"#, "--instant-text", "ready"],
    );
    let mut messages = json!([{"role": "user", "content": "x"}]);
    assert_eq!(program.answer(&mut messages, "1")["content"], "ready");
    assert_eq!(messages[1]["tool_calls"][0]["function"], json!({"name": "find", "arguments": r#"{"q":1}"#}));
}

#[test]
fn scripts_that_cannot_be_used_are_reported_with_the_rule_and_what_to_write() {
    let place = Place::new();
    place.write("rules.jsonl", "{\"then\": {}}\n{\"then\": {\"txet\": \"x\"}}\n");
    let message = "`rules.jsonl`, rule 2 (line 2): `then` has no key `txet`; did you mean `text`?";
    place.rowmill(&["simulate", "--script", "rules.jsonl"]).code(2).says(message);
    place
        .rowmill(&["simulate", "--script", "none.jsonl"])
        .code(1)
        .says("cannot read the script `none.jsonl`");
    for (flags, message) in [
        (["--instant-turns", "2"].as_slice(), "--tool"),
        (&["--instant-turns", "2", "--tool", "find {"], "is not a call; write a tool and its arguments"),
        (&["--log-messages"], "--log-requests"),
    ] {
        place.rowmill(&[&["simulate"], flags].concat()).code(2).says(message);
    }
}
