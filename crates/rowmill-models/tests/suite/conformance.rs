//! Every protocol and every built-in model satisfies the contract of the port, as checked by the testkit's
//! suites.

use std::sync::Arc;

use rowmill_core::ports::Model;
use rowmill_http::HttpClient;
use rowmill_models::{ModelSetup, ModelString, ProviderConnection, ProviderRegistry, build_model};
use rowmill_testkit::conformance::{ModelFacts, check_model, check_program_model};
use rowmill_testkit::{Simulator, SimulatorScript};
use rowmill_types::Problem;

/// A model that reaches every provider at `url`.
fn model_at(model: &str, url: &str) -> Result<Arc<dyn Model>, Problem> {
    let environment = |name: &str| match name {
        "OPENAI_BASE_URL" | "GENERIC_BASE_URL" => Some(format!("{url}/v1")),
        "ANTHROPIC_BASE_URL" | "GEMINI_BASE_URL" => Some(url.to_owned()),
        name if name.ends_with("_API_KEY") => Some("a-key".to_owned()),
        _ => None,
    };
    let providers = ProviderRegistry::default();
    let model = ModelString::parse(model, &providers)?;
    let connection = ProviderConnection::resolve(&model, &providers, &environment)?;
    let setup = ModelSetup {
        model,
        connection,
        instruction: None,
        schema: None,
        tools: Vec::new(),
        parallel_tool_calls: None,
        notice: Arc::new(|_| ()),
    };
    build_model(setup, &HttpClient::new(&|_| None))
}

async fn deviations(model: &str) -> Result<Vec<String>, Problem> {
    let simulator = Simulator::start(SimulatorScript::new()).await;
    let model = model_at(model, &simulator.url())?;
    let mut found = check_model(&*model, &simulator).await;
    let under_way = || usize::try_from(simulator.stats().in_flight).unwrap_or(usize::MAX);
    let facts = ModelFacts { under_way: Some(Box::new(under_way)), ..ModelFacts::default() };
    found.extend(check_program_model(&*model, &facts).await);
    Ok(found)
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

#[tokio::test]
async fn every_built_in_model_keeps_the_contract_of_the_port() {
    for (name, echoes) in [
        ("passthrough", true),
        ("slow?delay=20ms", true),
        ("silent", false),
        ("playback", false),
        ("simulated?latency=1ms", false),
    ] {
        let model = model_at(name, "http://127.0.0.1:9").unwrap();
        let facts = ModelFacts {
            belongs: Box::new(move |prompt, answer| !echoes || prompt == answer),
            ..ModelFacts::default()
        };
        assert_eq!(check_program_model(&*model, &facts).await, Vec::<String>::new(), "{name}");
    }
}
