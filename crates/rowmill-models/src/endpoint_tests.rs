use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::{EndpointFacts, endpoint_facts};
use crate::test_support::{setup, with_tools};
use crate::{ModelSetup, ModelString, ProviderConfig, ProviderConnection, ProviderRegistry};

fn facts(model: &str) -> EndpointFacts {
    endpoint_facts(&setup(model, Some("Be kind."), None))
}

#[test]
fn the_most_output_is_what_requests_say() {
    for (model, expected) in [
        ("openai.m", None),
        ("openai.m?max_tokens=100", Some(100)),
        ("gpt-5?max_tokens=100", Some(100)),
        ("google.m?max_tokens=7", Some(7)),
        // Anthropic demands one.
        ("anthropic.m", Some(4096)),
        ("anthropic.m?max_tokens=9", Some(9)),
        ("anthropic.claude-opus-4-5?reasoning=2000", Some(6096)),
        ("anthropic.m?reasoning=2000&max_tokens=10", None),
        ("passthrough", None),
    ] {
        assert_eq!(facts(model).max_output, expected, "{model}");
    }
}

#[test]
fn calls_have_limits_of_their_own_where_the_user_set_none_and_thinking_is_known() {
    for (model, takes, thinking) in [
        ("openai.m", true, 0),
        ("openai.m?max_tokens=100", false, 0),
        ("openai.m?reasoning=high", true, 0),
        ("openrouter.m?reasoning=3000", true, 3_000),
        ("anthropic.m", true, 0),
        ("anthropic.claude-opus-4-5?reasoning=2000", true, 2_000),
        ("anthropic.claude-opus-4-5?reasoning=high", true, 16_384),
        ("google.gemini-2.5-pro?reasoning=high", true, 24_576),
        ("google.gemini-2.5-pro?reasoning=auto", true, 0),
        ("google.gemini-3-pro?reasoning=high", true, 0),
        ("passthrough", false, 0),
    ] {
        let facts = facts(model);
        assert_eq!((facts.takes_output_cap, facts.thinking_budget), (takes, thinking), "{model}");
    }
}

#[test]
fn each_provider_keeps_prefixes_from_its_own_length_on() {
    for (model, expected) in [
        ("gpt-5", Some(1024)),
        ("openai.gpt-4o-mini", Some(1024)),
        ("openai.gpt-4.1", Some(1024)),
        ("openai.gpt-4", None),
        ("openai.gpt-4-turbo", None),
        ("openai.gpt-3.5-turbo", None),
        ("azure.my-deployment", Some(1024)),
        ("anthropic.claude-sonnet-4-5", Some(1024)),
        ("anthropic.claude-sonnet-4-6", Some(2048)),
        ("anthropic.claude-3-5-haiku-latest", Some(2048)),
        ("anthropic.claude-haiku-4-5", Some(4096)),
        ("anthropic.claude-opus-4-5-20251101", Some(4096)),
        ("google.gemini-2.0-flash", None),
        ("google.gemini-2.5-flash", Some(2048)),
        ("googleoai.gemini-2.5-pro", Some(2048)),
        ("google.gemini-3.5-flash", Some(4096)),
        ("deepseek.deepseek-chat", Some(64)),
        ("groq.m", None),
        ("vllm.m", None),
        ("passthrough", None),
    ] {
        assert_eq!(facts(model).caches_prefix, expected, "{model}");
    }
    assert_eq!(endpoint_facts(&setup("anthropic.m", None, None)).caches_prefix, None, "nothing is marked");
    assert_eq!(
        endpoint_facts(&with_tools("anthropic.m", None)).caches_prefix,
        Some(1024),
        "tools are marked"
    );
    assert_eq!(endpoint_facts(&setup("openai.m", None, None)).caches_prefix, Some(1024));
}

#[test]
fn the_fixed_bytes_are_those_of_a_body_without_messages() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    for model in ["openai.m", "gpt-5", "anthropic.m", "google.m"] {
        let bare = endpoint_facts(&setup(model, None, None)).fixed_bytes;
        let message = endpoint_facts(&setup(model, Some("Be kind."), None)).fixed_bytes;
        let whole = endpoint_facts(&setup(model, Some("Be kind."), Some(schema.clone()))).fixed_bytes;
        assert!(bare + "Be kind.".len() < message, "{model}: {bare} {message}");
        assert!(message + schema.to_string().len() < whole, "{model}: {message} {whole}");
    }
    for model in ["openai.m", "gpt-5", "anthropic.m", "google.m"] {
        let bare = endpoint_facts(&setup(model, None, None)).fixed_bytes;
        let tools = with_tools(model, None);
        let schema = tools.tools[0].schema["properties"].to_string().len();
        assert!(bare + schema + "weather".len() < endpoint_facts(&tools).fixed_bytes, "{model}");
    }
    let body = r#"{"model":"m","messages":[]}"#;
    assert_eq!(endpoint_facts(&setup("generic.m", None, None)).fixed_bytes, body.len());
    assert_eq!(facts("passthrough").fixed_bytes, 0);
}

#[test]
fn an_endpoint_is_named_without_its_key() {
    let one = facts("openai.m");
    assert_eq!((one.provider.as_str(), one.model.as_str(), one.is_builtin), ("openai", "m", false));
    assert_eq!(one.account.len(), 32);
    assert!(!format!("{one:?}").contains("sk-secret"));
    assert!(facts("simulated").is_builtin);
}

fn with(key: &str, url: &str, team: &str) -> ModelSetup {
    let headers = BTreeMap::from([("x-team".to_owned(), team.to_owned())]);
    let config = ProviderConfig { headers, ..ProviderConfig::default() };
    let providers = ProviderRegistry::with_config(BTreeMap::from([("openai".to_owned(), config)])).unwrap();
    let model = ModelString::parse("openai.m", &providers).unwrap();
    let environment = |name: &str| Some(if name.contains("KEY") { key.to_owned() } else { url.to_owned() });
    let connection = ProviderConnection::resolve(&model, &providers, &environment).unwrap();
    ModelSetup {
        model,
        connection,
        instruction: None,
        schema: None,
        tools: Vec::new(),
        parallel_tool_calls: None,
        notice: Arc::new(drop),
    }
}

#[test]
fn another_key_address_or_header_is_another_account() {
    let account = |key, url, team| endpoint_facts(&with(key, url, team)).account;
    let first = account("key", "http://a/v1", "red");
    assert_eq!(account("key", "http://a/v1", "red"), first);
    assert_ne!(account("other", "http://a/v1", "red"), first);
    assert_ne!(account("key", "http://b/v1", "red"), first);
    assert_ne!(account("key", "http://a/v1", "blue"), first);
    assert_eq!(facts("openai.one").account, facts("gpt-5").account, "both go to OpenAI with one key");
}
