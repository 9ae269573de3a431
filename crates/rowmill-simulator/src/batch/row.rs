//! The rows of a job in the vendors' shapes.

use serde_json::Value;

use super::vendor::BatchVendor;
use crate::protocol::{ParsedRequest, RequestRefusal, VendorProtocol};
use crate::recorder::RecordedRequest;
use crate::simulator_state::SimulatorState;

/// A row of a job.
#[derive(Debug)]
pub(crate) struct BatchRow {
    /// The client's id of the row.
    pub(crate) id: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) body: Value,
    /// What Google returns with the row.
    pub(crate) metadata: Value,
}

/// What all rows of a job have in common.
#[derive(Debug)]
pub(crate) struct RowContext {
    pub(crate) vendor: BatchVendor,
    pub(crate) protocol: VendorProtocol,
    /// The model of the job, for the vendors whose rows name none.
    pub(crate) model: Option<String>,
    /// A request with the path and the headers that count for every row, and no body.
    pub(crate) request: RecordedRequest,
}

impl BatchRow {
    /// Parses a row; the error names what is wrong.
    pub(crate) fn read(vendor: BatchVendor, line: &[u8]) -> Result<Self, &'static str> {
        let Ok(Value::Object(mut row)) = serde_json::from_slice(line) else {
            return Err("This line is not parseable as valid JSON.");
        };
        let mut take = |name: &str| row.shift_remove(name).unwrap_or_default();
        let text = |value: Value| value.as_str().map(str::to_owned);
        let (id, body, metadata) = match vendor {
            BatchVendor::Gemini => {
                let (key, metadata) = (text(take("key")), take("metadata"));
                let inline = metadata.get("key").and_then(Value::as_str).map(str::to_owned);
                (key.or(inline), take("request"), metadata)
            }
            BatchVendor::Anthropic => (text(take("custom_id")), take("params"), Value::Null),
            _ => (text(take("custom_id")), take("body"), Value::Null),
        };
        let needs_id = !matches!(vendor, BatchVendor::Gemini | BatchVendor::Mistral);
        if needs_id && id.is_none() {
            return Err("Missing required parameter: 'custom_id'.");
        }
        if !body.is_object() {
            return Err("Missing required parameter: 'body'.");
        }
        Ok(Self { id, url: text(take("url")), method: text(take("method")), body, metadata })
    }
}

impl RowContext {
    /// The context of the rows of a job at this endpoint; `None` if the simulator does not have it.
    pub(crate) fn new(
        vendor: BatchVendor,
        endpoint: &str,
        model: Option<&str>,
        headers: &[(String, String)],
    ) -> Option<Self> {
        let protocol = match (vendor, endpoint) {
            (BatchVendor::Gemini, _) => VendorProtocol::Google,
            (BatchVendor::Anthropic, _) => VendorProtocol::Messages,
            (_, "/v1/chat/completions") | (BatchVendor::Azure, "/chat/completions") => VendorProtocol::Chat,
            (BatchVendor::OpenAi | BatchVendor::Azure, "/v1/responses")
            | (BatchVendor::Azure, "/responses") => VendorProtocol::Responses,
            _ => return None,
        };
        let path = match vendor {
            BatchVendor::Gemini => format!("/v1beta/models/{}:generateContent", model.unwrap_or_default()),
            _ => endpoint.to_owned(),
        };
        let request =
            RecordedRequest { method: "POST".to_owned(), path, headers: headers.to_vec(), body: Vec::new() };
        Some(Self { vendor, protocol, model: model.map(str::to_owned), request })
    }
}

impl SimulatorState {
    /// Parses the request in a row like that of a live call.
    pub(crate) fn read_row(
        &self,
        context: &RowContext,
        row: &mut BatchRow,
    ) -> Result<ParsedRequest, RequestRefusal> {
        if context.vendor == BatchVendor::Mistral
            && let (Some(model), Value::Object(body)) = (&context.model, &mut row.body)
        {
            body.entry("model").or_insert_with(|| Value::String(model.clone()));
        }
        let mut ask =
            context.protocol.read_body(&row.body, &context.request, &self.stored, &self.thoughts)?;
        ask.stream = false;
        Ok(ask)
    }
}
