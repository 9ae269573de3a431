//! Agents that other agents call like tools.

use std::time::Duration;

use rowmill_core::agent::{Agent, Cast, Kind};
use rowmill_core::validate::ResultSchema;
use rowmill_types::{ErrorKind, RowError};

use crate::stage::*;

/// `boss` has the children `a` and `b`.
fn family(boss: Agent) -> Cast {
    let children = vec![child(0, "a"), child(1, "b")];
    cast(vec![agent("a"), agent("b"), agent_with("boss", Agent { children, ..boss })])
}

fn asked_for(cast: Cast, wanted: &[(&str, &str)]) -> Stage {
    let mut stage = Stage::ask(cast, "go");
    stage.answer_with("boss", calls(wanted));
    stage
}

fn message(text: &str) -> String {
    format!(r#"{{"message":"{text}"}}"#)
}

#[test]
fn a_child_gets_its_message_and_its_answer_is_the_result_of_the_call() {
    let mut stage =
        asked_for(family(Agent::default()), &[("b", &message("one")), ("a", r#"{"message":"two","n":1}"#)]);
    assert_eq!(stage.waits_for(), ["b", "a"]);
    assert_eq!(stage.asked("b"), "one");
    assert_eq!(stage.asked("a"), r#"{"message":"two","n":1}"#);
    stage.answer("a", "A");
    stage.fail("b", RowError::new(ErrorKind::ServerError, "down"));
    let messages = stage.messages("boss");
    assert_eq!(texts(messages), ["go", "", "the agent failed: down", "A"]);
    assert!(
        messages[2].answers.as_ref().unwrap().is_error && !messages[3].answers.as_ref().unwrap().is_error
    );
    stage.answer("boss", "done");
    assert_eq!((stage.text().as_str(), stage.course.turns()), ("done", 4));
}

#[test]
fn only_max_parallel_children_work_at_once_and_the_others_follow_in_order() {
    for (most, at_first) in [(1, 1), (2, 2), (0, 1)] {
        let boss = Agent { max_parallel: Some(most), ..Agent::default() };
        let wanted = [("a", message("1")), ("b", message("2")), ("a", message("3"))];
        let wanted: Vec<(&str, &str)> = wanted.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let mut stage = asked_for(family(boss), &wanted);
        assert_eq!(stage.open.len(), at_first, "max_parallel {most}");
        assert_eq!(stage.asked("a"), "1");
        stage.answer("a", "r1");
        assert_eq!(stage.asked("b"), "2");
        stage.answer("b", "r2");
        assert_eq!(stage.asked("a"), "3");
        stage.answer("a", "r3");
        assert_eq!(texts(stage.messages("boss")), ["go", "", "r1", "r2", "r3"]);
    }
}

#[test]
fn a_child_whose_time_is_up_is_told_as_an_error_and_what_it_still_says_changes_nothing() {
    let boss = Agent { child_timeout: Some(Duration::from_secs(3)), ..Agent::default() };
    let mut stage = asked_for(family(boss), &[("a", &message("1")), ("b", &message("2"))]);
    assert_eq!(stage.waits_for(), ["watch 1 for 3 s", "a", "watch 2 for 3 s", "b"]);
    stage.expire();
    stage.answer("a", "too late");
    stage.answer("b", "in time");
    // The watch of a child that has ended has no effect.
    stage.expire();
    assert_eq!(
        texts(stage.messages("boss")),
        ["go", "", "the agent failed: no answer within 3 s", "in time"]
    );
    stage.answer("boss", "done");
    assert_eq!(stage.text(), "done");
}

#[test]
fn everything_below_a_child_whose_time_is_up_is_forgotten() {
    let middle = Agent { children: vec![child(0, "leaf")], ..Agent::default() };
    let boss = Agent {
        children: vec![child(1, "middle")],
        child_timeout: Some(Duration::from_secs(3)),
        max_parallel: Some(1),
        ..Agent::default()
    };
    let cast = cast(vec![agent("leaf"), agent_with("middle", middle), agent_with("boss", boss)]);
    let mut stage = asked_for(cast, &[("middle", &message("1")), ("middle", &message("2"))]);
    stage.answer_with("middle", calls(&[("leaf", &message("deep")), ("leaf", &message("deeper"))]));
    assert_eq!(stage.waits_for(), ["watch 1 for 3 s", "leaf", "leaf"]);
    stage.expire();
    stage.answer("leaf", "too late");
    assert!(stage.course.has_ended(2) && stage.course.has_ended(3));
    assert_eq!(stage.waits_for(), ["leaf", "watch 4 for 3 s", "middle"]);
    assert_eq!(stage.asked("middle"), "2");
}

#[test]
fn arguments_of_a_child_are_checked_like_those_of_a_tool() {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
    let arguments = Some(ResultSchema::parse(schema, "test").unwrap());
    let boss = Agent {
        children: vec![rowmill_core::agent::Child { arguments, ..child(0, "a") }],
        ..Agent::default()
    };
    let cast = cast(vec![agent("a"), agent_with("boss", boss)]);
    let mut stage = asked_for(cast, &[("a", "{}"), ("a", r#"{"city": "Ulm"}"#)]);
    assert_eq!(stage.asked("a"), r#"{"city":"Ulm"}"#);
    stage.answer("a", "fine");
    let told = stage.messages("boss")[2].text.as_str();
    assert_eq!(told, "the arguments of `a` do not satisfy its schema: \"city\" is a required property");
}

#[test]
fn the_turns_of_a_row_count_those_of_children() {
    let cast = family(Agent::default()).with_turns(Some(2));
    let mut stage = asked_for(cast, &[("a", &message("1")), ("b", &message("2"))]);
    // The second child had no turns left; neither has its caller.
    assert_eq!(stage.waits_for(), ["a"]);
    stage.answer("a", "A");
    let error = stage.outcome().unwrap_err();
    assert_eq!((error.kind, stage.course.turns()), (ErrorKind::TurnLimit, 2));
}

#[test]
fn a_child_is_asked_for_text_even_where_the_row_has_a_schema() {
    let boss = Agent { children: vec![child(0, "a")], ..Agent::default() };
    let cast = cast_with_schema(vec![agent("a"), agent_with("boss", boss)]);
    let mut stage = asked_for(cast, &[("a", &message("1"))]);
    stage.answer("a", "plain text");
    stage.answer("boss", r#"{"n":1}"#);
    assert_eq!(stage.outcome(), Ok(r#"{"n":1}"#.to_owned()));
}

#[test]
fn transcripts_hold_every_conversation_even_one_whose_time_was_up() {
    let boss = Agent { child_timeout: Some(Duration::from_secs(3)), ..Agent::default() };
    let cast = family(boss).with_transcripts(true);
    let mut stage = asked_for(cast, &[("a", &message("1")), ("b", &message("2"))]);
    stage.expire();
    stage.answer("a", "too late");
    stage.answer("b", "B");
    stage.answer("boss", "done");
    let told = stage.course.into_transcript().conversations;
    let said: Vec<(usize, Vec<&str>)> =
        told.iter().map(|conversation| (conversation.member, texts(&conversation.messages))).collect();
    let failed = "the agent failed: no answer within 3 s";
    assert_eq!(said, [(2, vec!["go", "", failed, "B", "done"]), (0, vec!["1"]), (1, vec!["2", "B"])]);
}

#[test]
fn a_transcript_tells_who_had_each_conversation_begun_and_by_which_call() {
    let chain = Kind::Chain { sequence: vec![0, 1], cumulative: false };
    let children = vec![child(0, "a"), child(2, "line")];
    let members = vec![
        agent("a"),
        agent("b"),
        member("line", chain),
        agent_with("boss", Agent { children, ..Agent::default() }),
    ];
    let mut stage =
        asked_for(cast(members).with_transcripts(true), &[("a", &message("1")), ("line", &message("2"))]);
    stage.answer("a", "A");
    stage.answer("a", "first of the chain");
    stage.answer("b", "B");
    stage.answer("boss", "done");
    let told = stage.course.into_transcript().conversations;
    let callers: Vec<_> = told
        .iter()
        .map(|told| told.caller.as_ref().map(|caller| (caller.conversation, caller.call.is_some())))
        .collect();
    // A workflow stands between the boss and the agents of the chain.
    assert_eq!(callers, [None, Some((0, true)), Some((0, false)), Some((0, false))]);
}
