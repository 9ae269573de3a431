//! One agent's conversation with its model: answers, corrections, pauses, limits.

use rowmill_core::agent::{AgentGraph, AgentSettings, AnswerFormat};
use rowmill_types::{Completion, FinishReason, Message, MessageRole, NativeMessage, RowError, RowErrorKind};

use crate::harness::*;

#[test]
fn a_plain_agent_asks_once_and_the_text_is_the_result() {
    let mut harness = GraphHarness::ask(AgentGraph::single_agent(None, 0).unwrap(), "hello");
    assert_eq!(harness.asked(""), "hello");
    harness.answer("", "a \"b\"\n");
    assert!(harness.row_state.is_finished() && harness.open.is_empty());
    assert_eq!(harness.outcome(), Ok(r#""a \"b\"\n""#.to_owned()));
    assert!(harness.row_state.is_finished(), "a course whose outcome was taken asks for nothing more");
    assert_eq!(harness.row_state.turn_count(), 1);
}

#[test]
fn an_answer_that_breaks_the_schema_is_corrected_as_often_as_is_allowed() {
    let mut harness = GraphHarness::ask(AgentGraph::single_agent(Some(number_schema()), 2).unwrap(), "count");
    assert_eq!(harness.form(""), AnswerFormat::Result);
    harness.answer("", "three");
    let messages = harness.messages("");
    assert_eq!(
        messages.iter().map(|m| m.role).collect::<Vec<_>>(),
        [MessageRole::User, MessageRole::Assistant, MessageRole::User]
    );
    assert_eq!(messages[1].text, "three");
    assert!(messages[2].text.starts_with("Your answer does not satisfy the required JSON Schema:"));
    harness.answer("", r#"{"n":"3"}"#);
    assert_eq!(harness.messages("").len(), 5);
    harness.answer("", "```json\n{\"n\": 3}\n```");
    assert_eq!(harness.outcome(), Ok(r#"{"n":3}"#.to_owned()));

    let mut harness = GraphHarness::ask(AgentGraph::single_agent(Some(number_schema()), 1).unwrap(), "count");
    harness.answer("", "three");
    harness.answer("", "four");
    let error = harness.outcome().unwrap_err();
    assert_eq!((error.kind, error.raw_text.as_deref()), (RowErrorKind::StructuredOutput, Some("four")));
}

#[test]
fn answers_that_are_no_answers_fail_the_row_with_their_text() {
    for (finish, kind) in [
        (FinishReason::Refused, RowErrorKind::Refusal),
        (FinishReason::Filtered, RowErrorKind::ContentFilter),
        (FinishReason::Length, RowErrorKind::OutputTruncated),
    ] {
        let mut harness = GraphHarness::ask(graph(vec![agent("a")]), "hello");
        // Calls in a truncated answer are not made.
        let completion = Completion { finish, text: "half".into(), ..calls(&[("search", "{")]) };
        harness.answer_with("a", completion);
        let error = harness.outcome().unwrap_err();
        assert_eq!((error.kind, error.raw_text.as_deref()), (kind, Some("half")));
    }
    let mut harness = GraphHarness::ask(graph(vec![agent("a")]), "hello");
    harness.fail("a", RowError { status: Some(500), ..RowError::new(RowErrorKind::ServerError, "down") });
    let error = harness.outcome().unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str(), error.status),
        (RowErrorKind::ServerError, "down", Some(500))
    );
}

#[test]
fn a_paused_turn_continues_with_its_content_sent_back_unchanged() {
    let mut harness = GraphHarness::ask(graph(vec![agent("a")]), "search");
    let echo = NativeMessage { format: "anthropic".into(), content: "[]".into() };
    let paused = Completion {
        finish: FinishReason::Paused,
        native: Some(Box::new(echo.clone())),
        ..Completion::from_text("wait")
    };
    harness.answer_with("a", paused);
    let messages = harness.messages("a");
    assert_eq!(texts(messages), ["search", "wait"]);
    assert_eq!(messages[1].native.as_deref(), Some(&echo));
    harness.answer("a", "found");
    assert_eq!(harness.text(), "found");
    assert_eq!(harness.row_state.turn_count(), 2);
}

#[test]
fn an_agent_stops_at_its_max_iterations_and_keeps_its_last_answer() {
    let limited = AgentSettings { max_iterations: 2, ..AgentSettings::default() };
    let mut harness = GraphHarness::ask(graph(vec![agent_with("a", limited)]), "search");
    let paused = |text: &str| Completion { finish: FinishReason::Paused, ..Completion::from_text(text) };
    harness.answer_with("a", paused("one"));
    harness.answer_with("a", paused("two"));
    let error = harness.outcome().unwrap_err();
    assert_eq!(error.kind, RowErrorKind::TurnLimit);
    assert_eq!(error.message, "`a` has no result after 2 model calls (`max_iterations`)");
    assert_eq!(error.raw_text.as_deref(), Some("two"));
}

#[test]
fn a_row_stops_at_its_turns_whoever_makes_them() {
    let paused = Completion { finish: FinishReason::Paused, ..Completion::from_text("one") };
    let mut harness = GraphHarness::ask(graph(vec![agent("a")]).with_turns(Some(1)), "search");
    harness.answer_with("a", paused);
    let error = harness.outcome().unwrap_err();
    assert_eq!(error.message, "no result after 1 model call (`turns`)");
    assert_eq!((error.kind, error.raw_text.as_deref()), (RowErrorKind::TurnLimit, Some("one")));
    assert_eq!(harness.row_state.turn_count(), 1);
}

#[test]
fn examples_stand_before_the_request_and_are_never_taken_for_answers() {
    let examples = vec![Message::user("2+2"), Message::assistant("4")];
    let with_examples =
        || agent_with("a", AgentSettings { examples: examples.clone(), ..AgentSettings::default() });
    let mut harness = GraphHarness::ask(graph(vec![with_examples()]), "3+3");
    assert_eq!(texts(harness.messages("a")), ["2+2", "4", "3+3"]);
    harness.answer("a", "6");
    assert_eq!(harness.text(), "6");

    let mut harness = GraphHarness::ask(graph(vec![with_examples()]).with_turns(Some(0)), "3+3");
    let error = harness.outcome().unwrap_err();
    assert_eq!((error.kind, error.raw_text), (RowErrorKind::TurnLimit, None));
}

#[test]
fn an_aborted_row_is_over_and_its_first_outcome_stays() {
    let mut harness = GraphHarness::ask(graph(vec![agent("a")]), "hello");
    harness.row_state.abort(RowError::new(RowErrorKind::Interrupted, "stopped"));
    harness.answer("a", "late");
    assert_eq!(harness.outcome().unwrap_err().kind, RowErrorKind::Interrupted);
}
