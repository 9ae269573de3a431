use std::collections::BTreeMap;

use rowmill_types::{Money, ProblemCode, TokenUsage};

use super::*;
use crate::provider_table::PROVIDER_ROWS;

fn built_in() -> PriceTable {
    PriceTable::with_config(&BTreeMap::new()).unwrap()
}

fn configured(toml: &str) -> Result<PriceTable, rowmill_types::Problem> {
    PriceTable::with_config(&toml::from_str(toml).unwrap())
}

/// Dollars per million tokens: input and output.
fn dollars(table: &PriceTable, provider: &str, model: &str, tier: Option<&str>) -> Option<(f64, f64)> {
    let tokens = table.find(provider, model, tier)?.price.tokens;
    let per_million = |money: Money| money.times(1_000_000).dollars();
    Some((per_million(tokens.input), per_million(tokens.output)))
}

#[test]
fn every_built_in_row_is_sane() {
    let table = built_in();
    let entries: Vec<PriceEntry<'_>> = table.entries().collect();
    assert!(entries.len() > 150, "{}", entries.len());
    for entry in entries {
        let name = format!("{}.{}", entry.provider, entry.model);
        assert!(PROVIDER_ROWS.iter().any(|row| row.name == entry.provider), "{name} is of no known provider");
        assert_eq!(entry.priced.source, PriceSource::BuiltIn, "{name}");
        assert!(entry.priced.as_of.starts_with("2026-") && entry.priced.as_of.len() == 10, "{name}");
        let price = entry.priced.price;
        let tokens = price.tokens;
        assert!(tokens.cached <= tokens.input && tokens.input <= tokens.output, "{name}");
        assert!(tokens.input <= tokens.cache_write && tokens.output <= tokens.reasoning, "{name}");
        assert!(tokens.output < Money::from_dollars(0.001).unwrap(), "{name} is too dear to be true");
        if let Some((above, long)) = price.long {
            assert!(above >= 100_000 && long.input > tokens.input && long.output > tokens.output, "{name}");
            assert!(long.cached >= tokens.cached && long.cached <= long.input, "{name}");
        }
        assert!(matches!(price.batch_percent, None | Some(50)), "{name}");
        assert!(entry.priced.max_output.is_none_or(|most| (1_000..=2_000_000).contains(&most)), "{name}");
        assert!(entry.tiers.get("flex").is_none_or(|factor| *factor == 0.5), "{name}");
        assert!(entry.tiers.get("priority").is_none_or(|factor| (1.5..=2.5).contains(factor)), "{name}");
    }
}

#[test]
fn a_model_is_priced_by_its_own_name_or_that_of_its_snapshot() {
    let table = built_in();
    for (provider, model, price) in [
        ("openai", "gpt-5", Some((1.25, 10.0))),
        ("responses", "gpt-5-mini", Some((0.25, 2.0))),
        ("responses", "gpt-5-mini-2025-08-07", Some((0.25, 2.0))),
        ("openai", "gpt-4o-2024-08-06", Some((2.5, 10.0))),
        ("openai", "gpt-4o-2024-05-13", Some((5.0, 15.0))),
        ("openai", "gpt-4-turbo-preview", Some((10.0, 30.0))),
        ("openai", "gpt-4-0613", Some((30.0, 60.0))),
        ("openai", "gpt-4-1106-preview", Some((10.0, 30.0))),
        ("openai", "ft:gpt-4o-mini-2024-07-18:acme:reviews:9x", Some((0.3, 1.2))),
        ("anthropic", "claude-sonnet-4-5-20250929", Some((3.0, 15.0))),
        ("anthropic", "claude-opus-4-20250514", Some((15.0, 75.0))),
        ("claude", "claude-3-5-haiku-latest", Some((0.8, 4.0))),
        ("google", "models/gemini-2.5-flash-lite-preview-09-2025", Some((0.1, 0.4))),
        ("googleoai", "gemini-2.0-flash-001", Some((0.1, 0.4))),
        ("together", "openai/GPT-OSS-20b", Some((0.05, 0.2))),
        ("azure", "gpt-4.1-nano", Some((0.1, 0.4))),
        ("azure", "our-deployment", None),
        ("openrouter", "anthropic/claude-opus-4.5", Some((5.0, 25.0))),
        ("openrouter", "openai/gpt-5", Some((1.25, 10.0))),
        ("openrouter", "openai/gpt-5:free", None),
        ("openrouter", "deepseek/deepseek-chat", None),
        ("openai", "gpt-5-turbo", None),
        ("openai", "gpt-5-mini-large", None),
        ("openai", "gpt-4o-audio-preview", None),
        ("openai", "gpt-4o-mini-tts", None),
        ("google", "gemini-2.5-flash-preview-tts", None),
        ("anthropic", "claude-opus-4-9", None),
        ("openai", "gpt", None),
        ("ollama", "llama3.2", None),
        ("generic", "gpt-5", None),
        ("nowhere", "gpt-5", None),
    ] {
        assert_eq!(dollars(&table, provider, model, None), price, "{provider}.{model}");
    }
}

