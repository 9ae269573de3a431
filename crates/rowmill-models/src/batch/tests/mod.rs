mod limits;
mod lines;
mod results;

use std::sync::Arc;

use rowmill_core::ports::{BatchApi, JobResult};
use rowmill_http::HttpClient;
use rowmill_types::{Message, Request};

use super::{BatchLimitOverrides, build_batch_api};
use crate::build_model::ModelSetup;
use crate::test_support::setup;

/// A model of each provider with a batch API.
const MODELS: [&str; 8] =
    ["openai.m", "responses.m", "azure.m", "groq.m", "together.m", "mistral.m", "anthropic.m", "google.m"];

fn api_for(setup: &ModelSetup) -> Arc<dyn BatchApi> {
    build_batch_api(setup, &BatchLimitOverrides::default(), &HttpClient::new(&|_| None)).unwrap()
}

fn api(model: &str) -> Arc<dyn BatchApi> {
    api_for(&setup(model, None, None))
}

fn ask(messages: Vec<Message>) -> Request {
    Request {
        key: "k".to_owned(),
        row: 1,
        attempt: 1,
        output_cap: None,
        purpose: Default::default(),
        messages,
    }
}

/// The line of a request.
fn line(api: &dyn BatchApi, request: &Request) -> String {
    let mut out = Vec::new();
    api.write_request("r-1", request, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn read(model: &str, line: &str) -> JobResult {
    api(model).read_result(line.as_bytes()).unwrap_or_else(|error| panic!("{model}: {error}: {line}"))
}
