//! Addresses, keys and headers: where they come from and how missing ones are reported.

use std::collections::BTreeMap;

use rowmill_models::{
    ApiKeyPresence, ModelString, ProviderCatalogueEntry, ProviderConfig, ProviderConnection,
    ProviderProtocol, ProviderRegistry, provider_catalogue,
};
use rowmill_types::{Problem, ProblemCode};

fn providers(toml: &str) -> Result<ProviderRegistry, Problem> {
    let config: BTreeMap<String, ProviderConfig> = toml::from_str(toml).unwrap();
    ProviderRegistry::with_config(config)
}

fn resolve(model: &str, toml: &str, environment: &[(&str, &str)]) -> Result<ProviderConnection, Problem> {
    let providers = providers(toml)?;
    let model = ModelString::parse(model, &providers)?;
    ProviderConnection::resolve(&model, &providers, &|name: &str| variable(environment, name))
}

fn variable(environment: &[(&str, &str)], name: &str) -> Option<String> {
    environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
}

#[test]
fn the_environment_wins_over_the_configuration_and_that_over_the_default() {
    let toml = "[vllm]\nbase_url = \"http://file/v1\"";
    for (toml, environment, expected) in [
        ("", &[][..], "http://localhost:8000/v1"),
        (toml, &[][..], "http://file/v1"),
        (toml, &[("VLLM_BASE_URL", "http://env/v1")][..], "http://env/v1"),
        (toml, &[("VLLM_BASE_URL", " ")][..], "http://file/v1"),
    ] {
        assert_eq!(resolve("vllm.m", toml, environment).unwrap().base_url(), Some(expected));
    }
}