#[test]
fn built_in_models_cost_nothing() {
    let table = built_in();
    for name in ["passthrough", "playback", "slow", "silent", "simulated"] {
        assert_eq!(dollars(&table, name, name, None), Some((0.0, 0.0)), "{name}");
    }
}

#[test]
fn a_service_tier_has_its_factor_and_a_dearer_one_must_be_known() {
    let table = built_in();
    for (model, tier, price) in [
        ("gpt-5", "flex", Some((0.625, 5.0))),
        ("gpt-5", "priority", Some((2.5, 20.0))),
        ("gpt-5", "fast", Some((2.5, 20.0))),
        ("gpt-5", "default", Some((1.25, 10.0))),
        ("gpt-4o-mini", "priority", Some((0.25, 1.0))),
        ("o4-mini", "priority", Some((2.0, 8.0))),
        ("gpt-4o", "flex", Some((2.5, 10.0))),
        ("gpt-5-nano", "priority", None),
    ] {
        assert_eq!(dollars(&table, "openai", model, Some(tier)), price, "{model} {tier}");
    }
    assert_eq!(dollars(&table, "anthropic", "claude-opus-5", Some("priority")), Some((5.0, 25.0)));
    let long = table.find("openai", "gpt-5.6-luna", Some("flex")).unwrap().price.long.unwrap();
    assert_eq!((long.0, long.1.input.pico()), (272_000, 200_000));
}

#[test]
fn long_prompts_the_batch_lane_and_the_longest_answer_are_known() {
    let table = built_in();
    let sonnet = table.find("anthropic", "claude-sonnet-4-5", None).unwrap();
    assert_eq!((sonnet.price.batch_percent, sonnet.max_output), (Some(50), Some(64_000)));
    let usage = TokenUsage { input: 200_001, output: 1_000, ..TokenUsage::default() };
    assert_eq!(sonnet.price.cost(&usage), Money::from_dollars(1.222_506).unwrap());
    let routed = table.find("openrouter", "anthropic/claude-sonnet-4.5", None).unwrap();
    assert_eq!((routed.price.batch_percent, routed.price.tokens), (None, sonnet.price.tokens));
}

#[test]
fn the_configuration_adds_prices_and_wins() {
    let table = configured(
        r#"
        ["lab.my-model"]
        input = 0.25
        output = 2
        batch = 0.333
        max_output = 16384
        above = { tokens = 1000, input = 0.5, output = 3 }
        tiers = { flex = 0.5 }
        ["lab.*"]
        input = 1
        output = 1
        reasoning = 3
        ["openai.gpt-5"]
        input = 9
        cached = 1
        cache_write = 10
        output = 9
        ["grok.grok-4"]
        input = 7
        output = 7
        [simulated]
        input = 100
        output = 200
        "#,
    )
    .unwrap();
    let own = table.find("lab", "my-model", None).unwrap();
    assert_eq!((own.source, own.as_of, own.max_output), (PriceSource::Config, "", Some(16_384)));
    assert_eq!(own.price.batch_percent, Some(34));
    let tokens = own.price.tokens;
    assert_eq!((tokens.cached, tokens.cache_write), (tokens.input, tokens.input));
    assert_eq!(tokens.reasoning, tokens.output);
    assert_eq!(own.price.long.unwrap().1.cached.pico(), 500_000);
    assert_eq!(dollars(&table, "lab", "my-model", Some("flex")), Some((0.125, 1.0)));
    assert_eq!(dollars(&table, "lab", "my-model", Some("priority")), Some((0.25, 2.0)));
    assert_eq!(dollars(&table, "lab", "another", None), Some((1.0, 1.0)));
    assert_eq!(table.find("lab", "another", None).unwrap().price.tokens.reasoning.pico(), 3_000_000);
    for (provider, model) in [("openai", "gpt-5"), ("responses", "gpt-5"), ("responses", "gpt-5-2025-08-07")]
    {
        assert_eq!(dollars(&table, provider, model, None), Some((9.0, 9.0)), "{provider}.{model}");
    }
    assert_eq!(dollars(&table, "azure", "gpt-5", None), Some((1.25, 10.0)));
    assert_eq!(dollars(&table, "openai", "gpt-5-mini", None), Some((0.25, 2.0)));
    assert_eq!(dollars(&table, "xai", "grok-4", None), Some((7.0, 7.0)));
    assert_eq!(dollars(&table, "simulated", "simulated", None), Some((100.0, 200.0)));
    let shown = table.entries().filter(|entry| (entry.provider, entry.model) == ("openai", "gpt-5"));
    assert_eq!(shown.map(|entry| entry.priced.source).collect::<Vec<_>>(), [PriceSource::Config]);
}

