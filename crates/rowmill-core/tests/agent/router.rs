//! Routers.

use rowmill_core::agent::{AgentDefinition, AgentGraph, AgentKind, AnswerFormat};
use rowmill_types::{MessageRole, RowError, RowErrorKind};

use crate::harness::*;

fn router(make: fn(Vec<AgentDefinition>) -> AgentGraph) -> AgentGraph {
    make(vec![
        agent("cook"),
        agent("driver"),
        agent_of_kind("desk", AgentKind::Router { agents: vec![0, 1] }),
    ])
}

fn choice(agent: &str) -> String {
    format!(r#"{{"agent":"{agent}","confidence":"high","reasoning":"it fits"}}"#)
}

#[test]
fn the_model_chooses_and_the_chosen_one_gets_the_request_with_its_files() {
    let mut harness = GraphHarness::start(router(graph), request_with_file("lunch"));
    assert_eq!((harness.asked("desk"), harness.form("desk")), ("lunch", AnswerFormat::Route));
    assert_eq!(files(harness.messages("desk")), [1]);
    harness.answer("desk", &choice("cook"));
    assert_eq!((harness.asked("cook"), files(harness.messages("cook"))), ("lunch", vec![1]));
    harness.answer("cook", "soup");
    assert_eq!(harness.text(), "soup");
}

#[test]
fn the_chosen_one_is_asked_for_the_schema() {
    let mut harness = GraphHarness::ask(router(graph_with_schema), "lunch");
    assert_eq!(harness.form("desk"), AnswerFormat::Route);
    harness.answer("desk", &choice("driver"));
    assert_eq!(harness.form("driver"), AnswerFormat::Result);
    harness.answer("driver", r#"{"n":2}"#);
    assert_eq!(harness.outcome(), Ok(r#"{"n":2}"#.to_owned()));
}

#[test]
fn a_single_agent_is_asked_without_a_choice() {
    let graph = graph(vec![agent("cook"), agent_of_kind("desk", AgentKind::Router { agents: vec![0] })]);
    assert_eq!(graph.model_roles().len(), 1);
    let mut harness = GraphHarness::ask(graph, "lunch");
    assert_eq!(harness.waits_for(), ["cook"]);
    harness.answer("cook", "soup");
    assert_eq!((harness.text().as_str(), harness.row_state.turn_count()), ("soup", 1));
}

#[test]
fn a_name_that_does_not_exist_is_reported_to_the_model_once() {
    let mut harness = GraphHarness::start(router(graph), request_with_file("lunch"));
    harness.answer("desk", &choice("baker"));
    let messages = harness.messages("desk");
    assert_eq!(
        texts(messages),
        [
            "lunch",
            &choice("baker"),
            "There is no agent `baker`. Choose again, and name one of these exactly: `cook`, `driver`."
        ]
    );
    assert_eq!(messages[1].role, MessageRole::Assistant);
    assert_eq!(files(messages), [1, 0, 0]);
    harness.answer("desk", &choice("driver"));
    assert_eq!((harness.asked("driver"), files(harness.messages("driver"))), ("lunch", vec![1]));
}

#[test]
fn a_model_that_keeps_choosing_nobody_fails_the_row_with_its_answer() {
    let mut harness = GraphHarness::ask(router(graph), "lunch");
    harness.answer("desk", &choice("baker"));
    harness.answer("desk", &choice("butcher"));
    let error = harness.outcome().unwrap_err();
    assert_eq!(error.kind, RowErrorKind::StructuredOutput);
    assert_eq!(error.message, "`desk`: the model chose the agent `butcher`; there are only `cook`, `driver`");
    assert_eq!(error.raw_text, Some(choice("butcher")));
}

#[test]
fn a_choice_that_breaks_its_schema_is_corrected_like_any_answer() {
    let mut harness = GraphHarness::ask(router(graph).with_repairs(1), "lunch");
    harness.answer("desk", "cook");
    assert_eq!(harness.messages("desk").len(), 3);
    harness.answer("desk", &choice("cook"));
    assert_eq!(harness.waits_for(), ["cook"]);
}

#[test]
fn failures_say_whether_the_router_or_the_chosen_one_failed() {
    let mut harness = GraphHarness::ask(router(graph), "lunch");
    harness.fail("desk", RowError::new(RowErrorKind::Timeout, "slow"));
    assert_eq!(harness.outcome().unwrap_err().message, "`desk`: slow");
    let mut harness = GraphHarness::ask(router(graph), "lunch");
    harness.answer("desk", &choice("cook"));
    harness.fail("cook", RowError::new(RowErrorKind::Timeout, "slow"));
    assert_eq!(harness.outcome().unwrap_err().message, "`cook`: slow");
}
