//! Several agents at once.

use rowmill_core::agent::{AgentDefinition, AgentKind, AnswerFormat};
use rowmill_types::{RowError, RowErrorKind};

use crate::harness::*;

fn agents(fan_in: Option<usize>, include_request: bool) -> Vec<AgentDefinition> {
    let kind = AgentKind::Parallel { fan_out: vec![0, 1, 2], fan_in, include_request };
    vec![agent("a"), agent("b"), agent("c"), agent("sum"), agent_of_kind("all", kind)]
}

const ALL: &str = "<fastagent:response agent=\"a\">\nA\n</fastagent:response>\n\n\
                   <fastagent:response agent=\"b\">\nB\n</fastagent:response>\n\n\
                   <fastagent:response agent=\"c\">\nC\n</fastagent:response>";

const WITH_REQUEST: &str = "The following request was sent to the agents:\n\n\
                            <fastagent:request>\ngo\n</fastagent:request>\n\n";

#[test]
fn all_are_asked_at_once_and_the_result_is_the_same_whatever_the_order_of_arrival() {
    for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
        let mut harness = GraphHarness::start(graph(agents(None, true)), request_with_file("go"));
        assert_eq!(harness.waits_for(), ["a", "b", "c"]);
        for name in order {
            assert_eq!((harness.asked(name), files(harness.messages(name))), ("go", vec![1]));
            harness.answer(name, &name.to_uppercase());
        }
        assert_eq!(harness.text(), format!("{WITH_REQUEST}{ALL}"));
    }
}

#[test]
fn the_fan_in_gets_all_answers_as_one_message_and_the_files_where_it_gets_the_request() {
    for (include_request, asked, sent) in
        [(true, format!("{WITH_REQUEST}{ALL}"), 1), (false, ALL.to_owned(), 0)]
    {
        let mut harness =
            GraphHarness::start(graph(agents(Some(3), include_request)), request_with_file("go"));
        for name in ["b", "a", "c"] {
            harness.answer(name, &name.to_uppercase());
        }
        assert_eq!(harness.asked("sum"), asked);
        assert_eq!(files(harness.messages("sum")), [sent]);
        harness.answer("sum", "in short");
        assert_eq!(harness.text(), "in short");
    }
}

#[test]
fn an_empty_request_is_not_shown_to_the_fan_in() {
    let mut harness = GraphHarness::ask(graph(agents(None, true)), "");
    for name in ["a", "b", "c"] {
        harness.answer(name, &name.to_uppercase());
    }
    assert_eq!(harness.text(), ALL);
}

#[test]
fn only_the_fan_in_is_asked_for_the_schema() {
    let mut harness = GraphHarness::ask(graph_with_schema(agents(Some(3), true)), "go");
    for name in ["a", "b", "c"] {
        assert_eq!(harness.form(name), AnswerFormat::Text);
        harness.answer(name, "x");
    }
    assert_eq!(harness.form("sum"), AnswerFormat::Result);
    harness.answer("sum", r#"{"n":1}"#);
    assert_eq!(harness.outcome(), Ok(r#"{"n":1}"#.to_owned()));
}

#[test]
fn a_failure_waits_for_the_others_and_the_first_in_order_is_reported() {
    let mut harness = GraphHarness::ask(graph(agents(Some(3), true)), "go");
    harness.fail("c", RowError::new(RowErrorKind::Timeout, "slow"));
    assert!(!harness.row_state.is_finished());
    harness.fail("b", RowError { status: Some(500), ..RowError::new(RowErrorKind::ServerError, "down") });
    harness.answer("a", "A");
    let error = harness.outcome().unwrap_err();
    assert_eq!((error.kind, error.status), (RowErrorKind::ServerError, Some(500)));
    assert_eq!(error.message, "`b`: down");
}

#[test]
fn a_fan_in_that_fails_is_named() {
    let mut harness = GraphHarness::ask(graph(agents(Some(3), true)), "go");
    for name in ["a", "b", "c"] {
        harness.answer(name, "x");
    }
    harness.fail("sum", RowError::new(RowErrorKind::Refusal, "no"));
    assert_eq!(harness.outcome().unwrap_err().message, "`sum`: no");
}
