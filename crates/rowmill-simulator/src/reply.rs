//! The content of an answer, independent of the protocol.

use rowmill_schema_faker::{seed_from, simulated_value};
use rowmill_types::{Citation, TokenUsage};
use serde_json::{Value, json};

use crate::answer::SimulatedAnswer;
use crate::answer_plan::seeded_chance;
use crate::fault::SimulatedFault;
use crate::prompt_cache::PrefixUse;
use crate::protocol::{ParsedRequest, VendorProtocol};
use crate::script::SimulatorScript;
use crate::thought::SignedThought;
use crate::turn::ScriptedTurn;

/// The finish reason of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyEnding {
    Complete,
    /// The model waits for tools.
    Calls,
    /// The vendor paused the turn.
    Paused,
    Length,
    Filter,
    Refusal,
}

/// An answer without its protocol.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedReply {
    /// The text of the answer or of the refusal.
    pub(crate) text: String,
    pub(crate) ending: ReplyEnding,
    pub(crate) tokens: TokenUsage,
    /// Part of every id in the answer.
    pub(crate) id: u64,
    pub(crate) calls: Vec<MadeToolCall>,
    pub(crate) thought: Option<SignedThought>,
    /// The tool at the provider that was used.
    pub(crate) hosted: Option<String>,
    pub(crate) citations: Vec<Citation>,
}

/// A tool call in an answer.
#[derive(Debug, Clone)]
pub(crate) struct MadeToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON text; truncated if the answer is.
    pub(crate) arguments: String,
}

const REFUSAL: &str = "I'm sorry, but I can't help with that.";
const THOUGHT: &str = "Let me think about what was asked.";

/// The circumstances of a call, besides its content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallCircumstances {
    /// The number of the call among all calls, from 1.
    pub(crate) number: u64,
    /// The number of the call among those with this prompt, from 1.
    pub(crate) of_prompt: u64,
    /// The number of the call among those with this whole conversation, from 1.
    pub(crate) of_turn: u64,
    /// The tokens of the prompt.
    pub(crate) input: u64,
    /// How many of them were read from the cache, and how many were written to it.
    pub(crate) prefix: PrefixUse,
}

impl SimulatedReply {
    /// An answer with only text.
    pub(crate) fn of_text(text: String, tokens: TokenUsage) -> Self {
        Self {
            text,
            ending: ReplyEnding::Complete,
            tokens,
            id: 1,
            calls: Vec::new(),
            thought: None,
            hosted: None,
            citations: Vec::new(),
        }
    }

    /// Makes the answer, changed by the fault if that affects content.
    pub(crate) fn make(
        script: &SimulatorScript,
        ask: &ParsedRequest,
        at: CallCircumstances,
        how: &SimulatedAnswer,
    ) -> Self {
        let id = seed_from(&[&ask.prompt]) ^ at.number;
        let (text, ending, turn) = match how {
            SimulatedAnswer::Calls { text, calls } => {
                let turn = ScriptedTurn { calls: calls.clone(), ..ScriptedTurn::default() };
                (text.clone(), ReplyEnding::Complete, turn)
            }
            SimulatedAnswer::Turn(turn) => {
                let made = || if turn.calls.is_empty() { made(script, ask) } else { String::new() };
                (turn.text.clone().unwrap_or_else(made), ReplyEnding::Complete, (**turn).clone())
            }
            how => {
                let (text, ending) = bent(script, ask, how);
                (text, ending, ScriptedTurn::default())
            }
        };
        let ScriptedTurn { calls, thinks, pauses, cites, .. } = turn;
        let calls = calls.into_iter().map(|(name, arguments)| (name, arguments.to_string())).collect();
        let pauses = pauses && ask.protocol == VendorProtocol::Messages;
        let hosted = ask.hosted.first().filter(|_| !cites.is_empty() || pauses).cloned();
        let mut reply = Self {
            thought: thinks.then(|| SignedThought { text: THOUGHT.to_owned(), id }),
            citations: if hosted.is_some() { cites } else { Vec::new() },
            hosted,
            id,
            ..Self::of_text(text, TokenUsage::default())
        };
        reply.ending = ending;
        let left = ask.max_tokens.map(|most| most.saturating_sub(reply.thought_tokens(script)));
        if let Some(left) = left {
            // Thoughts come first, and may use up all tokens.
            reply.cut_text(script, left);
        }
        reply.make_calls(ask, calls);
        if let Some(left) = left {
            reply.cut_calls(script, left);
        }
        if pauses && reply.ending == ReplyEnding::Complete {
            reply.ending = ReplyEnding::Paused;
        }
        reply.count(script, at);
        reply
    }

    fn thought_tokens(&self, script: &SimulatorScript) -> u64 {
        self.thought.as_ref().map_or(0, |thought| script.tokenizer.count(&thought.text))
    }

    /// Truncates the text to the remaining tokens.
    fn cut_text(&mut self, script: &SimulatorScript, left: u64) {
        if let Some(cut) = script.tokenizer.truncate(&self.text, left) {
            self.text = cut;
            if self.ending == ReplyEnding::Complete {
                self.ending = ReplyEnding::Length;
            }
        }
    }

