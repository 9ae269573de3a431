use rowmill_types::Message;

use super::*;
use crate::test_support::{conversation, file, with_files, with_tools};

fn gpt() -> TokenCounter {
    token_counter("responses", "gpt-5.4-mini")
}

/// The prompt tokens of one whole request.
fn request_tokens(
    counter: &TokenCounter,
    instruction: Option<&str>,
    schema: Option<&str>,
    messages: &[Message],
) -> u64 {
    fixed_tokens(counter, instruction, schema) + message_tokens(counter, messages)
}

#[test]
fn known_texts_have_their_known_number_of_tokens() {
    let cl100k = token_counter("openai", "gpt-4-0613");
    assert_eq!(cl100k.accuracy(), CountAccuracy::Exact { name: "cl100k_base" });
    for (text, o200k, cl) in [
        ("", 0, 0),
        ("hello world", 2, 2),
        ("tiktoken is great!", 6, 6),
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 8, 9),
        ("<|endoftext|>", 7, 7),
    ] {
        assert_eq!((gpt().count(text), cl100k.count(text)), (o200k, cl), "{text}");
    }
}

#[test]
fn the_tokenizer_follows_the_name_of_the_model() {
    for (provider, model, accuracy) in [
        ("openai", "gpt-4o-mini", CountAccuracy::Exact { name: "o200k_base" }),
        ("openai", "gpt-4.1-nano-2025-04-14", CountAccuracy::Exact { name: "o200k_base" }),
        ("openai", "ft:gpt-4o-mini-2024-07-18:acme::9", CountAccuracy::Exact { name: "o200k_base" }),
        ("azure", "o3-mini", CountAccuracy::Exact { name: "o200k_base" }),
        ("groq", "openai/gpt-oss-120b", CountAccuracy::Exact { name: "o200k_base" }),
        ("openai", "gpt-3.5-turbo", CountAccuracy::Exact { name: "cl100k_base" }),
        ("anthropic", "claude-sonnet-4-5", CountAccuracy::Estimate { percent: 25 }),
        ("openrouter", "anthropic/claude-opus-4.7", CountAccuracy::Estimate { percent: 30 }),
        ("hf", "meta-llama/Llama-3.3-70B-Instruct:groq", CountAccuracy::Estimate { percent: 15 }),
        ("lab", "something", CountAccuracy::Estimate { percent: 25 }),
        ("simulated", "simulated", CountAccuracy::Exact { name: "characters / 4" }),
    ] {
        assert_eq!(token_counter(provider, model).accuracy(), accuracy, "{provider}.{model}");
    }
}

#[test]
fn an_estimate_has_the_ratio_of_its_family() {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(100);
    let exact = gpt().count(&text);
    assert_eq!(token_counter("anthropic", "claude-haiku-4-5").count(&text), (exact * 6).div_ceil(5));
    // For Mistral every digit is a token; for OpenAI three digits are one.
    assert_eq!(
        (gpt().count("123456"), token_counter("mistral", "mistral-large-2512").count("123456")),
        (2, 7)
    );
}

#[test]
fn a_long_text_is_counted_in_pieces_without_changing_the_number() {
    let lines: String = (0..20_000).map(|n| format!("{n}: The quick (brown) fox,\n  jumps\n\n")).collect();
    let words = "word after word and yet another ".repeat(20_000);
    for text in [&lines, &words] {
        let whole = tiktoken_rs::o200k_base_singleton().count_ordinary(text) as u64;
        assert!(text.len() > 500_000);
        assert_eq!(gpt().count(text), whole);
    }
}

#[test]
fn a_text_without_any_break_is_counted_too() {
    for text in [" \t".repeat(1_000_000), "中文".repeat(100_000), "a".repeat(1_000_000)] {
        let tokens = gpt().count(&text);
        assert!(tokens > 1_000 && tokens < text.len() as u64, "{tokens}");
    }
}

#[test]
fn a_request_has_the_overhead_of_its_messages_and_its_reply() {
    let hello = [Message::user("hello world")];
    assert_eq!(request_tokens(&gpt(), None, None, &hello), 2 + 4 + 3);
    assert_eq!(request_tokens(&gpt(), Some("hello world"), None, &hello), 2 * (2 + 4) + 3);
    let schema = "{\n  \"type\": \"object\"\n}";
    let text = gpt().count("{\"type\":\"object\"}");
    assert_eq!(request_tokens(&gpt(), None, Some(schema), &hello), 2 + 4 + 3 + text);
    let talk = [Message::user("hello world"), Message::assistant("hello"), Message::user("again")];
    assert_eq!(message_tokens(&gpt(), &talk), 4 + 3 * 4);
    assert_eq!(request_tokens(&token_counter("simulated", "simulated"), Some("x"), None, &hello), 3);
}

#[test]
fn tools_their_calls_and_their_results_are_counted() {
    let tools = with_tools("gpt-5", None).tools;
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
    let texts = ["weather", "Tells it.", schema, "now", r#"{"type":"object","properties":{}}"#];
    let expected: u64 = texts.iter().map(|text| gpt().count(text)).sum();
    assert_eq!(tool_tokens(&gpt(), &tools), expected + 2 * 8);
    assert_eq!(tool_tokens(&token_counter("simulated", "simulated"), &tools), 0);
    let texts = ["q", "Let me see.", "12 \"C\"", "broken", "weather", r#"{"city":"Ü\"x\""}"#, "now", "{}"];
    let expected: u64 = texts.iter().map(|text| gpt().count(text)).sum();
    assert_eq!(message_tokens(&gpt(), &conversation()), expected + 4 * 4 + 4 * 8);
}

#[test]
fn files_are_counted_with_their_message_and_make_the_count_an_estimate() {
    let text = with_files("hello world", vec![file("a.txt", "text/plain", b"hello world")]);
    let picture = with_files("hello world", vec![file("a.png", "image/png", b"no header")]);
    let (text, picture) = ([text], [picture]);
    assert_eq!(message_tokens(&gpt(), &text), 2 + 4 + 2 + gpt().count("a.txt") + 4);
    assert_eq!(message_tokens(&gpt(), &picture), 2 + 4 + 70 + 140 * 4);
    assert_eq!(gpt().accuracy_with_files(), CountAccuracy::Estimate { percent: 50 });
    let built_in = token_counter("simulated", "simulated");
    assert_eq!(message_tokens(&built_in, &picture), 3, "built-in models look at no files");
    assert_eq!(built_in.accuracy_with_files(), built_in.accuracy());
}
