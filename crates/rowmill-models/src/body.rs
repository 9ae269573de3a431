//! Request bodies: the part that all rows share is written once, and each call adds its messages.

use rowmill_types::Message;
use serde_json::{Map, Value};

use crate::files::{MessageShape, UploadedFiles, message_file_bytes};
use crate::messages::{MessageManner, extra_bytes, is_plain, result_group_length, write_group, write_plain};

/// A request body with a gap for the messages.
#[derive(Debug, Clone)]
pub(crate) struct BodyTemplate {
    prefix: Vec<u8>,
    suffix: Vec<u8>,
    cap: CapGap,
    shape: MessageShape,
    manner: MessageManner,
}

/// The field that limits the tokens of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CapField {
    /// The object that contains it, if that is not the body itself.
    pub(crate) within: Option<&'static str>,
    /// Its name.
    pub(crate) name: &'static str,
}

/// The position at which a call inserts its own limit on the answer.
#[derive(Debug, Clone)]
struct CapGap {
    half: BodyHalf,
    /// The position of the default limit, which the call's own limit replaces.
    start: usize,
    end: usize,
    /// The text before and after the limit.
    before: String,
    after: &'static str,
}

/// One half of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyHalf {
    /// The part before the messages.
    Prefix,
    /// The part after the messages.
    Suffix,
}

/// The parts that a [`BodyTemplate`] is built from.
#[derive(Debug)]
pub(crate) struct BodyParts<'a> {
    /// The fields before the messages.
    pub(crate) before: Map<String, Value>,
    /// The name of the field that holds the messages.
    pub(crate) field: &'a str,
    /// A message that every call starts with.
    pub(crate) first: Option<Value>,
    /// The fields after the messages.
    pub(crate) after: Map<String, Value>,
    /// Which field limits the answer, or would if it were present.
    pub(crate) cap: CapField,
    /// The form in which messages are written.
    pub(crate) shape: MessageShape,
    /// What differs between models of one protocol.
    pub(crate) manner: MessageManner,
}

impl BodyTemplate {
    pub(crate) fn new(parts: BodyParts<'_>) -> Self {
        let mut prefix = String::from("{");
        let mut cap = None;
        for (name, value) in &parts.before {
            let gap = write_field(&mut prefix, name, value, parts.cap);
            cap = cap.or(gap.map(|gap| CapGap { half: BodyHalf::Prefix, ..gap }));
            prefix.push(',');
        }
        prefix.push_str(&format!("{}:[", Value::from(parts.field)));
        if let Some(first) = parts.first {
            prefix.push_str(&format!("{first},"));
        }
        let mut suffix = String::from("]");
        for (name, value) in &parts.after {
            suffix.push(',');
            cap = write_field(&mut suffix, name, value, parts.cap).or(cap);
        }
        suffix.push('}');
        let (prefix, suffix) = (prefix.into_bytes(), suffix.into_bytes());
        let cap = cap.unwrap_or_else(|| CapGap::of_new_field(parts.cap));
        Self { prefix, suffix, cap, shape: parts.shape, manner: parts.manner }
    }

    /// The body of one call, with its files except those that are uploaded. `cap` limits its answer and
    /// replaces the default limit.
    pub(crate) fn body(&self, messages: &[Message], uploaded: &UploadedFiles, cap: Option<u64>) -> Vec<u8> {
        // An extra eighth leaves room for the usual escapes.
        let size = |message: &Message| {
            message.text.len() * 9 / 8 + 64 + message_file_bytes(message, uploaded) + extra_bytes(message)
        };
        let text: usize = messages.iter().map(size).sum();
        let mut body = Vec::with_capacity(self.prefix.len() + text + self.suffix.len());
        self.write_half(&mut body, BodyHalf::Prefix, cap);
        let mut rest = messages;
        while let Some(message) = rest.first() {
            if rest.len() < messages.len() {
                body.push(b',');
            }
            let (together, after) = rest.split_at(result_group_length(rest));
            rest = after;
            if is_plain(message) {
                write_plain(&mut body, self.shape, message);
            } else {
                write_group(&mut body, self.shape, &self.manner, together, uploaded);
            }
        }
        self.write_half(&mut body, BodyHalf::Suffix, cap);
        body
    }

    fn write_half(&self, body: &mut Vec<u8>, half: BodyHalf, cap: Option<u64>) {
        let text = if half == BodyHalf::Prefix { &self.prefix } else { &self.suffix };
        let gap = &self.cap;
        match (cap.filter(|_| gap.half == half), text.get(..gap.start), text.get(gap.end..)) {
            (Some(cap), Some(start), Some(rest)) => {
                body.extend_from_slice(start);
                body.extend_from_slice(format!("{}{cap}{}", gap.before, gap.after).as_bytes());
                body.extend_from_slice(rest);
            }
            _ => body.extend_from_slice(text),
        }
    }
}

