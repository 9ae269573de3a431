//! Builds a model from a model string and a connection.

use std::fmt;
use std::sync::Arc;

use rowmill_core::ports::Model;
use rowmill_http::{HeaderMap, HeaderName, HeaderValue, HttpClient};
use rowmill_types::{Problem, ProblemCode, ToolSpec};

use crate::connection::ProviderConnection;
use crate::http_model::AnswerDelivery;
use crate::model_settings::ModelSettingKey;
use crate::model_string::ModelString;
use crate::provider::ProviderProtocol;
use crate::{anthropic, builtin, chat, google, responses};

/// Receives notices for the user about things that are not failures, such as a fallback.
pub type NoticeFn = Arc<dyn Fn(String) + Send + Sync>;

/// Everything that is the same for every row.
#[derive(Clone)]
pub struct ModelSetup {
    /// The model with its settings.
    pub model: ModelString,
    /// The provider's address, key and headers.
    pub connection: ProviderConnection,
    /// The system text.
    pub instruction: Option<String>,
    /// The JSON Schema of answers; answers are then JSON text.
    pub schema: Option<serde_json::Value>,
    /// The tools that the model may call. The caller runs them and sends back their results.
    pub tools: Vec<ToolSpec>,
    /// Whether the model may call several tools at once; if absent, the provider decides.
    pub parallel_tool_calls: Option<bool>,
    /// Receives notices for the user about things that are not failures.
    pub notice: NoticeFn,
}

impl fmt::Debug for ModelSetup {
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
pub fn build_model(setup: ModelSetup, http: &HttpClient) -> Result<Arc<dyn Model>, Problem> {
    match setup.connection.protocol {
        ProviderProtocol::Chat => chat::client::build_chat_model(&setup, http),
        ProviderProtocol::Responses => responses::client::build_responses_model(&setup, http),
        ProviderProtocol::Anthropic => anthropic::client::build_anthropic_model(&setup, http),
        ProviderProtocol::Google => google::client::build_google_model(&setup, http),
        ProviderProtocol::Builtin => builtin::build_builtin_model(&setup),
    }
}

/// Whether answers are streamed, for protocols without another transport.
pub(crate) fn delivery(setup: &ModelSetup) -> Result<AnswerDelivery, Problem> {
    let settings = &setup.model.settings;
    match (settings.word(ModelSettingKey::Transport), settings.switch(ModelSettingKey::Stream)) {
        (Some(transport @ ("sse" | "ws" | "auto")), Some(false)) => Err(contradiction_problem(
            &setup.model,
            &format!("`transport={transport}` always streams, `stream=false` never does"),
        )),
        (Some("sse"), _) | (_, Some(true)) => Ok(AnswerDelivery::Stream),
        _ => Ok(AnswerDelivery::Whole),
    }
}

/// The problem that settings contradict each other.
pub(crate) fn contradiction_problem(model: &ModelString, what: &str) -> Problem {
    Problem::new(ProblemCode::InvalidModel, format!("`{model}`: {what}")).hint("omit one of them")
}

/// The headers of every JSON request.
pub(crate) fn json_headers(delivery: AnswerDelivery) -> HeaderMap {
    let accept = match delivery {
        AnswerDelivery::Whole => "application/json",
        AnswerDelivery::Stream => "text/event-stream",
    };
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("content-type"), HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static("accept"), HeaderValue::from_static(accept));
    headers
}

#[cfg(test)]
mod tests {
    use rowmill_http::HttpClient;

    use super::{AnswerDelivery, build_model, delivery};
    use crate::test_support::setup;

    #[test]
    fn streaming_is_asked_for_by_either_key_and_never_contradicted() {
        for (model, expected) in [
            ("gpt-5", AnswerDelivery::Whole),
            ("gpt-5?stream=false", AnswerDelivery::Whole),
            ("gpt-5?transport=http", AnswerDelivery::Whole),
            ("gpt-5?transport=sse", AnswerDelivery::Stream),
            ("gpt-5?stream=true", AnswerDelivery::Stream),
            ("gpt-5?stream=true&transport=sse", AnswerDelivery::Stream),
        ] {
            assert_eq!(delivery(&setup(model, None, None)).unwrap(), expected, "{model}");
        }
        for transport in ["sse", "ws", "auto"] {
            let setup = setup(&format!("gpt-5?transport={transport}&stream=false"), None, None);
            let problem = build_model(setup, &HttpClient::new(&|_| None)).unwrap_err();
            assert!(
                problem
                    .message
                    .ends_with(&format!("`transport={transport}` always streams, `stream=false` never does")),
                "{problem}"
            );
        }
    }
}
