//! Cards as authors write them, and the messages about mistakes in them.
#![expect(clippy::unwrap_used, reason = "a test may stop where it finds something wrong")]

mod bounds;
mod fields;
mod instructions;
mod messages;
mod mistakes;
mod nested_mistakes;
mod sets;

use rowmill_cards::{AgentCard, CardOrigin, UnparsedCard, join_problems, parse_card};
use rowmill_types::{Problem, ProblemCode};

/// A small environment.
fn environment(name: &str) -> Option<String> {
    match name {
        "MODEL" => Some("openai.gpt-5".to_owned()),
        "TOKEN" => Some("planted-secret".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn local(source: &str, text: &str) -> Result<AgentCard, Problem> {
    parse_card(&UnparsedCard { source, text, origin: CardOrigin::Local { environment: &environment } })
        .map_err(join_problems)
}

fn remote(source: &str, text: &str) -> Result<AgentCard, Problem> {
    parse_card(&UnparsedCard { source, text, origin: CardOrigin::Remote }).map_err(join_problems)
}

/// A YAML card that must be valid.
fn yaml(text: &str) -> AgentCard {
    local("a.yaml", text).unwrap()
}

/// A card that must be invalid: its message without the cause, and its hint.
fn mistake(source: &str, text: &str) -> (String, String) {
    refusal_text(local(source, text).unwrap_err())
}

fn refusal_text(problem: Problem) -> (String, String) {
    assert_eq!(problem.code, ProblemCode::InvalidCard);
    (problem.message.to_string(), problem.hint.unwrap().to_string())
}

/// Checks that each text gives its message and its hint, word for word.
fn assert_mistakes(table: &[(&str, &str, &str)]) {
    for (text, message, hint) in table {
        let found = mistake("a.yaml", text);
        assert_eq!((found.0.as_str(), found.1.as_str()), (*message, *hint), "{text}");
    }
}