impl CapGap {
    /// The position in a body that has neither the field nor the object around it: first after the messages,
    /// because every body contains their closing bracket.
    fn of_new_field(field: CapField) -> Self {
        let CapField { within, name } = field;
        let (before, after) = match within {
            Some(object) => (format!(",\"{object}\":{{\"{name}\":"), "}"),
            None => (format!(",\"{name}\":"), ""),
        };
        Self { half: BodyHalf::Suffix, start: 1, end: 1, before, after }
    }
}

/// Writes a field; returns where a limit on the answer goes, if the field contains it.
fn write_field(text: &mut String, name: &str, value: &Value, cap: CapField) -> Option<CapGap> {
    let gap = |start, end| CapGap { half: BodyHalf::Suffix, start, end, before: String::new(), after: "" };
    text.push_str(&format!("{}:", Value::from(name)));
    let start = text.len();
    let Some(object) = value.as_object().filter(|_| cap.within == Some(name)) else {
        text.push_str(&value.to_string());
        return (cap.within.is_none() && cap.name == name).then(|| gap(start, text.len()));
    };
    let inner = CapField { within: None, ..cap };
    let mut found = None;
    for (index, (name, value)) in object.iter().enumerate() {
        text.push(if index == 0 { '{' } else { ',' });
        found = write_field(text, name, value, inner).or(found);
    }
    text.push('}');
    let new = CapGap { before: format!("\"{}\":", cap.name), after: ",", ..gap(start + 1, start + 1) };
    Some(found.unwrap_or(new))
}

/// Writes `text` as a JSON string.
pub(crate) fn write_text(body: &mut Vec<u8>, text: &str) {
    let written = serde_json::to_writer(body, text);
    debug_assert!(written.is_ok(), "a string is always JSON, and a vector takes it");
}

/// Adds a field if there is a value for it.
pub(crate) fn insert_if_some(fields: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::anthropic::wire::AnthropicWire;
    use crate::build_model::ModelSetup;
    use crate::chat::wire::ChatWire;
    use crate::google::wire::GoogleWire;
    use crate::http_model::AnswerDelivery;
    use crate::provider::ProviderProtocol;
    use crate::responses::wire::{RequestCarrier, ResponsesWire};
    use crate::test_support::{setup, with_tools};
    use crate::wire_protocol::WireProtocol;

    fn body(setup: &ModelSetup, cap: Option<u64>) -> Value {
        let messages = [Message::user("how long?")];
        let body = match setup.connection.protocol {
            ProviderProtocol::Chat => {
                ChatWire::new(setup, AnswerDelivery::Stream).body(&messages, &UploadedFiles::NONE, cap)
            }
            ProviderProtocol::Responses => {
                ResponsesWire::new(setup, RequestCarrier::Socket).body(&messages, &UploadedFiles::NONE, cap)
            }
            ProviderProtocol::Anthropic => AnthropicWire::new(setup, AnswerDelivery::Whole).unwrap().body(
                &messages,
                &UploadedFiles::NONE,
                cap,
            ),
            ProviderProtocol::Google => {
                GoogleWire::new(setup).unwrap().body(&messages, &UploadedFiles::NONE, cap)
            }
            ProviderProtocol::Builtin => panic!("it has no bodies"),
        };
        serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{error}: {body:?}"))
    }

    #[test]
    fn every_protocol_says_how_long_one_answer_may_become_and_changes_nothing_else() {
        for (model, place) in [
            ("openai.m", "/max_completion_tokens"),
            ("groq.m?temperature=0.5", "/max_completion_tokens"),
            ("generic.m", "/max_tokens"),
            ("openrouter.m", "/max_tokens"),
            ("responses.gpt-5", "/max_output_tokens"),
            ("responses.gpt-5?temperature=1&reasoning=low", "/max_output_tokens"),
            ("anthropic.claude-haiku-4-5", "/max_tokens"),
            ("anthropic.claude-opus-4-5?reasoning=2000", "/max_tokens"),
            ("google.gemini-2.5-flash", "/generationConfig/maxOutputTokens"),
            ("google.gemini-2.5-flash?temperature=0", "/generationConfig/maxOutputTokens"),
        ] {
            for setup in [
                setup(model, None, None),
                setup(model, Some("\"max_tokens\":1, say"), None),
                with_tools(model, None),
            ] {
                let plain = body(&setup, None);
                let capped = body(&setup, Some(7_168));
                assert_eq!(capped.pointer(place), Some(&json!(7_168)), "{model}: {capped}");
                let mut same = capped.clone();
                let (parent, name) = place.rsplit_once('/').unwrap();
                let fields = same.pointer_mut(parent).unwrap().as_object_mut().unwrap();
                match plain.pointer(place) {
                    Some(before) => fields.insert(name.to_owned(), before.clone()),
                    None => fields.remove(name),
                };
                if plain.get("generationConfig").is_none() {
                    same.as_object_mut().unwrap().remove("generationConfig");
                }
                assert_eq!(same, plain, "{model}");
            }
        }
    }
}
