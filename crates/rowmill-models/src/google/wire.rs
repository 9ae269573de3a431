//! The Gemini API: requests out, answers in. No I/O.

use std::borrow::Cow;

use rowmill_types::{Finish, Message, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::body::{Parts, Template, put};
use crate::build::Setup;
use crate::error_body::ErrorBody;
use crate::files::{Shape, Uploaded};
use crate::reading::{Assembly, Reading, Step, Unread, Wire, keep, no_error};
use crate::settings::{Key, Setting};
use crate::sse::Event;

/// The translation of the Gemini API.
#[derive(Debug)]
pub(crate) struct GoogleWire {
    template: Template,
}

impl GoogleWire {
    pub(crate) fn new(setup: &Setup) -> Self {
        let settings = &setup.model.settings;
        let mut before = Map::new();
        let instruction = setup.instruction.as_ref().map(|text| json!({"parts": [{"text": text}]}));
        put(&mut before, "systemInstruction", instruction);
        let mut config = Map::new();
        put(&mut config, "temperature", settings.number(Key::Temperature));
        put(&mut config, "topP", settings.number(Key::TopP));
        put(&mut config, "topK", settings.integer(Key::TopK));
        put(&mut config, "presencePenalty", settings.number(Key::PresencePenalty));
        put(&mut config, "frequencyPenalty", settings.number(Key::FrequencyPenalty));
        put(&mut config, "maxOutputTokens", settings.integer(Key::MaxTokens));
        put(&mut config, "seed", settings.integer(Key::Seed));
        put(&mut config, "stopSequences", settings.texts(Key::Stop).map(ToOwned::to_owned));
        put(&mut config, "thinkingConfig", thinking(settings.value(Key::Reasoning), &setup.model.model));
        if let Some(schema) = &setup.schema {
            put(&mut config, "responseMimeType", Some("application/json"));
            put(&mut config, "responseJsonSchema", Some(schema.clone()));
        }
        let mut after = Map::new();
        put(&mut after, "generationConfig", (!config.is_empty()).then_some(Value::Object(config)));
        Self {
            template: Template::new(Parts {
                before,
                field: "contents",
                first: None,
                after,
                shape: Shape::Google,
            }),
        }
    }
}

/// Models up to 2.5 count a budget of tokens, later ones take a level.
fn thinking(setting: Option<&Setting>, model: &str) -> Option<Value> {
    let budgeted = model.contains("gemini-2");
    let budget = |tokens: i64| Some(json!({"thinkingBudget": tokens}));
    match setting? {
        Setting::Integer(tokens) => budget(*tokens),
        Setting::Word("none" | "off") => budget(0),
        Setting::Word("auto" | "on") => budget(-1),
        Setting::Word(level) if budgeted => budget(match *level {
            "medium" => 8192,
            "high" => 24_576,
            _ => 1024,
        }),
        Setting::Word(level) => Some(json!({"thinkingLevel": level})),
        _ => None,
    }
}

impl Wire for GoogleWire {
    type Assembly = GoogleAssembly;

    fn body(&self, messages: &[Message], uploaded: &Uploaded) -> Vec<u8> {
        self.template.body(messages, uploaded)
    }

    fn read(&self, body: &[u8]) -> Result<Reading, Unread> {
        let mut assembly = GoogleAssembly::default();
        assembly.take_chunk(serde_json::from_slice(body)?)?;
        if assembly.finish.is_none() && !assembly.has_candidate {
            return Err(Unread::Malformed("the answer has no candidates".to_owned()));
        }
        assembly.finish()
    }

    fn assembly(&self) -> GoogleAssembly {
        GoogleAssembly::default()
    }
}

/// Puts chunks together; a whole answer is one chunk.
#[derive(Debug, Default)]
pub(crate) struct GoogleAssembly {
    text: String,
    has_candidate: bool,
    finish: Option<Finish>,
    usage: Option<Box<RawValue>>,
    model: Option<String>,
}

impl GoogleAssembly {
    fn take_chunk(&mut self, chunk: Chunk<'_>) -> Result<Step, Unread> {
        no_error(chunk.error)?;
        if let Some(usage) = chunk.usage {
            self.usage = keep(Some(usage));
        }
        if let Some(model) = chunk.model {
            self.model = Some(model.into_owned());
        }
        if let Some(reason) = chunk.feedback.and_then(|feedback| feedback.block_reason) {
            self.finish = Some(Finish::Filtered);
            self.text = format!("the prompt was blocked: {reason}");
            return Ok(Step::Quiet);
        }
        let Some(candidate) = chunk.candidates.unwrap_or_default().into_iter().next() else {
            return Ok(Step::Quiet);
        };
        self.has_candidate = true;
        let before = self.text.len();
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            if part.thought != Some(true) {
                self.text.push_str(part.text.as_deref().unwrap_or_default());
            }
        }
        if let Some(reason) = candidate.finish_reason {
            self.finish = Some(finish(&reason)?);
        }
        Ok(if self.text.len() > before { Step::Content } else { Step::Quiet })
    }
}

impl Assembly for GoogleAssembly {
    fn take(&mut self, event: &Event) -> Result<Step, Unread> {
        self.take_chunk(serde_json::from_str(&event.data)?)
    }

    /// The last chunk is known by its reason to finish; usage may follow in the same or another one.
    fn ended(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(self) -> Result<Reading, Unread> {
        Ok(Reading {
            text: self.text,
            finish: self.finish.unwrap_or(Finish::Complete),
            usage: usage(self.usage.as_deref()),
            raw_usage: self.usage,
            model: self.model,
            service_tier: None,
        })
    }
}

fn finish(reason: &str) -> Result<Finish, Unread> {
    match reason {
        "STOP" | "FINISH_REASON_UNSPECIFIED" => Ok(Finish::Complete),
        "MAX_TOKENS" => Ok(Finish::Length),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Ok(Finish::Filtered),
        // What came before such an end is no answer.
        other => Err(Unread::Error(ErrorBody::known(
            "server_error",
            &format!("the provider ended the answer with `{other}`"),
        ))),
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default, borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(default, borrow, rename = "promptFeedback")]
    feedback: Option<Feedback<'a>>,
    #[serde(default, borrow, rename = "usageMetadata")]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow, rename = "modelVersion")]
    model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Candidate<'a> {
    #[serde(default, borrow)]
    content: Option<Content<'a>>,
    #[serde(default, borrow, rename = "finishReason")]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(default, borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default)]
    thought: Option<bool>,
}

#[derive(Deserialize)]
struct Feedback<'a> {
    #[serde(default, borrow, rename = "blockReason")]
    block_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default)]
    cached_content_token_count: Option<u64>,
    #[serde(default)]
    candidates_token_count: Option<u64>,
    #[serde(default)]
    thoughts_token_count: Option<u64>,
}

/// The tokens. Gemini counts thoughts apart; here they are a part of the output.
fn usage(raw: Option<&RawValue>) -> Option<Usage> {
    let tokens: Tokens = serde_json::from_str(raw?.get()).ok()?;
    let reasoning = tokens.thoughts_token_count.unwrap_or(0);
    Some(Usage {
        input: tokens.prompt_token_count?.saturating_add(tokens.tool_use_prompt_token_count.unwrap_or(0)),
        cached: tokens.cached_content_token_count.unwrap_or(0),
        cache_write: 0,
        output: tokens.candidates_token_count.unwrap_or(0).saturating_add(reasoning),
        reasoning,
    })
}