#[test]
fn an_own_price_keeps_the_longest_answer_that_is_known_unless_it_gives_one() {
    let known = built_in().find("openai", "gpt-5", None).unwrap().max_output;
    assert!(known.is_some());
    let own = configured("[\"openai.gpt-5\"]\ninput = 9\noutput = 9\n").unwrap();
    for (provider, model) in [("openai", "gpt-5"), ("responses", "gpt-5-2025-08-07")] {
        assert_eq!(own.find(provider, model, None).unwrap().max_output, known, "{provider}.{model}");
    }
    let mut shown = own.entries().filter(|entry| entry.priced.source == PriceSource::Config);
    assert_eq!(shown.next().unwrap().priced.max_output, known);
    let all = configured("[\"openai.*\"]\ninput = 9\noutput = 9\n").unwrap();
    assert_eq!(all.find("openai", "gpt-5", None).unwrap().max_output, known);
    assert_eq!(all.find("openai", "not-there-yet", None).unwrap().max_output, None);
    let shorter = configured("[\"openai.gpt-5\"]\ninput = 9\noutput = 9\nmax_output = 100\n").unwrap();
    assert_eq!(shorter.find("openai", "gpt-5", None).unwrap().max_output, Some(100));
}

#[test]
fn the_rows_of_a_provider_are_those_of_its_vendor() {
    let table = configured("[\"responses.x\"]\ninput = 1\noutput = 1\n").unwrap();
    let count = |provider: &str| table.entries_of(provider).count();
    assert_eq!(count("openai"), count("responses"));
    assert_eq!(count("azure") + 1, count("openai"));
    assert_eq!((count("claude"), count("googleoai")), (count("anthropic"), count("google")));
    assert!(count("anthropic") > 10);
    assert_eq!((count("ollama"), count("openrouter")), (0, 0));
}

#[test]
fn a_price_that_cannot_be_is_reported_with_its_key() {
    for (toml, message) in [
        ("[\"lab.m\"]\ninput = -1\noutput = 1", "`input` of `[prices.\"lab.m\"]` cannot be `-1`"),
        ("[\"lab.m\"]\ninput = 1\noutput = nan", "`output` of `[prices.\"lab.m\"]` cannot be `NaN`"),
        ("[\"lab.m\"]\ninput = 1\noutput = inf", "`output` of `[prices.\"lab.m\"]` cannot be `inf`"),
        ("[\"lab.m\"]\ninput = 1\noutput = 1\nbatch = 50", "`batch` of `[prices.\"lab.m\"]` cannot be `50`"),
        (
            "[\"lab.m\"]\ninput = 1\noutput = 1\ntiers = { fast = -2 }",
            "`tiers.fast` of `[prices.\"lab.m\"]` cannot be `-2`",
        ),
        (
            "[\"lab.m\"]\ninput = 1\noutput = 1\nabove = { tokens = 9, input = -3, output = 1 }",
            "`above.input` of `[prices.\"lab.m\"]` cannot be `-3`",
        ),
        ("[lab]\ninput = 1\noutput = 1", "`[prices.\"lab\"]` does not name a provider and a model"),
        ("[\"lab.\"]\ninput = 1\noutput = 1", "`[prices.\"lab.\"]` does not name a provider and a model"),
        (
            "[\"lab.m?seed=1\"]\ninput = 1\noutput = 1",
            "`[prices.\"lab.m?seed=1\"]` does not name a provider and a model",
        ),
    ] {
        let problem = configured(toml).unwrap_err();
        assert_eq!((problem.code, problem.message.as_str()), (ProblemCode::InvalidConfig, message));
        assert!(problem.hint.is_some(), "{message}");
    }
}
