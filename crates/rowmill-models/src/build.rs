//! Builds a model from a model string and a connection.

use std::fmt;
use std::sync::Arc;

use rowmill_core::ports::Model;
use rowmill_http::{HeaderMap, HeaderName, HeaderValue, HttpClient};
use rowmill_types::{Problem, ProblemCode, ToolSpec};

use crate::connection::Connection;
use crate::exchange::Delivery;
use crate::model_string::ModelString;
use crate::provider::Protocol;
use crate::settings::Key;
use crate::{anthropic, builtin, chat, google, responses};

/// Receives notices for the user about things that are not failures, such as a fallback.
pub type Notice = Arc<dyn Fn(String) + Send + Sync>;

/// Everything that is the same for every row.
#[derive(Clone)]
pub struct Setup {
    /// The model with its settings.
    pub model: ModelString,
    /// The provider's address, key and headers.
    pub connection: Connection,
    /// The system text.
    pub instruction: Option<String>,
    /// The JSON Schema of answers; answers are then JSON text.
    pub schema: Option<serde_json::Value>,
    /// The tools that the model may call. The caller runs them and sends back their results.
    pub tools: Vec<ToolSpec>,
    /// Whether the model may call several tools at once; if absent, the provider decides.
    pub parallel_tool_calls: Option<bool>,
    /// Receives notices for the user about things that are not failures.
    pub notice: Notice,
}

impl fmt::Debug for Setup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Setup")
            .field("model", &self.model)
            .field("connection", &self.connection)
            .field("instruction", &self.instruction)
            .field("schema", &self.schema)
            .field("tools", &self.tools)
            .field("parallel_tool_calls", &self.parallel_tool_calls)
            .finish_non_exhaustive()
    }
}

/// Builds the model; no call is made yet.
///
/// # Errors
///
/// Settings contradict each other, or the key contains characters that a header cannot hold.
pub fn build(setup: Setup, http: &HttpClient) -> Result<Arc<dyn Model>, Problem> {
    match setup.connection.protocol {
        Protocol::Chat => chat::client::build(&setup, http),
        Protocol::Responses => responses::client::build(&setup, http),
        Protocol::Anthropic => anthropic::client::build(&setup, http),
        Protocol::Google => google::client::build(&setup, http),
        Protocol::Builtin => builtin::build(&setup),
    }
}

/// Whether answers are streamed, for protocols without another transport.
pub(crate) fn delivery(setup: &Setup) -> Result<Delivery, Problem> {
    let settings = &setup.model.settings;
    match (settings.word(Key::Transport), settings.switch(Key::Stream)) {
        (Some(transport @ ("sse" | "ws" | "auto")), Some(false)) => Err(contradiction(
            &setup.model,
            &format!("`transport={transport}` always streams, `stream=false` never does"),
        )),
        (Some("sse"), _) | (_, Some(true)) => Ok(Delivery::Stream),
        _ => Ok(Delivery::Whole),
    }
}

/// The problem that settings contradict each other.
pub(crate) fn contradiction(model: &ModelString, what: &str) -> Problem {
    Problem::new(ProblemCode::InvalidModel, format!("`{model}`: {what}")).hint("omit one of them")
}

/// The headers of every JSON request.
pub(crate) fn json_headers(delivery: Delivery) -> HeaderMap {
    let accept = match delivery {
        Delivery::Whole => "application/json",
        Delivery::Stream => "text/event-stream",
    };
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("content-type"), HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static("accept"), HeaderValue::from_static(accept));
    headers
}

#[cfg(test)]
mod tests {
    use rowmill_http::HttpClient;

    use super::{Delivery, build, delivery};
    use crate::fixture::setup;

    #[test]
    fn streaming_is_asked_for_by_either_key_and_never_contradicted() {
        for (model, expected) in [
            ("gpt-5", Delivery::Whole),
            ("gpt-5?stream=false", Delivery::Whole),
            ("gpt-5?transport=http", Delivery::Whole),
            ("gpt-5?transport=sse", Delivery::Stream),
            ("gpt-5?stream=true", Delivery::Stream),
            ("gpt-5?stream=true&transport=sse", Delivery::Stream),
        ] {
            assert_eq!(delivery(&setup(model, None, None)).unwrap(), expected, "{model}");
        }
        for transport in ["sse", "ws", "auto"] {
            let setup = setup(&format!("gpt-5?transport={transport}&stream=false"), None, None);
            let problem = build(setup, &HttpClient::new(&|_| None)).unwrap_err();
            assert!(
                problem
                    .message
                    .ends_with(&format!("`transport={transport}` always streams, `stream=false` never does")),
                "{problem}"
            );
        }
    }
}
