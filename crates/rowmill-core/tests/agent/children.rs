//! Agents that other agents call like tools.

use std::time::Duration;

use rowmill_core::agent::{AgentGraph, AgentKind, AgentSettings};
use rowmill_core::validate::ResultSchema;
use rowmill_types::{RowError, RowErrorKind};

use crate::harness::*;

/// `boss` has the children `a` and `b`.
fn family(boss: AgentSettings) -> AgentGraph {
    let children = vec![child(0, "a"), child(1, "b")];
    graph(vec![agent("a"), agent("b"), agent_with("boss", AgentSettings { children, ..boss })])
}

fn asked_for(graph: AgentGraph, wanted: &[(&str, &str)]) -> GraphHarness {
    let mut harness = GraphHarness::ask(graph, "go");
    harness.answer_with("boss", calls(wanted));
    harness
}

fn message(text: &str) -> String {
    format!(r#"{{"message":"{text}"}}"#)
}

#[test]
fn a_child_gets_its_message_and_its_answer_is_the_result_of_the_call() {
    let mut harness = asked_for(
        family(AgentSettings::default()),
        &[("b", &message("one")), ("a", r#"{"message":"two","n":1}"#)],
    );
    assert_eq!(harness.waits_for(), ["b", "a"]);
    assert_eq!(harness.asked("b"), "one");
    assert_eq!(harness.asked("a"), r#"{"message":"two","n":1}"#);
    harness.answer("a", "A");
    harness.fail("b", RowError::new(RowErrorKind::ServerError, "down"));
    let messages = harness.messages("boss");
    assert_eq!(texts(messages), ["go", "", "the agent failed: down", "A"]);
    assert!(
        messages[2].answered_call.as_ref().unwrap().is_error
            && !messages[3].answered_call.as_ref().unwrap().is_error
    );
    harness.answer("boss", "done");
    assert_eq!((harness.text().as_str(), harness.row_state.turn_count()), ("done", 4));
}

#[test]
fn only_max_parallel_children_work_at_once_and_the_others_follow_in_order() {
    for (most, at_first) in [(1, 1), (2, 2), (0, 1)] {
        let boss = AgentSettings { max_parallel: Some(most), ..AgentSettings::default() };
        let wanted = [("a", message("1")), ("b", message("2")), ("a", message("3"))];
        let wanted: Vec<(&str, &str)> = wanted.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let mut harness = asked_for(family(boss), &wanted);
        assert_eq!(harness.open.len(), at_first, "max_parallel {most}");
        assert_eq!(harness.asked("a"), "1");
        harness.answer("a", "r1");
        assert_eq!(harness.asked("b"), "2");
        harness.answer("b", "r2");
        assert_eq!(harness.asked("a"), "3");
        harness.answer("a", "r3");
        assert_eq!(texts(harness.messages("boss")), ["go", "", "r1", "r2", "r3"]);
    }
}

#[test]
fn a_child_whose_time_is_up_is_reported_as_an_error_and_what_it_still_says_changes_nothing() {
    let boss = AgentSettings { child_timeout: Some(Duration::from_secs(3)), ..AgentSettings::default() };
    let mut harness = asked_for(family(boss), &[("a", &message("1")), ("b", &message("2"))]);
    assert_eq!(harness.waits_for(), ["watch 1 for 3 s", "a", "watch 2 for 3 s", "b"]);
    harness.expire();
    harness.answer("a", "too late");
    harness.answer("b", "in time");
    // The watch of a child that has ended has no effect.
    harness.expire();
    assert_eq!(
        texts(harness.messages("boss")),
        ["go", "", "the agent failed: no answer within 3 s", "in time"]
    );
    harness.answer("boss", "done");
    assert_eq!(harness.text(), "done");
}

#[test]
fn everything_below_a_child_whose_time_is_up_is_forgotten() {
    let middle = AgentSettings { children: vec![child(0, "leaf")], ..AgentSettings::default() };
    let boss = AgentSettings {
        children: vec![child(1, "middle")],
        child_timeout: Some(Duration::from_secs(3)),
        max_parallel: Some(1),
        ..AgentSettings::default()
    };
    let graph = graph(vec![agent("leaf"), agent_with("middle", middle), agent_with("boss", boss)]);
    let mut harness = asked_for(graph, &[("middle", &message("1")), ("middle", &message("2"))]);
    harness.answer_with("middle", calls(&[("leaf", &message("deep")), ("leaf", &message("deeper"))]));
    assert_eq!(harness.waits_for(), ["watch 1 for 3 s", "leaf", "leaf"]);
    harness.expire();
    harness.answer("leaf", "too late");
    assert!(harness.row_state.node_has_ended(2) && harness.row_state.node_has_ended(3));
    assert_eq!(harness.waits_for(), ["leaf", "watch 4 for 3 s", "middle"]);
    assert_eq!(harness.asked("middle"), "2");
}

#[test]
fn arguments_of_a_child_are_checked_like_those_of_a_tool() {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
    let arguments = Some(ResultSchema::parse(schema, "test").unwrap());
    let boss = AgentSettings {
        children: vec![rowmill_core::agent::ChildAgent { arguments, ..child(0, "a") }],
        ..AgentSettings::default()
    };
    let graph = graph(vec![agent("a"), agent_with("boss", boss)]);
    let mut harness = asked_for(graph, &[("a", "{}"), ("a", r#"{"city": "Ulm"}"#)]);
    assert_eq!(harness.asked("a"), r#"{"city":"Ulm"}"#);
    harness.answer("a", "fine");
    let message = harness.messages("boss")[2].text.as_str();
    assert_eq!(message, "the arguments of `a` do not satisfy its schema: \"city\" is a required property");
}

#[test]
fn the_turns_of_a_row_count_those_of_children() {
    let graph = family(AgentSettings::default()).with_turns(Some(2));
    let mut harness = asked_for(graph, &[("a", &message("1")), ("b", &message("2"))]);
    // The second child had no turns left; neither has its caller.
    assert_eq!(harness.waits_for(), ["a"]);
    harness.answer("a", "A");
    let error = harness.outcome().unwrap_err();
    assert_eq!((error.kind, harness.row_state.turn_count()), (RowErrorKind::TurnLimit, 2));
}

#[test]
fn a_child_is_asked_for_text_even_where_the_row_has_a_schema() {
    let boss = AgentSettings { children: vec![child(0, "a")], ..AgentSettings::default() };
    let graph = graph_with_schema(vec![agent("a"), agent_with("boss", boss)]);
    let mut harness = asked_for(graph, &[("a", &message("1"))]);
    harness.answer("a", "plain text");
    harness.answer("boss", r#"{"n":1}"#);
    assert_eq!(harness.outcome(), Ok(r#"{"n":1}"#.to_owned()));
}

#[test]
fn transcripts_hold_every_conversation_even_one_whose_time_was_up() {
    let boss = AgentSettings { child_timeout: Some(Duration::from_secs(3)), ..AgentSettings::default() };
    let graph = family(boss).keep_transcripts(true);
    let mut harness = asked_for(graph, &[("a", &message("1")), ("b", &message("2"))]);
    harness.expire();
    harness.answer("a", "too late");
    harness.answer("b", "B");
    harness.answer("boss", "done");
    let reported = harness.row_state.into_transcript().conversations;
    let text: Vec<(usize, Vec<&str>)> = reported
        .iter()
        .map(|conversation| (conversation.agent_index, texts(&conversation.messages)))
        .collect();
    let failed = "the agent failed: no answer within 3 s";
    assert_eq!(text, [(2, vec!["go", "", failed, "B", "done"]), (0, vec!["1"]), (1, vec!["2", "B"])]);
}

#[test]
fn a_transcript_tells_who_had_each_conversation_begun_and_by_which_call() {
    let chain = AgentKind::Chain { sequence: vec![0, 1], cumulative: false };
    let children = vec![child(0, "a"), child(2, "line")];
    let agents = vec![
        agent("a"),
        agent("b"),
        agent_of_kind("line", chain),
        agent_with("boss", AgentSettings { children, ..AgentSettings::default() }),
    ];
    let mut harness =
        asked_for(graph(agents).keep_transcripts(true), &[("a", &message("1")), ("line", &message("2"))]);
    harness.answer("a", "A");
    harness.answer("a", "first of the chain");
    harness.answer("b", "B");
    harness.answer("boss", "done");
    let reported = harness.row_state.into_transcript().conversations;
    let callers: Vec<_> = reported
        .iter()
        .map(|reported| reported.caller.as_ref().map(|caller| (caller.conversation, caller.call.is_some())))
        .collect();
    // A workflow stands between the boss and the agents of the chain.
    assert_eq!(callers, [None, Some((0, true)), Some((0, false)), Some((0, false))]);
}
