//! Test support for agents: cards, simulator rules, and the messages that each agent received.

use rowmill_testkit::{RecordedCall, RecordedRole, SimulatedAnswerRules, Simulator, SimulatorScript};
use serde_json::Value;

use crate::support::{Ended, Place, scripted};

/// A simulator that answers by rules, and a folder that uses it.
pub(crate) fn ruled(rules: &Value) -> (Simulator, Place) {
    scripted(script(rules))
}

/// A script of rules.
pub(crate) fn script(rules: &Value) -> SimulatorScript {
    SimulatorScript::new().rules(SimulatedAnswerRules::read("rules", &rules.to_string()).unwrap())
}

/// Runs the cards of the folder `cards` over the rows of `rows.jsonl`, whose prompts are in `p`,
/// one after the other.
pub(crate) fn run_cards(place: &Place, flags: &[&str]) -> Ended {
    let mut fixed = vec!["--agent-card", "cards", "-p", "{{p}}", "--retries", "0"];
    if !flags.contains(&"--parallel") {
        fixed.extend(["--parallel", "1"]);
    }
    place.run_rows(&[&fixed[..], flags].concat())
}

/// Writes one row with a prompt.
pub(crate) fn write_prompt(place: &Place, prompt: &str) {
    place.write("rows.jsonl", format!("{}\n", serde_json::json!({ "p": prompt })));
}

/// Writes cards into the folder `cards`: file name, front matter, instruction.
pub(crate) fn write_cards(place: &Place, cards: &[(&str, &str, &str)]) {
    for (name, front, instruction) in cards {
        let front = if front.is_empty() { String::new() } else { format!("{front}\n") };
        place.write(&format!("cards/{name}.md"), format!("---\n{front}---\n{instruction}\n"));
    }
}

/// Lets the command find the programs that the tests themselves would find.
pub(crate) fn with_programs(place: &mut Place) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    place.set("PATH", &path.to_string_lossy());
}

/// The calls in the order in which they arrived.
pub(crate) fn call_texts(simulator: &Simulator) -> Vec<String> {
    simulator.calls().iter().map(call_text).collect()
}

/// The same, sorted, for agents that are called at the same time.
pub(crate) fn sorted_call_texts(simulator: &Simulator) -> Vec<String> {
    let mut heard = call_texts(simulator);
    heard.sort();
    heard
}

/// A call as one text: the system text in brackets, then a line for the start of each message.
pub(crate) fn call_text(call: &RecordedCall) -> String {
    let mut reported = format!("[{}]", call.system);
    for message in &call.messages {
        match message.role {
            RecordedRole::User => reported.push_str(&format!("\nuser: {}", message.text)),
            RecordedRole::Assistant => {
                reported.push_str(&format!("\nassistant: {}", message.text));
                for call in &message.calls {
                    reported.push_str(&format!("\ncall: {}{}", call.name, call.arguments));
                }
            }
            RecordedRole::Tool => {
                for answer in &message.answers {
                    let failed = if answer.is_error { " (error)" } else { "" };
                    reported.push_str(&format!("\n{}{failed}: {}", answer.tool, answer.text));
                }
            }
        }
    }
    reported
}

/// The result of every envelope.
#[track_caller]
pub(crate) fn results(place: &Place) -> Vec<Value> {
    crate::support::each(&place.json("out.jsonl"), "/result")
}

/// The error of the only row: its type and its message.
#[track_caller]
pub(crate) fn row_error(place: &Place) -> (String, String) {
    let rows = place.json("out.jsonl");
    assert_eq!(rows.len(), 1, "{rows:?}");
    let text = |field: &str| rows[0]["error"][field].as_str().unwrap_or_default().to_owned();
    (text("type"), text("message"))
}
