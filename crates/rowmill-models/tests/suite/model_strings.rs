//! Model strings: what they mean and how invalid ones are reported.

use std::collections::BTreeMap;

use rowmill_models::{AliasConfig, ModelString, ProviderRegistry, built_in_alias_origin};
use rowmill_types::{Problem, ProblemCode};

fn parse(text: &str) -> Result<ModelString, Problem> {
    ModelString::parse(text, &ProviderRegistry::default())
}

#[test]
fn a_model_string_means_one_provider_one_model_and_its_settings() {
    for (text, expected) in [
        ("openai.gpt-4.1", "openai.gpt-4.1"),
        ("openai/gpt-4.1", "openai.gpt-4.1"),
        (" openai.gpt-4.1 ", "openai.gpt-4.1"),
        ("gpt-4.1-mini", "openai.gpt-4.1-mini"),
        ("gpt-5-mini", "responses.gpt-5-mini"),
        ("o3", "responses.o3"),
        ("o1-pro", "responses.o1-pro"),
        ("o4-mini", "responses.o4-mini"),
        ("claude-sonnet-4-5", "anthropic.claude-sonnet-4-5"),
        ("claude.claude-x", "anthropic.claude-x"),
        ("gemini-2.5-flash", "google.gemini-2.5-flash"),
        ("grok-4", "xai.grok-4"),
        ("deepseek-chat", "deepseek.deepseek-chat"),
        ("groq.openai/gpt-oss-120b", "groq.openai/gpt-oss-120b"),
        ("hf.moonshotai/Kimi-K2:groq?temp=1", "hf.moonshotai/Kimi-K2:groq?temperature=1"),
        ("ollama/llama3.2:3b", "ollama.llama3.2:3b"),
        ("generic.llama3.2", "generic.llama3.2"),
        ("passthrough", "passthrough"),
        ("openai.openai", "openai.openai"),
        ("slow?delay=0.1s", "slow?delay=100ms"),
        (
            "simulated?latency=50ms&jitter=0.2&failure_rate=0.02&seed=1",
            "simulated?seed=1&latency=50ms&jitter=0.2&failure_rate=0.02",
        ),
        ("openai.m?", "openai.m"),
        ("openai.m?temp=1&temperature=0.5", "openai.m?temperature=0.5"),
        ("openai.m?stop=a%26b%25", "openai.m?stop=a%26b%25"),
        ("openai.m?stop=%0A%C3%A9", "openai.m?stop=%0Aé"),
        (r#"openai.m?stop=["a","b"]"#, r#"openai.m?stop=["a","b"]"#),
        ("responses.m?transport=websocket", "responses.m?transport=ws"),
        ("anthropic.m?reasoning=adaptive", "anthropic.m?reasoning=auto"),
        ("anthropic.m?reasoning=2000", "anthropic.m?reasoning=2000"),
        ("openai.m?stream=on", "openai.m?stream=true"),
        ("grok-4?x_search=on&web_search=1", "xai.grok-4?web_search=true&x_search=true"),
    ] {
        let model = parse(text).unwrap();
        assert_eq!(model.to_string(), expected, "{text}");
        assert_eq!(parse(expected).unwrap(), model, "{expected} does not mean the same again");
    }
}

#[test]
fn the_parts_are_as_they_are_sent() {
    let model = parse("hf/org/model:route?max_tokens=5").unwrap();
    assert_eq!((model.provider.as_str(), model.model.as_str()), ("hf", "org/model:route"));
    assert_eq!(model.settings.iter().count(), 1);
}

const OPENAI: &str = "`openai` takes: reasoning, verbosity, structured, stream, service_tier, temperature, top_p, \
        presence_penalty, frequency_penalty, max_tokens, seed, stop";

/// An invalid string, its message, and the start of the hint.
const WRONG: &[(&str, &str, &str)] = &[
    ("slow.m", "`slow` is built in and takes no model", "write `slow` alone"),
    ("", "the model is empty", "write `provider.model`, e.g. `openai.gpt-5`"),
    ("?temp=1", "the model is empty", "write `provider.model`, e.g. `openai.gpt-5`"),
    ("openai.", "`openai.` does not name a model", "add the model after the provider: `openai.MODEL`"),
    ("openai", "`openai` is a provider; the model is missing", "add the model after it: `openai.MODEL`"),
    (
        "opnai.gpt-5",
        "unknown provider `opnai` in `opnai.gpt-5`",
        "did you mean `openai.gpt-5`? providers: responses, openai,",
    ),
    (
        "meta-llama/L",
        "unknown provider `meta-llama` in `meta-llama/L`",
        "write `provider.model`, e.g. `generic.meta-llama/L`; providers: responses,",
    ),
    (
        "llama3",
        "no provider is known for the model `llama3`",
        "write `provider.model`, e.g. `generic.llama3`; providers: responses,",
    ),
    (
        "pasthrough",
        "no provider is known for the model `pasthrough`",
        "did you mean `passthrough`? otherwise write `provider.model`",
    ),
    (
        "openai.gpt-5.high",
        "`openai.gpt-5.high` ends in `.high`, which is not part of a model's name",
        "use `?reasoning=high`: `openai.gpt-5?reasoning=high`",
    ),
    (
        "gpt-5.low",
        "`gpt-5.low` ends in `.low`, which is not part of a model's name",
        "use `?reasoning=low`: `responses.gpt-5?reasoning=low`",
    ),
    ("openai.m?temp", "`temp` is not of the form `key=value`", OPENAI),
    ("openai.m?colour=red", "`openai` has no key `colour`", OPENAI),
    ("openai.m?tempe=1", "`openai` has no key `tempe`", OPENAI),
    ("openai.m?top_k=1", "`openai` has no key `top_k`", "did you mean `top_p`? "),
    ("openai.m?transport=ws", "`openai` has no key `transport`", OPENAI),
    ("passthrough?temp=1", "`passthrough` has no key `temp`", "`passthrough` takes no keys"),
    (
        "openai.m?temp=hot",
        "`temp=hot` is not valid for `openai`",
        "`temperature` takes: a number from 0 to 2",
    ),
    (
        "openai.m?temp=2.5",
        "`temp=2.5` is not valid for `openai`",
        "`temperature` takes: a number from 0 to 2",
    ),
    (
        "openai.m?temp=NaN",
        "`temp=NaN` is not valid for `openai`",
        "`temperature` takes: a number from 0 to 2",
    ),
    (
        "openai.m?max_tokens=0",
        "`max_tokens=0` is not valid for `openai`",
        "`max_tokens` takes: a whole number from 1",
    ),
    (
        "openai.m?stop=%4",
        "`stop=%4` is not valid for `openai`",
        "`stop` takes: a value in which `%` is followed by two hexadecimal digits",
    ),
    ("openai.m?stop=", "`stop=` is not valid for `openai`", "`stop` takes: a text, or a JSON array of texts"),
    (
        "openai.m?web_search=true",
        "`openai` does not provide `web_search`",
        "these providers do: `responses`, `anthropic`, `google`, `openrouter`, `xai`, `openresponses`; omit \
         `web_search`",
    ),
    (
        "anthropic.m?x_search=true",
        "`anthropic` does not provide `x_search`",
        "these providers do: `xai`; omit `x_search`, or give the agent a tool for it",
    ),
    (
        "passthrough?web_fetch=false",
        "`passthrough` does not provide `web_fetch`",
        "these providers do: `anthropic`, `google`, `openrouter`; omit `web_fetch`",
    ),
    (
        "google.m?web_search=often",
        "`web_search=often` is not valid for `google`",
        "`web_search` takes: true, false",
    ),
    ("openai.m?stream=yes", "`stream=yes` is not valid for `openai`", "`stream` takes: true, false"),
    (
        "openai.m?reasoning=much",
        "`reasoning=much` is not valid for `openai`",
        "`reasoning` takes: auto, none,",
    ),
    (
        "openai.m?reasoning=2000",
        "`reasoning=2000` is not valid for `openai`",
        "`reasoning` takes: auto, none, minimal, low, medium, high, xhigh, max, off",
    ),
    (
        "anthropic.m?reasoning=minimal",
        "`reasoning=minimal` is not valid for `anthropic`",
        "`reasoning` takes: auto, none, low, medium, high, xhigh, max, on, off, or a number of tokens",
    ),
    (
        "groq.m?service_tier=priority",
        "`service_tier=priority` is not valid for `groq`",
        "`service_tier` takes: auto, on_demand, flex, performance",
    ),
    (
        "responses.m?transport=carrier-pigeon",
        "`transport=carrier-pigeon` is not valid for `responses`",
        "`transport` takes: http, sse, ws, auto",
    ),
    (
        "slow?delay=long",
        "`delay=long` is not valid for `slow`",
        "`delay` takes: a duration such as `100ms` or `2s`",
    ),
];

#[test]
fn wrong_strings_say_what_is_wrong_and_what_to_write() {
    for (text, message, hint) in WRONG {
        let problem = parse(text).unwrap_err();
        assert_eq!(problem.code, ProblemCode::InvalidModel, "{text}");
        assert_eq!(problem.message, *message, "{text}");
        let reported = problem.hint.unwrap();
        assert!(reported.starts_with(hint), "{text}: {reported}");
    }
}

#[test]
fn an_unknown_provider_lists_all_of_them() {
    let hint = parse("nowhere.m").unwrap_err().hint.unwrap();
    for name in
        ["responses", "openai", "anthropic", "google", "generic", "azure", "openresponses", "simulated"]
    {
        assert!(hint.contains(name), "{name} is not in {hint}");
    }
}

#[test]
fn every_built_in_alias_is_a_model_or_names_the_provider_that_is_missing() {
    let aliases = AliasConfig::default();
    let names: Vec<&str> = aliases.entries().map(|entry| entry.name).collect();
    assert!(names.len() > 120, "{} aliases", names.len());
    for name in names {
        let means = aliases.expand(name).unwrap();
        let missing = ["codexresponses", "metaai"].iter().find(|start| means.starts_with(**start));
        match (parse(name), missing) {
            (Ok(model), None) => assert!(!model.model.is_empty(), "{name}"),
            (Err(problem), Some(provider)) => assert_eq!(
                problem.message,
                format!("`{name}` means `{means}`, but rowmill has no provider `{provider}`")
            ),
            (result, _) => panic!("{name}: {result:?}"),
        }
    }
    assert_eq!(built_in_alias_origin(), ("fast-agent 0.10.9", "2026-08-18"));
}

/// The built-in names of fast-agent 0.10.9 as of 2026-08-18.
const FAST_AGENT_ALIASES: &str = "gpt51, gpt52, gpt54, gpt55, gpt56, gpt56-sol, gpt56-terra, gpt56-luna, gpt54-mini, gpt54-nano, \
     chatgpt, chat-latest, codex, sol, terra, luna, codexplan, codexplan55, codexplan54, codexplan53, \
     codexspark, sonnet, sonnet5, sonnet4, sonnet46, claude, haiku, haiku45, opus, opus4, opus5, opus46, \
     opus47, opus48, fable, fable5, deepseek, deepseekpro, gemini, gemini2, gemini25, gemini25pro, \
     gemini35, gemini35flash, gemini3.5flash, gemini3, gemini3.1, gemini31pro, gemini3.1flashlite, \
     gemini3flash, grok, grok4, grok43, grok45, grok46, muse, musecontrib, muse-spark, glimmer, minimax, \
     minimax25, minimax27, minimax3, minimax2.5, minimax21, kimi, kimi27code, kimik3, kimithink, gpt-oss, \
     gpt-oss-20b, glm47, glm51, glm5, glm52, glm, zaiglm, deepseek-hf, deepseek32, deepseek4-hf, \
     deepseek4pro-hf, deepseekv4pro-hf, DeepSeek V4 Flash 0731 (baseten), \
     DeepSeek V4 Flash 0731 (deepinfra), gemma4, kimi26, kimi26instant, kimi-2.6, kimi25, kimi25instant, \
     kimi-2.5, qwen35, qwen35instruct, qwen36, qwen36instruct, gpt-5.6-sol, gpt-5.6-terra, gpt-5.6-luna, \
     gpt-5.5, gpt-5.4, gpt-5.4-mini, gpt-5.4-nano, gpt-5.3-codex, gpt-5.2, gpt-4.1, gpt-4o, gpt-4.1-mini, \
     gpt-4.1-nano, Grok 4.6, Grok 4.6 (X Search), Grok 4.5, Grok 4.5 (X Search), Grok 4.3, \
     DeepSeek V4 Pro, Muse Spark 1.2, Muse Spark 1.2 (Contributor), Muse Spark 1.1, qwen-turbo, \
     qwen3-max, Kimi K3 (fireworks-ai), Kimi K3 (together), GLM 5.2 (zai-org), GLM 5.2 (fireworks-ai), \
     GLM 5.2 (deepinfra), kimi27, qwen3.6-27b, qwen3-32b, passthrough, playback";

#[test]
fn every_alias_of_fast_agent_is_known() {
    let aliases = AliasConfig::default();
    let known: Vec<&str> = aliases.entries().map(|entry| entry.name).collect();
    let names: Vec<&str> = FAST_AGENT_ALIASES.split(", ").collect();
    assert_eq!(names.len(), 129);
    for name in names {
        // Two of them are built-in models here, too, and stand for themselves.
        let is_built_in = || parse(name).is_ok_and(|model| model.to_string() == name);
        assert!(known.contains(&name) || is_built_in(), "{name}");
    }
}

#[test]
fn an_alias_gives_way_to_what_is_written_after_it() {
    for (text, expected) in [
        ("kimi26instant", "hf.moonshotai/Kimi-K2.6:novita?reasoning=off&temperature=0.6&top_p=0.95"),
        ("kimi26instant?temp=0", "hf.moonshotai/Kimi-K2.6:novita?reasoning=off&temperature=0&top_p=0.95"),
        ("kimi26instant:groq", "hf.moonshotai/Kimi-K2.6:groq?reasoning=off&temperature=0.6&top_p=0.95"),
        ("gpt-oss", "hf.openai/gpt-oss-120b:cerebras"),
        ("gpt-oss-20b:groq", "hf.openai/gpt-oss-20b:groq"),
        ("sonnet", "anthropic.claude-sonnet-5"),
        ("claude", "anthropic.claude-sonnet-5"),
        ("haiku?max_tokens=9", "anthropic.claude-haiku-4-5?max_tokens=9"),
        ("gemini3.5flash", "google.gemini-3.5-flash"),
        ("gpt-5.5", "responses.gpt-5.5?reasoning=medium"),
        ("gpt-5.5?reasoning=low", "responses.gpt-5.5?reasoning=low"),
        ("Grok 4.6 (X Search)", "xai.grok-4.6?x_search=true"),
        ("glm-5.2", "zai.glm-5.2"),
        ("moonshotai/Kimi-K2.6:novita", "hf.moonshotai/Kimi-K2.6:novita"),
    ] {
        let model = parse(text).unwrap();
        assert_eq!(model.to_string(), expected, "{text}");
        assert_eq!(parse(expected).unwrap(), model, "{expected} does not mean the same again");
    }
}

fn with_aliases(pairs: &[(&str, &str)], references: &[(&str, &str)]) -> Result<ProviderRegistry, Problem> {
    let owned = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, means)| ((*name).to_owned(), (*means).to_owned())).collect()
    };
    let references = BTreeMap::from([("system".to_owned(), owned(references))]);
    ProviderRegistry::default().with_aliases(AliasConfig { aliases: owned(pairs), references })
}

