//! Agents whose every turn and every tool call is unique, and counters for them.
//!
//! A router sends each row to one agent, through a chain, or to two agents at once. Their tools belong
//! to a server that outlives the command: `once__count` must not run twice, `twice__count` may.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rowmill_testkit::{SimulatedAnswer, SimulatedCallView, SimulatorScript, parse_flags};
use serde_json::{Value, json};

use crate::faults_support::{Home, Run};

/// A turn of one agent for one row: `(row, member, turn)`, which both the simulator and the ledger
/// contain.
pub(crate) type Mark = (u64, &'static str, u64);

const CARDS: [(&str, &str); 8] = [
    ("front.md", "---\ntype: router\ndefault: true\nagents: [solo, line, both]\n---\nYou are front."),
    ("line.yaml", "type: chain\nsequence: [first, second]"),
    ("both.yaml", "type: parallel\nfan_out: [left, right]"),
    ("solo.md", "---\nservers: [once, twice]\n---\nYou are solo."),
    ("first.md", "---\nservers: [once, twice]\n---\nYou are first."),
    ("second.md", "---\nservers: [once, twice]\n---\nYou are second."),
    ("left.md", "---\nservers: [once, twice]\n---\nYou are left."),
    ("right.md", "---\nservers: [once, twice]\n---\nYou are right."),
];

/// The agents with the turns in which they call tools; one more turn is their answer.
const MEMBERS: [(&str, u64); 6] =
    [("front", 0), ("solo", 3), ("first", 2), ("second", 1), ("left", 2), ("right", 1)];

/// The agents that work on a row, chosen by the router.
fn chosen(row: u64) -> (&'static str, &'static [&'static str]) {
    match row % 4 {
        2 => ("line", &["first", "second"]),
        3 => ("both", &["left", "right"]),
        _ => ("solo", &["solo"]),
    }
}

fn member(name: &str) -> (&'static str, u64) {
    *MEMBERS.iter().find(|(known, _)| *known == name).unwrap()
}

/// Every turn that a row takes.
pub(crate) fn turns(row: u64) -> Vec<Mark> {
    let members = ["front"].iter().chain(chosen(row).1).map(|name| member(name));
    members.flat_map(|(name, calls)| (1..=calls + 1).map(move |turn| (row, name, turn))).collect()
}

/// Every tool call that a row makes, by its label.
pub(crate) fn labels(row: u64) -> Vec<String> {
    let calls = turns(row).into_iter().flat_map(calls);
    calls.map(|(_, arguments)| arguments["label"].as_str().unwrap().to_owned()).collect()
}

/// Whether a label belongs to a call that must not run twice.
pub(crate) fn runs_once(label: &str) -> bool {
    label.ends_with("once")
}

/// The row of a label.
pub(crate) fn row_of(label: &str) -> u64 {
    label.split(' ').next().unwrap().parse().unwrap()
}

/// The calls of a turn: one, or for every fifth row two at once.
fn calls((row, name, turn): Mark) -> Vec<(String, Value)> {
    if turn > member(name).1 {
        return Vec::new();
    }
    let calls = if row.is_multiple_of(5) { 2 } else { 1 };
    let call = |index| {
        let server = if (row / 5 + turn + index) % 2 == 0 { "once" } else { "twice" };
        (format!("{server}__count"), json!({"label": format!("{row} {name} {turn} {index} {server}")}))
    };
    (0..calls).map(call).collect()
}

/// Counts how often each turn was answered.
#[derive(Clone, Default)]
pub(crate) struct Answered(Arc<Mutex<BTreeMap<Mark, u64>>>);

impl Answered {
    /// A provider with prices whose answers are counted here.
    pub(crate) fn script(&self) -> SimulatorScript {
        let book = self.clone();
        let price = parse_flags::parse_price("input=1,output=4").unwrap();
        SimulatorScript::new()
            .price(price)
            .forget_prompts()
            .keep_requests(0)
            .answer_calls(move |seen| book.reply(seen))
    }

    fn reply(&self, seen: &SimulatedCallView<'_>) -> SimulatedAnswer {
        let row = seen.prompt.split('#').nth(1).unwrap().parse().unwrap();
        let name = seen.system.split("You are ").nth(1).unwrap();
        let (name, last) = member(name.split('.').next().unwrap());
        let mark = (row, name, seen.turn);
        assert!(seen.turn <= last + 1, "{mark:?}");
        *self.0.lock().unwrap().entry(mark).or_default() += 1;
        match calls(mark) {
            _ if name == "front" => {
                SimulatedAnswer::Json(json!({"agent": chosen(row).0, "confidence": "high", "reasoning": "r"}))
            }
            calls if calls.is_empty() => SimulatedAnswer::Text(format!("#{row}# by {name}")),
            calls => SimulatedAnswer::Calls { text: String::new(), calls },
        }
    }

    pub(crate) fn counts(&self) -> BTreeMap<Mark, u64> {
        self.0.lock().unwrap().clone()
    }
}

/// A tool server that writes a line for every call.
pub(crate) struct Tools {
    child: Child,
    url: String,
}

impl Tools {
    /// Starts it, with a folder whose rows and agents use it.
    pub(crate) fn start(rows: u64) -> (Self, Home) {
        let home = Home::with_prompts((1..=rows).map(|row| format!("Work on #{row}#.")));
        let words = rowmill_testkit::mcp_server();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["--http", "0", "--count"]).arg(home.path("counted"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let tools = Self { child, url: url.trim().to_owned() };
        fs::create_dir(home.path("cards")).unwrap();
        for (name, text) in CARDS {
            home.write(&format!("cards/{name}"), text);
        }
        home.write("rowmill.toml", &tools.config());
        (tools, home)
    }

    fn config(&self) -> String {
        let server = |name: &str, idempotent: bool| {
            let url = &self.url;
            format!(
                "[mcp.servers.{name}]\nurl = \"{url}\"\nidempotent = {idempotent}\ntools = [\"count\", \"hang\", \"release\"]\n"
            )
        };
        let prices = "[prices.\"generic.m\"]\ninput = 1.0\noutput = 4.0\n";
        [server("once", false), server("twice", true), prices.to_owned()].concat()
    }

    /// Lets every call of `hang` return.
    pub(crate) fn release(&self) {
        let begun = self.post("", &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"}));
        let header = begun.lines().find(|line| line.starts_with("Mcp-Session-Id")).unwrap();
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "release"}});
        assert!(self.post(&format!("{header}\r\n"), &call).contains("done"));
    }

    fn post(&self, headers: &str, message: &Value) -> String {
        let address = self.url.split('/').nth(2).unwrap();
        let (mut stream, body) = (TcpStream::connect(address).unwrap(), message.to_string());
        let length = body.len();
        let request = format!(
            "POST /mcp HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A run of the router over the rows of the folder.
pub(crate) fn run(home: &Home) -> Run {
    home.run().args(&["--agent-card", "cards", "--telemetry-output", "telemetry.jsonl"])
}

/// How often each call reached the server.
pub(crate) fn counted(home: &Home) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    if home.exists("counted") {
        for label in home.read("counted").lines() {
            *counts.entry(label.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Waits until this many calls have reached the tool server.
pub(crate) fn wait_for_calls(home: &Home, calls: u64) -> BTreeMap<String, u64> {
    loop {
        let counts = counted(home);
        if counts.values().sum::<u64>() >= calls {
            return counts;
        }
        std::thread::yield_now();
    }
}

/// The usage of all rows together, in telemetry and in the ledger.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Used {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Used {
    pub(crate) fn add(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
    }

    fn of_telemetry(tokens: &Value) -> Self {
        let field = |name: &str| tokens[name].as_u64().unwrap_or_default();
        Self { input: field("input_tokens"), output: field("output_tokens") }
    }

    pub(crate) fn tokens(self) -> u64 {
        self.input + self.output
    }

    /// The cost in dollars, at the prices above.
    pub(crate) fn dollars(self) -> f64 {
        (self.input + 4 * self.output) as f64 / 1e6
    }
}

/// The sum over all lines of telemetry, whose costs must match their tokens.
pub(crate) fn total_usage(home: &Home) -> Used {
    let mut sum = Used::default();
    for line in home.json_lines("telemetry.jsonl") {
        let used = Used::of_telemetry(&line["usage"]["turn"]);
        let cost = line["usage"]["cost_usd"].as_f64().unwrap_or_default();
        assert!((cost - used.dollars()).abs() < 1e-9, "{line}");
        sum.add(used);
    }
    sum
}

/// The tokens used before the last part of the run, from the header.
pub(crate) fn spent(home: &Home) -> u64 {
    let header: Value = serde_json::from_str(&home.read(".out.jsonl.rowmill/run.json")).unwrap();
    header["spent"]["tokens"].as_u64().unwrap()
}

/// The usage of the last call of a row, from a line of its telemetry.
pub(crate) fn last_call(line: &Value) -> Used {
    Used::of_telemetry(&line["usage"]["provider_attempts"].as_array().unwrap().last().unwrap()["tokens"])
}

/// The contents of the ledger.
#[derive(Default)]
pub(crate) struct Kept {
    read: usize,
    /// The turns whose answers it has, with their usage.
    pub(crate) turns: BTreeMap<Mark, Used>,
    /// Rows that ended, with the type of the error of those that failed.
    pub(crate) ended: BTreeMap<u64, Option<String>>,
}

impl Kept {
    /// Reads what was written since the last time.
    pub(crate) fn read(&mut self, home: &Home) {
        let ledger = fs::read(home.path(".out.jsonl.rowmill/ledger-1.jsonl")).unwrap_or_default();
        for line in ledger[self.read..].split_inclusive(|byte| *byte == b'\n') {
            if line.last() != Some(&b'\n') {
                break; // Torn by the kill; the resume truncates it.
            }
            self.read += line.len();
            let line: Value = serde_json::from_slice(line).unwrap();
            match line["event"].as_str().unwrap() {
                "turn" => self.turn(line["row"].as_u64().unwrap(), &line["happening"]["answered"]),
                "row_ended" => {
                    let envelope = &line["envelope"];
                    let error = envelope["error"]["type"].as_str().map(str::to_owned);
                    self.ended.insert(envelope["row_number"].as_u64().unwrap(), error);
                }
                _ => {}
            }
        }
    }

    fn turn(&mut self, row: u64, answered: &Value) {
        let completion = &answered["completion"];
        let Some(text) = completion["text"].as_str() else { return };
        let mark = match completion["calls"][0]["arguments"].as_str() {
            Some(arguments) => {
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                let mut words = arguments["label"].as_str().unwrap().split(' ').skip(1);
                (row, member(words.next().unwrap()).0, words.next().unwrap().parse().unwrap())
            }
            None => {
                let (name, calls) = member(text.split(" by ").nth(1).unwrap_or("front"));
                (row, name, calls + 1)
            }
        };
        let field = |name: &str| completion["usage"][name].as_u64().unwrap();
        let used = Used { input: field("input"), output: field("output") };
        assert!(turns(row).contains(&mark), "{mark:?}");
        self.turns.insert(mark, used);
    }

    /// Whether the answer of a turn is there, by itself or as part of a row that ended.
    pub(crate) fn has(&self, mark: &Mark) -> bool {
        self.turns.contains_key(mark) || self.ended.contains_key(&mark.0)
    }

    /// The rows that ended because a tool may have run.
    pub(crate) fn undecided(&self) -> BTreeSet<u64> {
        let undecided = self.ended.iter().filter(|(_, error)| error.as_deref() == Some("OutcomeUnknown"));
        undecided.map(|(row, _)| *row).collect()
    }
}
