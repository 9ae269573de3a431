//! The protocols that the simulator supports: parsing requests, and the format of answers and errors.

mod chat;
mod content;
mod google;
mod messages;
mod parsed_request;
mod refusal;
pub(crate) mod responses;
mod tools;

use serde_json::Value;

use self::content::ContentReader;
use self::google::as_json_schema;
pub(crate) use self::parsed_request::ParsedRequest;
pub(crate) use self::refusal::RequestRefusal;
use crate::outgoing_answer::OutgoingAnswer;
use crate::recorder::RecordedRequest;
use crate::reply::SimulatedReply;
use crate::stored_uploads::StoredUploads;
use crate::thought::ThoughtRegistry;

/// A vendor's protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum VendorProtocol {
    #[default]
    Chat,
    Responses,
    Messages,
    Google,
}

impl VendorProtocol {
    /// The protocol of a path.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::Chat),
            "/v1/responses" => Some(Self::Responses),
            "/v1/messages" => Some(Self::Messages),
            _ => google::model_and_method(path).map(|_| Self::Google),
        }
    }

    /// Parses a request.
    pub(crate) fn read_request(
        self,
        request: &RecordedRequest,
        stored: &StoredUploads,
        thoughts: &ThoughtRegistry,
    ) -> Result<ParsedRequest, RequestRefusal> {
        let body: Value = serde_json::from_slice(&request.body)
            .map_err(|error| RequestRefusal::invalid(format!("We could not parse the JSON body: {error}")))?;
        self.read_body(&body, request, stored, thoughts)
    }

    /// Parses the body of a request; its path and headers are those of `request`.
    pub(crate) fn read_body(
        self,
        body: &Value,
        request: &RecordedRequest,
        stored: &StoredUploads,
        thoughts: &ThoughtRegistry,
    ) -> Result<ParsedRequest, RequestRefusal> {
        if !body.is_object() {
            return Err(RequestRefusal::invalid("The JSON body must be an object."));
        }
        let reader = ContentReader { protocol: self, request, stored, thoughts };
        match self {
            Self::Chat => chat::read_chat_request(body, reader),
            Self::Responses => responses::read_responses_request(body, reader),
            Self::Messages => messages::read_messages_request(body, reader),
            Self::Google => google::read_google_request(&request.path, body, reader),
        }
    }

    /// Rejects a body that is larger than the vendor accepts, or than `most` if that is set.
    pub(crate) fn check_size(
        self,
        request: &RecordedRequest,
        most: Option<usize>,
    ) -> Result<(), RequestRefusal> {
        let (usual, status, message) = match self {
            Self::Chat | Self::Responses => (50 << 20, 413, "Request too large."),
            Self::Messages => (32 << 20, 413, "Request exceeds the maximum size"),
            Self::Google => (20 << 20, 400, "Request payload size exceeds the limit: 20971520 bytes."),
        };
        if request.body.len() <= most.unwrap_or(usual) {
            Ok(())
        } else {
            Err(RequestRefusal::new(status, message))
        }
    }

    /// The API key of a request.
    pub(crate) fn key(self, request: &RecordedRequest) -> Option<&str> {
        let bearer = || request.header("authorization")?.strip_prefix("Bearer ");
        match self {
            // Azure's clients send a header of their own.
            Self::Chat | Self::Responses => bearer().or_else(|| request.header("api-key")),
            // The vendor's own clients send it in either form, depending on their version.
            Self::Messages => request.header("x-api-key").or_else(bearer),
            Self::Google => request
                .header("x-goog-api-key")
                .or_else(|| request.path.split(['?', '&']).find_map(|part| part.strip_prefix("key="))),
        }
    }

    /// Checks the headers that the vendor requires, and the key.
    pub(crate) fn check_headers(
        self,
        request: &RecordedRequest,
        key: Option<&str>,
    ) -> Result<(), RequestRefusal> {
        let given = self.key(request);
        if self == Self::Messages && given.is_none() {
            return Err(RequestRefusal::new(401, "x-api-key header is required"));
        }
        if self == Self::Messages && request.header("anthropic-version").is_none() {
            return Err(RequestRefusal::invalid("anthropic-version: header is required"));
        }
        match key {
            Some(key) if given != Some(key) => {
                let message = match self {
                    Self::Messages => "invalid x-api-key".into(),
                    Self::Google => "API key not valid. Please pass a valid API key.".into(),
                    // Vendors repeat the key, which clients must not pass on.
                    _ => format!("Incorrect API key provided: {}.", given.unwrap_or("none")),
                };
                Err(RequestRefusal { code: Some("invalid_api_key"), ..RequestRefusal::new(401, message) })
            }
            _ => Ok(()),
        }
    }

    /// Checks that the model is one of `models`, unless that is empty.
    pub(crate) fn check_model(self, model: &str, models: &[String]) -> Result<(), RequestRefusal> {
        if models.is_empty() || models.iter().any(|known| known == model) {
            return Ok(());
        }
        let message = match self {
            Self::Messages => format!("model: {model}"),
            Self::Google => format!("models/{model} is not found for API version v1beta."),
            _ => format!("The model `{model}` does not exist or you do not have access to it."),
        };
        Err(RequestRefusal { code: Some("model_not_found"), ..RequestRefusal::new(404, message) })
    }

    /// Whether the vendor reports a filtered answer as a rejected request, which it does not charge for.
    pub(crate) fn refuses_filtered(self) -> bool {
        self == Self::Messages
    }

    /// The id of a call in an answer.
    pub(crate) fn call_id(self, answer: u64, index: usize) -> String {
        let start = match self {
            Self::Chat | Self::Responses => "call_",
            Self::Messages => "toolu_",
            Self::Google => "",
        };
        format!("{start}{answer:016x}{index:02x}")
    }

    /// The vendor's error body.
    pub(crate) fn error(self, refused: &RequestRefusal) -> Value {
        match self {
            Self::Chat | Self::Responses => chat::error(refused),
            Self::Messages => messages::error(refused),
            Self::Google => google::error(refused),
        }
    }

    /// The vendor's error body for an error status.
    pub(crate) fn status_error(self, status: u16) -> Value {
        self.error(&RequestRefusal::from_status(status))
    }

    /// The answer in the vendor's format.
    pub(crate) fn render_answer(
        self,
        ask: &ParsedRequest,
        reply: &SimulatedReply,
        headers: &[(String, String)],
    ) -> OutgoingAnswer {
        let mut headers = headers.to_vec();
        let name = if self == Self::Messages { "request-id" } else { "x-request-id" };
        headers.push((name.to_owned(), format!("req_{:016x}", reply.id)));
        match self {
            Self::Chat if ask.stream => OutgoingAnswer::events(&headers, &chat::events(ask, reply)),
            Self::Chat => OutgoingAnswer::json(200, &headers, &chat::plain(ask, reply)),
            Self::Responses if ask.stream => OutgoingAnswer::events(&headers, &responses::sse(ask, reply)),
            Self::Responses => OutgoingAnswer::json(200, &headers, &responses::plain(ask, reply)),
            Self::Messages => messages::render(ask, reply, &headers),
            Self::Google => google::render(ask, reply, &headers),
        }
    }
}

/// The text of a content field: a string, or parts with a `text` each.
fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text").or_else(|| part.get("content"))?.as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

/// The text in a field.
fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field)?.as_str()
}

/// Arguments in a string: JSON, or a string if they are not JSON.
fn arguments_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The model named in a body.
fn model_of(body: &Value) -> Result<String, RequestRefusal> {
    match body.get("model") {
        Some(Value::String(model)) if !model.is_empty() => Ok(model.clone()),
        _ => Err(RequestRefusal::invalid("you must provide a model parameter")),
    }
}