#[test]
fn own_aliases_and_references_win_over_built_in_ones_and_may_stand_for_each_other() {
    let own =
        [("quick", "haiku?temp=0"), ("haiku", "openai.gpt-5-mini?max_tokens=5"), ("usual", "$system.fast")];
    let providers =
        with_aliases(&own, &[("fast", "quick?max_tokens=7"), ("default", "$system.fast")]).unwrap();
    for (text, expected) in [
        ("quick", "openai.gpt-5-mini?temperature=0&max_tokens=5"),
        ("$system.fast", "openai.gpt-5-mini?temperature=0&max_tokens=7"),
        ("$system.default?temp=1", "openai.gpt-5-mini?temperature=1&max_tokens=7"),
        ("usual", "openai.gpt-5-mini?temperature=0&max_tokens=7"),
    ] {
        assert_eq!(ModelString::parse(text, &providers).unwrap().to_string(), expected, "{text}");
    }
}

#[test]
fn aliases_that_hide_something_or_run_in_a_circle_are_refused() {
    for (own, expected) in [
        (&[("a", "b"), ("b", "a?temp=0")][..], "aliases refer to each other in a cycle: `a` → `b` → `a`"),
        (&[("openai", "azure.x")], "`openai` in `[aliases]` would hide the provider `openai`"),
        (&[("openai.gpt-5", "azure.x")], "`openai.gpt-5` in `[aliases]` would hide the provider `openai`"),
        (&[("simulated", "openai.x")], "`simulated` in `[aliases]` would hide the provider `simulated`"),
        (&[("a:b", "openai.x")], "`a:b` in `[aliases]` cannot be the name of a model"),
        (&[("a", " ")], "`a` in `[aliases]` is empty"),
    ] {
        let problem = with_aliases(own, &[]).unwrap_err();
        assert_eq!((problem.code, problem.message.as_str()), (ProblemCode::InvalidConfig, expected));
    }
}

