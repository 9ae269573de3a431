//! Tools that run at the provider.

use crate::agents_support::{results, ruled, run_cards, write_cards, write_prompt};
use serde_json::json;

#[test]
fn tools_of_the_provider_are_passed_on_and_their_sources_are_kept() {
    for (model, front, tool) in [
        ("responses.m?web_search=true", "", "web_search"),
        ("responses.m", "web_search: true", "web_search"),
        ("anthropic.m", "web_search: true", "web_search"),
        ("anthropic.m?web_fetch=true", "", "web_fetch"),
        ("google.m", "web_search: true", "web_search"),
        ("google.m?web_fetch=true", "", "web_fetch"),
    ] {
        let (simulator, place) = ruled(&json!([
            {"then": {"text": "It rains.", "cite": [{"url": "https://example.com/rain", "title": "Rain"}]}}
        ]));
        write_cards(&place, &[("solo", front, "Look it up.")]);
        write_prompt(&place, "weather?");
        run_cards(&place, &["-m", model, "--telemetry-output", "t.jsonl"]).ok();
        let seen = simulator.calls();
        assert_eq!(seen[0].tools, [tool], "{model} {front}");
        assert_eq!(results(&place), [json!("It rains.")], "{model}");
        let hosted = &place.json("t.jsonl")[0]["usage"]["provider_attempts"][0]["hosted_tools"];
        assert!(hosted.to_string().contains("https://example.com/rain"), "{model}: {hosted}");
    }
}

#[test]
fn a_tool_that_the_provider_does_not_have_is_one_error_before_the_first_row() {
    for (model, front, message) in [
        ("generic.m?web_search=true", "", "web_search"),
        ("generic.m", "web_search: true", "web_search"),
        ("openai.m", "web_search: true", "web_search"),
        ("responses.m", "web_fetch: true", "web_fetch"),
        ("anthropic.m", "x_search: true", "x_search"),
    ] {
        let (simulator, place) = ruled(&json!([]));
        write_cards(&place, &[("solo", front, "Look it up.")]);
        write_prompt(&place, "weather?");
        let ended = run_cards(&place, &["-m", model]).code(1).says(message);
        assert_eq!(ended.stderr.matches("error[").count(), 1, "{}", ended.stderr);
        assert_eq!(simulator.calls().len(), 0);
        assert!(!place.exists("out.jsonl"));
    }
}

#[test]
fn tools_of_the_provider_stand_beside_those_of_the_agent() {
    for model in ["responses.m", "anthropic.m"] {
        let (simulator, place) = ruled(&json!([
            {"when": {"turn": 1, "tool": "find"}, "then": {"calls": [{"name": "find"}], "cite": [{"url": "https://example.com/a"}]}},
            {"when": {"turn": 2}, "then": {"text": "{{last}}"}}
        ]));
        write_cards(&place, &[("solo", "web_search: true", "Look it up.")]);
        write_prompt(&place, "weather?");
        run_cards(&place, &["-m", model, "--stub", "find=text:found"]).ok();
        assert_eq!(simulator.calls()[0].tools, ["find", "web_search"], "{model}");
        assert_eq!(results(&place), [json!("found")], "{model}");
    }
}
