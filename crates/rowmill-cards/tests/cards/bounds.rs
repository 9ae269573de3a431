//! Generated texts: each is a card or a problem, and the result comes quickly.

use proptest::prelude::*;
use rowmill_cards::{CardSet, MessageFileFormat, parse_message_file};
use rowmill_core::variables::InstructionVariables;

use crate::{local, mistake, remote};

/// Fragments of cards, so that generated texts resemble real ones.
fn line() -> impl Strategy<Value = String> {
    let keys = "type name agents model request_params mcp_connect function_tools tool_hooks tool_policy \
                tool_input_schema messages variables sequence fan_out k plan_iterations instruction servers \
                tools << api_key ? skills x";
    let values = "~agent~chain~MAKER~router~[a]~{a: b}~{target: x}~- a~true~1~-1~.inf~1e999~null~'a~\"\\~|~>-~\
                  &a [*a]~*a~!!binary x~!x y~a.py:b~${A}~{{file:x}}~{{a}}~---~  b: {c: [~99999999999999999999";
    let key = prop::sample::select(keys.split(' ').collect::<Vec<_>>());
    let value = prop_oneof![
        prop::sample::select(values.split('~').collect::<Vec<_>>()).prop_map(str::to_owned),
        "\\PC{0,12}",
    ];
    (prop::sample::select(vec!["", "  ", "- ", "\t"]), key, value)
        .prop_map(|(indent, key, value)| format!("{indent}{key}: {value}\n"))
}

/// Performs every operation on a card.
fn handle(source: &str, text: &str) {
    for card in [local(source, text), remote(source, text)].into_iter().flatten() {
        let mut card = card;
        let texts: Vec<_> = card
            .instruction_includes()
            .into_iter()
            .map(|include| (include.placeholder, "{{a}}".to_owned()))
            .collect();
        card.insert_includes(&texts).unwrap();
        let name = card.name.clone();
        let filled = card.clone().fill_variables(&InstructionVariables::default());
        assert!(
            filled.unfilled.iter().all(|one| card.instruction.as_ref().unwrap().contains(&one.placeholder))
        );
        if let Ok(set) = CardSet::new(vec![card]) {
            assert_eq!(set.cards_of_worker(&name).len(), 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_a_card_or_a_problem(text in "\\PC{0,80}|(?s).{0,40}") {
        handle("a.yaml", &text);
        handle("a.md", &text);
        handle("a.md", &format!("---\n{text}\n---\n{text}"));
        drop(parse_message_file(&text, MessageFileFormat::Json, "m"));
        drop(parse_message_file(&text, MessageFileFormat::Delimited, "m"));
    }

    #[test]
    fn any_lines_are_a_card_or_a_problem(lines in prop::collection::vec(line(), 0..8), body in "[{}\\\\a:-]{0,20}") {
        let yaml = lines.concat();
        handle("a.yaml", &yaml);
        handle("a.md", &format!("---\n{yaml}---\n{body}"));
    }
}

#[test]
fn deep_and_huge_texts_are_refused() {
    let nested = |open: &str, close: &str| format!("variables: {}{}", open.repeat(3000), close.repeat(3000));
    let blocks: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let mut bomb = "a: &a0 [x, x]\n".to_owned();
    for level in 1..40 {
        bomb.push_str(&format!("a{level}: &a{level} [*a{0}, *a{0}, *a{0}, *a{0}]\n", level - 1));
    }
    let many: String = (0..30_000).map(|number| format!("k{number}: 1\n")).collect();
    for text in [nested("[", "]"), nested("{a: ", "}"), nested("- ", ""), blocks, bomb, many] {
        let (message, _) = mistake("a.yaml", &text);
        assert!(message.ends_with("cannot be read as YAML"), "{message}");
    }
    let (message, hint) = mistake("a.yaml", &format!("description: {}", "x".repeat(2 << 20)));
    assert_eq!(message, "`a.yaml`: its YAML is longer than 1024 KiB");
    assert_eq!(hint, "move long texts to the body or to files");
}

#[test]
fn a_long_body_is_fine() {
    let body = "You sort. ".repeat(300_000);
    let card = local("a.md", &format!("---\n---\n{body}")).unwrap();
    assert_eq!(card.instruction.unwrap().len(), body.len() - 1);
}
