//! Every protocol keeps the contract of the port, as the testkit's suite checks it.

use std::sync::Arc;

use rowmill_http::HttpClient;
use rowmill_models::{Connection, ModelString, Providers, Setup, build};
use rowmill_testkit::conformance::check_model;
use rowmill_testkit::{Script, Simulator};
use rowmill_types::Problem;

async fn deviations(model: &str) -> Result<Vec<String>, Problem> {
    let simulator = Simulator::start(Script::new()).await;
    let url = simulator.url().to_owned();
    let environment = move |name: &str| match name {
        "OPENAI_BASE_URL" | "GENERIC_BASE_URL" => Some(format!("{url}/v1")),
        "ANTHROPIC_BASE_URL" | "GEMINI_BASE_URL" => Some(url.clone()),
        name if name.ends_with("_API_KEY") => Some("a-key".to_owned()),
        _ => None,
    };
    let providers = Providers::default();
    let model = ModelString::parse(model, &providers)?;
    let connection = Connection::resolve(&model, &providers, &environment)?;
    let setup = Setup {
        model,
        connection,
        instruction: None,
        schema: None,
        tools: Vec::new(),
        parallel_tool_calls: None,
        notice: Arc::new(|_| ()),
    };
    let model = build(setup, &HttpClient::new(&|_| None))?;
    Ok(check_model(&*model, &simulator).await)
}

#[tokio::test]
async fn every_protocol_and_transport_keeps_the_contract_of_the_port() {
    let mut found = Vec::new();
    for model in [
        "openai.m",
        "openai.m?stream=true",
        "generic.m",
        "responses.m",
        "responses.m?transport=sse",
        "anthropic.m",
        "anthropic.m?stream=true",
        "google.m",
        "google.m?stream=true",
    ] {
        found.extend(deviations(model).await.unwrap().into_iter().map(|what| format!("{model}: {what}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