    /// Truncates the calls to the tokens that the text leaves; a truncated call is the last one.
    fn cut_calls(&mut self, script: &SimulatorScript, left: u64) {
        let mut left = left.saturating_sub(script.tokenizer.count(&self.text));
        let mut kept = 0;
        for call in &mut self.calls {
            kept += 1;
            if let Some(cut) = script.tokenizer.truncate(&call.arguments, left) {
                call.arguments = cut;
                self.ending = ReplyEnding::Length;
                break;
            }
            left = left.saturating_sub(script.tokenizer.count(&call.arguments));
        }
        self.calls.truncate(kept);
    }

    /// Makes the calls, or the call that the request requires with the text as its arguments.
    fn make_calls(&mut self, ask: &ParsedRequest, mut calls: Vec<(String, String)>) {
        let is_text =
            matches!(self.ending, ReplyEnding::Complete | ReplyEnding::Length) && !self.text.is_empty();
        if let Some(tool) = ask.tool.as_ref().filter(|_| is_text && calls.is_empty()) {
            calls.push((tool.clone(), std::mem::take(&mut self.text)));
        }
        if !calls.is_empty() && self.ending == ReplyEnding::Complete {
            self.ending = ReplyEnding::Calls;
        }
        let made = calls.into_iter().enumerate().map(|(index, (name, arguments))| MadeToolCall {
            id: ask.protocol.call_id(self.id, index),
            name,
            arguments,
        });
        self.calls = made.collect();
    }

    fn count(&mut self, script: &SimulatorScript, at: CallCircumstances) {
        let count = |text: &str| script.tokenizer.count(text);
        let reasoning = self.thought_tokens(script);
        let called: u64 = self.calls.iter().map(|call| count(&call.arguments)).sum();
        self.tokens = TokenUsage {
            input: at.input,
            cached: at.prefix.cached.min(at.input),
            cache_write: at.prefix.written.min(at.input),
            output: count(&self.text) + called + reasoning,
            reasoning,
        };
    }
}

/// A text in the parts that a stream sends.
pub(crate) fn stream_pieces(text: &str) -> Vec<String> {
    const PIECES: usize = 8;
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(letters.len().div_ceil(PIECES).max(1)).map(|piece| piece.iter().collect()).collect()
}

/// The text of an answer, changed by a fault if there is one.
fn bent(script: &SimulatorScript, ask: &ParsedRequest, how: &SimulatedAnswer) -> (String, ReplyEnding) {
    let right = match how {
        SimulatedAnswer::Text(text) => text.clone(),
        SimulatedAnswer::Json(value) => value.to_string(),
        _ => made(script, ask),
    };
    let SimulatedAnswer::Fail(fault) = how else { return (right, ReplyEnding::Complete) };
    match fault {
        SimulatedFault::Empty => (String::new(), ReplyEnding::Complete),
        SimulatedFault::Refusal => (REFUSAL.to_owned(), ReplyEnding::Refusal),
        SimulatedFault::Length => (first_half(&right), ReplyEnding::Length),
        SimulatedFault::Filter => (String::new(), ReplyEnding::Filter),
        SimulatedFault::WrongSchema => (wrong(ask.schema.as_ref(), &right), ReplyEnding::Complete),
        // A tool's input is not a text that could contain a fence.
        SimulatedFault::Fenced if ask.tool.is_none() => {
            (format!("```json\n{right}\n```"), ReplyEnding::Complete)
        }
        SimulatedFault::Null => ("null".to_owned(), ReplyEnding::Complete),
        _ => (right, ReplyEnding::Complete),
    }
}

/// The correct answer to a call: a value for its schema, or an echo of the prompt.
fn made(script: &SimulatorScript, ask: &ParsedRequest) -> String {
    if let Some(schema) = &ask.schema {
        // A schema that needs too large a value was rejected before, unless a fault comes first.
        return simulated_value(schema, seed_from(&[&ask.prompt])).unwrap_or_default().to_string();
    }
    let start: String = ask.last.chars().take(200).collect();
    let mut text = format!("answer to: {start}");
    if let Some(bytes) = script.answer_bytes {
        resize_text(&mut text, bytes);
    }
    if let Some(lengths) = script.answer_tokens {
        let drawn = |purpose| seeded_chance(script.seed, purpose, &ask.prompt);
        text = script.tokenizer.resize_to(&text, lengths.draw_tokens((drawn("length"), drawn("length too"))));
    }
    if ask.wants_json { json!({"answer": text}).to_string() } else { text }
}

/// Resizes `text` to `bytes` bytes, or to the nearest smaller size with whole characters.
pub(crate) fn resize_text(text: &mut String, bytes: usize) {
    while text.len() < bytes {
        text.push_str(" and more");
    }
    let end = text.floor_char_boundary(bytes);
    text.truncate(end);
}

fn first_half(text: &str) -> String {
    text.chars().take(text.chars().count() / 2).collect()
}

/// JSON that violates the schema; text that is not JSON if there is no schema.
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
