use std::time::Duration;

use rowmill_core::ports::{ExpiredJobResultRule, JobKeyReporting};
use rowmill_http::HttpClient;
use rowmill_types::ProblemCode;

use super::MODELS;
use crate::batch::{BatchLimitOverrides, batch_providers, batch_rules, build_batch_api};
use crate::test_support::setup;

fn overrides(toml: &str) -> BatchLimitOverrides {
    toml::from_str(toml).unwrap()
}

#[test]
fn every_provider_has_its_own_limits() {
    let rules =
        |model: &str| batch_rules(&setup(model, None, None), &BatchLimitOverrides::default()).unwrap();
    for (model, requests, bytes, hours) in [
        ("openai.m", 50_000, 200_000_000, 24),
        ("responses.m", 50_000, 200_000_000, 24),
        ("azure.m", 100_000, 200_000_000, 24),
        ("groq.m", 50_000, 100_000_000, 24),
        ("together.m", 50_000, 100_000_000, 24),
        ("mistral.m", 1_000_000, 512_000_000, 24),
        ("anthropic.m", 100_000, 256_000_000, 24),
        ("google.m", 50_000, 2_000_000_000, 48),
    ] {
        let rules = rules(model);
        assert_eq!((rules.max_requests, rules.max_bytes), (requests, bytes), "{model}");
        assert_eq!(rules.window, Duration::from_secs(hours * 3600), "{model}");
        assert_eq!(rules.provider, model.split('.').next().unwrap());
        assert!(rules.max_request_bytes <= rules.max_bytes, "{model}");
    }
    assert_eq!(rules("google.m").expiry, ExpiredJobResultRule::LosesAll);
    let unreported = MODELS.iter().filter(|model| rules(model).job_key == JobKeyReporting::NotReported);
    assert_eq!(unreported.collect::<Vec<_>>(), [&"together.m", &"anthropic.m"]);
}

#[test]
fn limits_of_the_configuration_replace_the_known_ones() {
    let set = overrides(
        "max_requests = 10\nmax-bytes = 20\nmax_request_bytes = 30\nmax_queued_tokens = 40\n\
         max_queued_requests = 50\nmax_jobs = 60\nwindow = \"3d\"",
    );
    let setup = setup("groq.m", None, None);
    let api = build_batch_api(&setup, &set, &HttpClient::new(&|_| None)).unwrap();
    let rules = api.rules();
    assert_eq!(rules, &batch_rules(&setup, &set).unwrap());
    assert_eq!((rules.max_requests, rules.max_bytes, rules.max_request_bytes), (10, 20, 30));
    let queue = (rules.max_queued_tokens, rules.max_queued_requests, rules.max_jobs);
    assert_eq!(queue, (Some(40), Some(50), Some(60)));
    assert_eq!(rules.window, Duration::from_secs(72 * 3600));
    assert!(toml::from_str::<BatchLimitOverrides>("max_rows = 1").is_err(), "unknown names are errors");
}

#[test]
fn impossible_limits_are_refused() {
    for (model, toml, what, hint) in [
        ("openai.m", "max_jobs = 0", "`max_jobs = 0` allows no request", "use 1 or more, or omit it"),
        (
            "openai.m",
            "window = \"48h\"",
            "`window = \"48h\"` is not possible",
            "the provider always takes 24h; omit `window`",
        ),
        (
            "groq.m",
            "window = \"8d\"",
            "`window = \"192h\"` is not possible",
            "use whole hours from 24h to 168h",
        ),
        (
            "mistral.m",
            "window = \"90m\"",
            "`window = \"90m\"` is not possible",
            "use whole hours from 1h to 167h",
        ),
    ] {
        let problem = batch_rules(&setup(model, None, None), &overrides(toml)).unwrap_err();
        assert_eq!(problem.code, ProblemCode::InvalidConfig);
        assert!(problem.message.ends_with(what), "{problem}");
        assert_eq!(problem.hint.as_deref(), Some(hint));
    }
}

#[test]
fn a_provider_without_a_batch_api_is_refused_with_those_that_have_one() {
    let names = ["responses", "openai", "anthropic", "google", "azure", "groq", "mistral", "together"];
    assert_eq!(batch_providers(), names);
    for model in ["deepseek.m", "ollama.m", "passthrough", "openresponses.m"] {
        let setup = setup(model, None, None);
        let http = HttpClient::new(&|_| None);
        let problem = build_batch_api(&setup, &BatchLimitOverrides::default(), &http).unwrap_err();
        let name = model.split('.').next().unwrap();
        assert_eq!(&*problem.message, format!("`{name}` has no batch API"));
        let hint = problem.hint.unwrap();
        assert!(names.iter().all(|name| hint.contains(&format!("`{name}`"))), "{hint:?}");
    }
}

#[test]
fn tiers_of_live_calls_are_refused() {
    for model in
        ["openai.m?service_tier=flex", "responses.m?service_tier=fast", "groq.m?service_tier=performance"]
    {
        let setup = setup(model, None, None);
        let http = HttpClient::new(&|_| None);
        let problem = build_batch_api(&setup, &BatchLimitOverrides::default(), &http).unwrap_err();
        assert!(problem.message.ends_with("is for live calls, not for batches"), "{problem}");
        assert_eq!(problem.hint.as_deref(), Some("omit `service_tier`: a batch has a price of its own"));
    }
}
