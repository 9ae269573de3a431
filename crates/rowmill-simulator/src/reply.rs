//! What is answered, before a protocol gives it its shape.

use rowmill_core::simulate::{seed_of, value_for};
use rowmill_types::Usage;
use serde_json::{Value, json};

use crate::exchange::chance;
use crate::fault::Fault;
use crate::prompt_cache::Prefix;
use crate::protocol::Ask;
use crate::script::{Answer, Script};

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    Length,
    Filter,
    Refusal,
}

/// An answer without its protocol.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// The text; the refusal when it is one.
    pub(crate) text: String,
    pub(crate) ending: Ending,
    pub(crate) tokens: Usage,
    /// Part of every id in the answer.
    pub(crate) id: u64,
}

const REFUSAL: &str = "I'm sorry, but I can't help with that.";

/// What a call came with, beside what it asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances {
    /// The number of the call among all calls, from 1.
    pub(crate) number: u64,
    /// The number of the call among those with this prompt, from 1.
    pub(crate) of_prompt: u64,
    /// The tokens of the prompt.
    pub(crate) input: u64,
    /// Those of them that the cache held, and those that it took.
    pub(crate) prefix: Prefix,
}

impl Reply {
    /// Makes the answer, bent by `fault` where it is about content.
    pub(crate) fn make(script: &Script, ask: &Ask, at: Circumstances, how: &Answer) -> Self {
        let fault = if let Answer::Fail(fault) = how { Some(fault) } else { None };
        let right = match how {
            Answer::Text(text) => text.clone(),
            Answer::Json(value) => value.to_string(),
            Answer::Made | Answer::Fail(_) => made(script, ask),
        };
        let (text, ending) = match fault {
            Some(Fault::Empty) => (String::new(), Ending::Complete),
            Some(Fault::Refusal) => (REFUSAL.to_owned(), Ending::Refusal),
            Some(Fault::Length) => (first_half(&right), Ending::Length),
            Some(Fault::Filter) => (String::new(), Ending::Filter),
            Some(Fault::WrongSchema) => (wrong(ask.schema.as_ref(), &right), Ending::Complete),
            // A tool's input is no text that a fence could stand in.
            Some(Fault::Fenced) if ask.tool.is_none() => (format!("```json\n{right}\n```"), Ending::Complete),
            Some(Fault::Null) => ("null".to_owned(), Ending::Complete),
            _ => (right, Ending::Complete),
        };
        let most = ask.max_tokens.filter(|_| ending == Ending::Complete);
        let (text, ending) = match most.and_then(|most| script.tokenizer.cut(&text, most)) {
            Some(cut) => (cut, Ending::Length),
            None => (text, ending),
        };
        let tokens = Usage {
            input: at.input,
            cached: at.prefix.cached.min(at.input),
            cache_write: at.prefix.written.min(at.input),
            output: script.tokenizer.count(&text),
            reasoning: 0,
        };
        let id = seed_of(&[&ask.prompt]) ^ at.number;
        Self { text, ending, tokens, id }
    }

    /// The text in the pieces that a stream sends it in.
    pub(crate) fn pieces(&self) -> Vec<String> {
        const PIECES: usize = 8;
        let letters: Vec<char> = self.text.chars().collect();
        letters.chunks(letters.len().div_ceil(PIECES).max(1)).map(|piece| piece.iter().collect()).collect()
    }
}

/// The right answer to a call: a value for its schema, or an echo.
fn made(script: &Script, ask: &Ask) -> String {
    if let Some(schema) = &ask.schema {
        return value_for(schema, seed_of(&[&ask.prompt])).to_string();
    }
    let start: String = ask.last.chars().take(200).collect();
    let mut text = format!("answer to: {start}");
    if let Some(bytes) = script.answer_bytes {
        resize(&mut text, bytes);
    }
    if let Some(lengths) = script.answer_tokens {
        let drawn = |purpose| chance(script.seed, purpose, &ask.prompt);
        text = script.tokenizer.fit(&text, lengths.draw_tokens((drawn("length"), drawn("length too"))));
    }
    if ask.wants_json { json!({"answer": text}).to_string() } else { text }
}

/// Brings `text` to `bytes` bytes, or as near below as whole characters allow.
pub(crate) fn resize(text: &mut String, bytes: usize) {
    while text.len() < bytes {
        text.push_str(" and more");
    }
    let end = text.floor_char_boundary(bytes);
    text.truncate(end);
}

fn first_half(text: &str) -> String {
    text.chars().take(text.chars().count() / 2).collect()
}

/// JSON that the schema refuses; text that is no JSON when there is no schema.
fn wrong(schema: Option<&Value>, right: &str) -> String {
    let without_schema = "this is not JSON".to_owned();
    let Some(validator) = schema.and_then(|schema| jsonschema::validator_for(schema).ok()) else {
        return without_schema;
    };
    let mut lacking = serde_json::from_str::<Value>(right).unwrap_or(Value::Null);
    if let Some(name) = schema.and_then(|schema| schema.pointer("/required/0")?.as_str())
        && let Value::Object(object) = &mut lacking
    {
        object.shift_remove(name);
    }
    let candidates =
        [lacking, json!({}), json!({"unexpected": 1}), json!([]), json!("wrong"), json!(-0.5), json!(null)];
    let found = candidates.iter().find(|candidate| !validator.is_valid(candidate));
    found.map_or(without_schema, Value::to_string)
}
