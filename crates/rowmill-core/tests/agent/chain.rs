//! Chains.

use rowmill_core::agent::{AgentGraph, AgentKind, AgentSettings, AnswerFormat};
use rowmill_types::{Completion, FinishReason, MessageRole, RowError, RowErrorKind};

use crate::harness::*;

fn chain(cumulative: bool, make: fn(Vec<rowmill_core::agent::AgentDefinition>) -> AgentGraph) -> AgentGraph {
    let kind = AgentKind::Chain { sequence: vec![0, 1, 0], cumulative };
    make(vec![agent("a"), agent("b"), agent_of_kind("line", kind)])
}

#[test]
fn each_gets_only_the_answer_before_it_and_the_first_gets_the_request_with_its_files() {
    let mut harness = GraphHarness::start(chain(false, graph), request_with_file("go"));
    assert_eq!((harness.asked("a"), files(harness.messages("a"))), ("go", vec![1]));
    harness.answer("a", "one");
    assert_eq!((harness.asked("b"), files(harness.messages("b"))), ("one", vec![0]));
    harness.answer("b", "two");
    assert_eq!(harness.asked("a"), "two");
    harness.answer("a", "three");
    assert_eq!(harness.text(), "three");
}

#[test]
fn a_cumulative_chain_shows_everyone_all_answers_and_gives_them_all() {
    let mut harness = GraphHarness::start(chain(true, graph), request_with_file("go"));
    assert_eq!(harness.asked("a"), "go");
    harness.answer("a", "one");
    assert_eq!(texts(harness.messages("b")), ["go", "one"]);
    harness.answer("b", "two\n");
    let messages = harness.messages("a");
    assert_eq!(texts(messages), ["go", "one", "two\n"]);
    assert_eq!(files(messages), [1, 0, 0]);
    assert!(messages.iter().all(|message| message.role == MessageRole::User));
    harness.answer("a", "three");
    assert_eq!(
        harness.text(),
        "<fastagent:request>go</fastagent:request>\n\n\
         <fastagent:response agent='a'>one</fastagent:response>\n\n\
         <fastagent:response agent='b'>two\n</fastagent:response>\n\n\
         <fastagent:response agent='a'>three</fastagent:response>"
    );
}

#[test]
fn an_empty_request_is_named_as_such_in_the_result_of_a_cumulative_chain() {
    let kind = AgentKind::Chain { sequence: vec![0], cumulative: true };
    let mut harness = GraphHarness::ask(graph(vec![agent("a"), agent_of_kind("line", kind)]), "");
    harness.answer("a", "one");
    assert_eq!(
        harness.text(),
        "<fastagent:request><no response></fastagent:request>\n\n\
         <fastagent:response agent='a'>one</fastagent:response>"
    );
}

#[test]
fn only_the_last_one_is_asked_for_the_schema_and_its_json_is_the_result() {
    for cumulative in [false, true] {
        let mut harness = GraphHarness::ask(chain(cumulative, graph_with_schema), "go");
        assert_eq!(harness.form("a"), AnswerFormat::Text);
        harness.answer("a", "one");
        assert_eq!(harness.form("b"), AnswerFormat::Text);
        harness.answer("b", "two");
        assert_eq!(harness.form("a"), AnswerFormat::Result);
        harness.answer("a", r#"{"n": 1}"#);
        assert_eq!(harness.outcome(), Ok(r#"{"n":1}"#.to_owned()));
    }
}

#[test]
fn a_member_that_fails_ends_the_chain_and_the_error_says_which_one_it_was() {
    let mut harness = GraphHarness::ask(chain(true, graph), "go");
    harness.answer("a", "one");
    let error = RowError {
        status: Some(400),
        code: Some("too_long".into()),
        raw_text: Some("half".into()),
        ..RowError::new(RowErrorKind::BadRequest, "refused")
    };
    harness.fail("b", error.clone());
    assert_eq!(harness.outcome(), Err(RowError { message: "`b`: refused".into(), ..error }));
}

#[test]
fn chains_of_chains_name_the_way_to_the_one_that_failed() {
    let inner = AgentKind::Chain { sequence: vec![0, 0], cumulative: false };
    let outer = AgentKind::Chain { sequence: vec![1, 0], cumulative: false };
    let mut harness = GraphHarness::ask(
        graph(vec![agent("a"), agent_of_kind("inner", inner), agent_of_kind("outer", outer)]),
        "go",
    );
    harness.answer("a", "one");
    harness.fail("a", RowError::new(RowErrorKind::Timeout, "slow"));
    assert_eq!(harness.outcome().unwrap_err().message, "`inner`: `a`: slow");
}

#[test]
fn one_that_has_no_result_is_named_once() {
    let limited = agent_with("a", AgentSettings { max_iterations: 1, ..AgentSettings::default() });
    let line = agent_of_kind("line", AgentKind::Chain { sequence: vec![0, 0], cumulative: false });
    let mut harness = GraphHarness::ask(graph(vec![limited, line]), "go");
    harness.answer_with("a", Completion { finish: FinishReason::Paused, ..Completion::from_text("one") });
    let error = harness.outcome().unwrap_err();
    assert_eq!(error.message, "`a` has no result after 1 model call (`max_iterations`)");
}
