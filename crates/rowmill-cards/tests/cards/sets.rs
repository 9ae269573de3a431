//! Sets of cards that refer to each other.

use rowmill_cards::{AgentCard, CardSet};
use rowmill_types::Problem;

use crate::{local, refusal_text};

/// Cards from `name: fields` pairs, each from a file with its name.
fn cards(cards: &[(&str, &str)]) -> Vec<AgentCard> {
    cards.iter().map(|(name, text)| local(&format!("{name}.yaml"), &format!("\n{text}\n")).unwrap()).collect()
}

fn set(table: &[(&str, &str)]) -> Result<CardSet, Problem> {
    CardSet::new(cards(table))
}

fn plain() -> &'static str {
    "description: x"
}

#[test]
fn names_must_differ() {
    let found = refusal_text(set(&[("a", plain()), ("b", "name: a")]).unwrap_err());
    let message = "two agent cards have the name `a`: `a.yaml` and `b.yaml`";
    assert_eq!(found, (message.to_owned(), "set a different `name` for one of them".to_owned()));
}

#[test]
fn children_must_be_there() {
    for (card, field) in [
        ("type: chain\nsequence:\n- summarise", "`a.yaml`, line 4: `sequence`"),
        ("type: parallel\nfan_out: [summarize]\nfan_in: summarise", "`a.yaml`, line 4: `fan_in`"),
        (
            "type: evaluator_optimizer\ngenerator: summarize\nevaluator: summarise",
            "`a.yaml`, line 4: `evaluator`",
        ),
        ("type: maker\nworker: summarise", "`a.yaml`, line 3: `worker`"),
        ("agents: [summarise]", "`a.yaml`, line 2: `agents`"),
    ] {
        let found = refusal_text(set(&[("a", card), ("summarize", plain())]).unwrap_err());
        let message = format!("{field} names an agent that was not loaded: `summarise`");
        let hint = "did you mean `summarize`? loaded: `a`, `summarize`; add the card or its folder with \
                    another `agent_card`";
        assert_eq!(found, (message, hint.to_owned()));
    }
}

#[test]
fn a_circle_is_reported_with_its_path() {
    let table = [
        ("start", "agents: [leaf, a]"),
        ("leaf", plain()),
        ("a", "type: chain\nsequence: [leaf, b]"),
        ("b", "type: parallel\nfan_out: [leaf]\nfan_in: c"),
        ("c", "type: router\nagents: [leaf, a]"),
    ];
    let found = refusal_text(set(&table).unwrap_err());
    let message = "`a.yaml`, line 3: agents call each other in a cycle: `a` -> `b` -> `c` -> `a`";
    assert_eq!(found, (message.to_owned(), "remove one of these children from its card".to_owned()));
    let found = refusal_text(set(&[("a", "agents: [a]")]).unwrap_err());
    assert_eq!(found.0, "`a.yaml`, line 2: agents call each other in a cycle: `a` -> `a`");
}

#[test]
fn the_same_child_may_be_asked_from_several_places() {
    let table = [
        ("top", "agents: [left, right]"),
        ("left", "type: chain\nsequence: [leaf, leaf]"),
        ("right", "type: chain\nsequence: [leaf]"),
        ("leaf", plain()),
        ("apart", plain()),
    ];
    let set = set(&table).unwrap();
    let members: Vec<_> = set.cards_of_worker("top").into_iter().map(|card| card.name.as_str()).collect();
    assert_eq!(members, ["top", "left", "right", "leaf"]);
    assert!(set.cards_of_worker("nobody").is_empty());
    assert_eq!(set.card("apart").unwrap().name, "apart");
}

#[test]
fn a_long_row_of_children_is_visited_without_a_deep_stack() {
    let names: Vec<_> = (0..2000).map(|number| format!("n{number}")).collect();
    let texts = names.iter().skip(1).map(|next| format!("agents: [{next}]")).chain([plain().to_owned()]);
    let cards: Vec<_> =
        names.iter().zip(texts).map(|(name, text)| local(&format!("{name}.yaml"), &text).unwrap()).collect();
    assert_eq!(CardSet::new(cards).unwrap().cards_of_worker("n0").len(), 2000);
}

#[test]
fn the_worker_is_the_one_that_can_be_meant() {
    let tool = "tool_only: true";
    let default = "default: true";
    for (table, wanted, expected) in [
        (vec![("a", plain())], None, "a"),
        (vec![("a", tool), ("b", plain()), ("c", tool)], None, "b"),
        (vec![("a", plain()), ("b", default), ("c", plain())], None, "b"),
        (vec![("a", plain()), ("b", default)], Some("a"), "a"),
    ] {
        assert_eq!(set(&table).unwrap().choose_worker(wanted).unwrap().name, expected);
    }
}

#[test]
fn a_worker_that_cannot_be_is_reported() {
    let tool = "tool_only: true";
    for (table, wanted, message, hint) in [
        (
            vec![("a", plain()), ("b", plain()), ("c", tool)],
            None,
            "several agents could process the rows: `a`, `b`",
            "choose one with `agent`, or mark one card with `default: true`",
        ),
        (
            vec![("a", "default: true"), ("b", "default: true")],
            None,
            "several agents could process the rows: `a`, `b`",
            "choose one with `agent`, or mark one card with `default: true`",
        ),
        (
            vec![("a", tool)],
            None,
            "none of the loaded agent cards can be run: all are `tool_only`",
            "remove `tool_only` from the card that should process the rows",
        ),
        (
            vec![("sorter", plain()), ("c", tool)],
            Some("sotrer"),
            "no agent card has the name given to `agent`: `sotrer`",
            "did you mean `sorter`? loaded: `sorter`",
        ),
        (
            vec![("a", plain()), ("c", tool)],
            Some("c"),
            "the agent given to `agent` is `tool_only`: `c`",
            "agents that can be run: `a`",
        ),
    ] {
        let found = refusal_text(set(&table).unwrap().choose_worker(wanted).unwrap_err());
        assert_eq!(found, (message.to_owned(), hint.to_owned()));
    }
}