#[test]
fn names_that_stand_for_nothing_say_what_is_near_and_what_to_add() {
    let providers = with_aliases(&[("mine", "opnai.gpt-5")], &[("fast", "haiku")]).unwrap();
    for (text, message, hint) in [
        ("sonet", "no provider is known for the model `sonet`", "did you mean `sonnet`? otherwise write"),
        (
            "kimi26instnt",
            "no provider is known for the model `kimi26instnt`",
            "did you mean `kimi26instant`?",
        ),
        ("gpt-oss-120b", "no provider is known for the model `gpt-oss-120b`", "did you mean `gpt-oss-20b`?"),
        ("mine", "`mine` means `opnai.gpt-5`, but rowmill has no provider `opnai`", "choose another model"),
        (
            "muse-spark-1.2",
            "`muse-spark-1.2` is a model of `metaai`, but rowmill has no provider `metaai`",
            "choose another model, or add the provider as `[providers.metaai]`",
        ),
        (
            "$system.slow",
            "the model reference `$system.slow` is not defined",
            "add `slow = \"provider.model\"` under `[model_references.system]` in `rowmill.toml`; defined: \
             `$system.fast`",
        ),
        ("$fast", "`$fast` is not a model reference", "a reference has a namespace and a key"),
    ] {
        let problem = ModelString::parse(text, &providers).unwrap_err();
        assert_eq!(problem.message, message);
        let reported = problem.hint.unwrap();
        assert!(reported.starts_with(hint), "{text}: {reported}");
    }
}
