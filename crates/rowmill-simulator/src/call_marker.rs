//! Prompt markers that make the model call tools, such as `***CALL_TOOL search {"query": "x"}`.
//!
//! This lets a black-box test or a benchmark put the script into its rows.

use serde_json::{Value, json};

use crate::answer::SimulatedAnswer;
use crate::protocol::ParsedRequest;

const CALL: &str = "***CALL_TOOL ";
const TURNS: &str = "***TURNS ";

/// The calls that the lines at the start of a prompt request for this turn.
///
/// `***CALL_TOOL name {json}` calls a tool at the first turn; several such lines call several at once.
/// `***TURNS n name {json}` calls a tool at n turns in a row. If no tools are offered, nothing is called.
pub(crate) fn calls_for(ask: &ParsedRequest) -> Option<SimulatedAnswer> {
    if !ask.prompt.trim_start().starts_with("***") || ask.tools.is_empty() {
        return None;
    }
    let lines = ask.prompt.lines().map(str::trim).skip_while(|line| line.is_empty());
    let mut calls = Vec::new();
    let mut turns = 1;
    for line in lines {
        if let Some(call) = line.strip_prefix(CALL) {
            calls.push(parse(call)?);
        } else if let Some((count, call)) =
            line.strip_prefix(TURNS).and_then(|rest| rest.trim().split_once(' '))
        {
            turns = count.parse().ok()?;
            calls.push(parse(call)?);
        } else {
            break;
        }
    }
    let is_due = !calls.is_empty() && ask.turns_with_calls() < turns;
    is_due.then(|| SimulatedAnswer::Calls { text: String::new(), calls })
}

/// Parses `name {json}`; without JSON there are no arguments.
pub(crate) fn parse(text: &str) -> Option<(String, Value)> {
    let text = text.trim();
    let (name, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let arguments = match arguments.trim() {
        "" => json!({}),
        arguments => serde_json::from_str::<Value>(arguments).ok().filter(Value::is_object)?,
    };
    (!name.is_empty()).then(|| (name.to_owned(), arguments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::RecordedToolSpec;

    fn ask(prompt: &str) -> ParsedRequest {
        let tool = RecordedToolSpec { name: "find".into(), description: String::new(), schema: Value::Null };
        let mut ask = ParsedRequest { tools: vec![tool], ..ParsedRequest::default() };
        ask.say_user(prompt.to_owned());
        ask
    }

    fn called(ask: &ParsedRequest) -> Vec<(String, Value)> {
        match calls_for(ask) {
            Some(SimulatedAnswer::Calls { calls, .. }) => calls,
            _ => Vec::new(),
        }
    }

    #[test]
    fn lines_at_the_start_are_calls_and_the_rest_is_not() {
        let found =
            called(&ask("***CALL_TOOL find {\"n\": 1}\n***CALL_TOOL give\nText\n***CALL_TOOL late {}"));
        assert_eq!(found, [("find".to_owned(), json!({"n": 1})), ("give".to_owned(), json!({}))]);
        for other in [
            "say ***CALL_TOOL find",
            "***CALL_TOOL find {broken",
            "***CALL_TOOL find [1]",
            "***TURNS x find",
            "",
        ] {
            assert_eq!(called(&ask(other)), [], "{other}");
        }
        assert_eq!(called(&ParsedRequest { tools: Vec::new(), ..ask("***CALL_TOOL find {}") }), []);
    }
}