#[test]
fn every_provider_knows_its_variables() {
    for (model, environment, expected) in [
        ("openai.m", &[("OPENAI_API_KEY", "k")][..], "https://api.openai.com/v1"),
        ("gpt-5", &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://x/v1")][..], "http://x/v1"),
        ("claude-x", &[("ANTHROPIC_API_KEY", "k")][..], "https://api.anthropic.com/"),
        ("google.m", &[("GOOGLE_API_KEY", "k")][..], "https://generativelanguage.googleapis.com/"),
        ("google.m", &[("GEMINI_API_KEY", "k"), ("GOOGLE_GEMINI_BASE_URL", "http://g")][..], "http://g/"),
        ("hf.o/m", &[("HF_TOKEN", "k")][..], "https://router.huggingface.co/v1"),
        ("generic.m", &[][..], "http://localhost:11434/v1"),
        (
            "azure.m",
            &[("AZURE_OPENAI_API_KEY", "k"), ("AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com/")][..],
            "https://r.openai.azure.com/openai/v1",
        ),
    ] {
        assert_eq!(resolve(model, "", environment).unwrap().base_url(), Some(expected), "{model}");
    }
    assert_eq!(resolve("passthrough", "", &[]).unwrap().base_url(), None);
}

#[test]
fn a_key_that_is_missing_is_named_with_the_remedy() {
    for (model, toml, message, hint) in [
        (
            "openai.m",
            "",
            "`openai` needs a key, but `OPENAI_API_KEY` is not set",
            "set it: `export OPENAI_API_KEY=…`",
        ),
        (
            "google.m",
            "",
            "`google` needs a key, but `GEMINI_API_KEY` or `GOOGLE_API_KEY` is not set",
            "set it: `export GEMINI_API_KEY=…`",
        ),
        (
            "openai.m",
            "[openai]\napi_key_env = \"MINE\"",
            "`openai` needs a key, but `MINE` is not set",
            "set it: `export MINE=…`, or choose another variable with `api_key_env` under \
             `[providers.openai]`",
        ),
    ] {
        let problem = resolve(model, toml, &[("OTHER", "x")]).unwrap_err();
        assert_eq!(problem.code, ProblemCode::MissingKey);
        assert_eq!(problem.message, message);
        assert!(problem.hint.unwrap().starts_with(hint));
    }
}

#[test]
fn a_provider_of_ones_own_is_added_by_its_address() {
    let toml =
        "[my-lab]\nbase-url = \"http://lab/v1\"\n[other]\nbase_url = \"http://o\"\nprotocol = \"anthropic\"";
    let lab = resolve("my-lab.m?top_k=3", toml, &[]).unwrap();
    assert_eq!((lab.protocol, lab.base_url()), (ProviderProtocol::Chat, Some("http://lab/v1")));
    let moved = resolve("my-lab.m", toml, &[("MY_LAB_BASE_URL", "http://moved/v1")]).unwrap();
    assert_eq!(moved.base_url(), Some("http://moved/v1"));
    assert_eq!(resolve("other.m", toml, &[]).unwrap().protocol, ProviderProtocol::Anthropic);
}

#[test]
fn a_changed_protocol_brings_its_own_keys_and_keeps_the_address() {
    let toml = "[groq]\nprotocol = \"responses\"";
    let groq = resolve("groq.m?transport=sse", toml, &[("GROQ_API_KEY", "k")]).unwrap();
    assert_eq!(
        (groq.protocol, groq.base_url()),
        (ProviderProtocol::Responses, Some("https://api.groq.com/openai/v1"))
    );
    assert!(resolve("groq.m?stop=x", toml, &[("GROQ_API_KEY", "k")]).is_err());
}

#[test]
fn a_configuration_that_cannot_be_used_says_where() {
    for (model, toml, message) in [
        ("passthrough", "[lab]\nprotocol = \"chat\"", "`[providers.lab]` has no `base_url`"),
        (
            "passthrough",
            "[\"My Lab\"]\nbase_url = \"http://x\"",
            "`[providers.My Lab]`: the name is not valid in a model string",
        ),
        (
            "passthrough",
            "[passthrough]\nbase_url = \"http://x\"",
            "`[providers.passthrough]`: `passthrough` is built in and has no settings",
        ),
        (
            "vllm.m",
            "[vllm]\nbase_url = \"localhost:8000\"",
            "`base_url` of `[providers.vllm]` is not a URL: `localhost:8000`",
        ),
        (
            "vllm.m",
            "[vllm.headers]\nx-a = \"${NOPE}\"",
            "header `x-a` of `[providers.vllm]` needs the variable `NOPE`, which is not set",
        ),
        (
            "vllm.m",
            "[vllm.headers]\n\"x a\" = \"b\"",
            "header `x a` of `[providers.vllm]` is not a valid header name",
        ),
        (
            "openresponses.m",
            "",
            "`openresponses` has no default base URL and `OPENRESPONSES_BASE_URL` is not set",
        ),
    ] {
        let problem = resolve(model, toml, &[]).unwrap_err();
        assert_eq!((problem.code, problem.message.as_str()), (ProblemCode::InvalidConfig, message));
        assert!(problem.hint.is_some());
    }
}

#[test]
fn the_configuration_refuses_what_it_does_not_know() {
    for toml in ["[vllm]\nbase = \"x\"", "[vllm]\nprotocol = \"builtin\"", "[vllm]\nprotocol = \"telegraph\""]
    {
        assert!(toml::from_str::<BTreeMap<String, ProviderConfig>>(toml).is_err(), "{toml}");
    }
}

#[test]
fn nothing_shows_a_key() {
    let toml = "[openai.headers]\nx-team = \"${TEAM}\"";
    let connection =
        resolve("openai.m", toml, &[("OPENAI_API_KEY", "sk-1234"), ("TEAM", "team-key")]).unwrap();
    let shown = format!("{connection:?} {connection:#?}");
    assert!(!shown.contains("sk-1234") && !shown.contains("team-key"), "{shown}");
}

#[test]
fn the_catalogue_tells_what_is_there_and_what_is_missing() {
    let environment = [("ANTHROPIC_API_KEY", "k"), ("VLLM_BASE_URL", "http://gpu/v1")];
    let providers = providers("[lab]\nbase_url = \"http://lab/v1\"\napi_key_env = \"LAB\"").unwrap();
    let entries = provider_catalogue(&providers, &|name: &str| variable(&environment, name));
    let entry = |name: &str| -> &ProviderCatalogueEntry {
        entries.iter().find(|entry| entry.provider == name).unwrap()
    };
    assert_eq!(entry("anthropic").key, ApiKeyPresence::Set("ANTHROPIC_API_KEY".to_owned()));
    assert_eq!(entry("openai").key, ApiKeyPresence::Missing);
    assert_eq!(entry("openai").key_variables, ["OPENAI_API_KEY"]);
    assert_eq!(entry("vllm").key, ApiKeyPresence::Optional);
    assert_eq!(entry("vllm").base_url.as_deref(), Some("http://gpu/v1"));
    assert_eq!(entry("silent").key, ApiKeyPresence::NotNeeded);
    assert_eq!(entry("azure").base_url, None);
    assert_eq!(
        (entry("lab").key_variables.as_slice(), &entry("lab").key),
        (&["LAB".to_owned()][..], &ApiKeyPresence::Missing)
    );
    assert_eq!(entry("slow").settings.iter().map(|key| key.name()).collect::<Vec<_>>(), ["delay"]);
    assert!(entries.iter().all(|entry| !entry.about.is_empty()));
}

#[test]
fn a_base_url_without_a_path_is_completed_and_reported_once_per_connection() {
    let key = ("OPENAI_API_KEY", "k");
    for (model, environment, expected, message) in [
        (
            "generic.m",
            &[("GENERIC_BASE_URL", "http://localhost:11434")][..],
            "http://localhost:11434/v1",
            Some("`GENERIC_BASE_URL` has no path; calls go to `http://localhost:11434/v1`"),
        ),
        ("generic.m", &[("GENERIC_BASE_URL", "http://h:1/v1/")], "http://h:1/v1/", None),
        ("generic.m", &[("GENERIC_BASE_URL", "http://h:1/api/v3")], "http://h:1/api/v3", None),
        // Two slashes mean that the API is at the root.
        ("generic.m", &[("GENERIC_BASE_URL", "http://h:1//")], "http://h:1//", None),
        (
            "responses.m",
            &[key, ("OPENAI_BASE_URL", "https://user:pw-secret@proxy.test/")],
            "https://user:pw-secret@proxy.test/v1",
            Some("`OPENAI_BASE_URL` has no path; calls go to `https://proxy.test/v1`"),
        ),
        (
            "groq.m",
            &[("GROQ_API_KEY", "k"), ("GROQ_BASE_URL", "https://api.groq.com")],
            "https://api.groq.com/openai/v1",
            Some("`GROQ_BASE_URL` has no path; calls go to `https://api.groq.com/openai/v1`"),
        ),
        (
            "azure.m",
            &[("AZURE_OPENAI_API_KEY", "k"), ("AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com")],
            "https://r.openai.azure.com/openai/v1",
            None,
        ),
        (
            "anthropic.m",
            &[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://proxy")],
            "http://proxy/",
            None,
        ),
        ("google.m", &[("GEMINI_API_KEY", "k"), ("GEMINI_BASE_URL", "http://g")], "http://g/", None),
    ] {
        let connection = resolve(model, "", environment).unwrap();
        assert_eq!(connection.base_url(), Some(expected), "{model}");
        assert_eq!(connection.address_notice.as_deref(), message, "{model}");
    }
    let own = resolve("lab.m", "[lab]\nbase_url = \"http://lab\"", &[]).unwrap();
    assert_eq!(own.base_url(), Some("http://lab/v1"));
    let message = "`base_url` of `[providers.lab]` has no path; calls go to `http://lab/v1`";
    assert_eq!(own.address_notice.as_deref(), Some(message));
}
