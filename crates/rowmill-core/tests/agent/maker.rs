//! Asking the same question until one answer is ahead.

use rowmill_core::agent::{AgentDefinition, AgentKind, AnswerEquality, AnswerFormat};
use rowmill_types::{RowError, RowErrorKind};

use crate::harness::*;

fn maker(
    k: u32,
    max_samples: u32,
    matching: AnswerEquality,
    red_flag_max_length: Option<usize>,
) -> Vec<AgentDefinition> {
    let kind = AgentKind::Maker { worker: 0, k, max_samples, matching, red_flag_max_length };
    vec![agent("w"), agent_of_kind("maker", kind)]
}

#[test]
fn samples_follow_each_other_until_one_answer_is_ahead_by_k_or_no_more_are_allowed() {
    // The answers, k, the maximum number of samples, and the result.
    for (answers, k, max_samples, result) in [
        (&["x"][..], 1, 10, "x"),
        (&["x", "x", "x"], 3, 10, "x"),
        (&["x", "y", "y", "y"], 2, 10, "y"),
        (&["x", "y", "x", "y", "z", "y", "y"], 2, 10, "y"),
        (&["x", "y", "x", "y", "z"], 2, 5, "x"),
        (&["x", "y", "z", "z", "y"], 3, 5, "y"),
        (&["x", "y", "z", "z"], 3, 4, "z"),
    ] {
        let mut harness = GraphHarness::start(
            graph(maker(k, max_samples, AnswerEquality::Exact, None)),
            request_with_file("go"),
        );
        for answer in answers {
            assert_eq!(harness.waits_for(), ["w"], "{answers:?}");
            assert_eq!((harness.asked("w"), files(harness.messages("w"))), ("go", vec![1]));
            harness.answer("w", answer);
        }
        assert_eq!(harness.text(), result, "{answers:?}");
    }
}

#[test]
fn which_answers_are_the_same_is_a_matter_of_matching() {
    // Two answers, and whether each matching considers them the same.
    for (one, other, exact, normalized, structured) in [
        ("x", "x", true, true, true),
        ("The  Straße\n", " the STRASSE", false, true, false),
        (r#"{"a":1,"b":{"d":1,"c":2}}"#, r#"{ "b": {"c": 2, "d": 1}, "a": 1 }"#, false, false, true),
        ("[1,2]", "[2,1]", false, false, false),
        ("1.0", "1", false, false, false),
        ("not json", "Not JSON", false, true, false),
    ] {
        for (matching, same) in [
            (AnswerEquality::Exact, exact),
            (AnswerEquality::Normalized, normalized),
            (AnswerEquality::Structured, structured),
        ] {
            let mut harness = GraphHarness::ask(graph(maker(2, 9, matching, None)), "go");
            harness.answer("w", one);
            harness.answer("w", other);
            assert_eq!(harness.row_state.is_finished(), same, "{matching:?}: {one} and {other}");
            if same {
                assert_eq!(harness.text(), other, "the last one of those that are the same is the result");
            }
        }
    }
}

#[test]
fn answers_that_are_too_long_are_samples_but_no_votes() {
    let mut harness = GraphHarness::ask(graph(maker(2, 4, AnswerEquality::Exact, Some(3))), "go");
    for answer in ["äöü", "long", "long", "long"] {
        harness.answer("w", answer);
    }
    assert_eq!(harness.text(), "äöü");

    let mut harness = GraphHarness::ask(graph(maker(2, 2, AnswerEquality::Exact, Some(3))), "go");
    harness.answer("w", "long");
    harness.answer("w", "long");
    let error = harness.outcome().unwrap_err();
    assert_eq!(error.kind, RowErrorKind::AnswersDiscarded);
    assert_eq!(error.message, "`w`: all 2 answers are longer than 3 characters (`red_flag_max_length`)");
}

#[test]
fn a_red_flag_of_nothing_flags_nothing() {
    let mut harness = GraphHarness::ask(graph(maker(1, 2, AnswerEquality::Exact, Some(0))), "go");
    harness.answer("w", "long");
    assert_eq!(harness.text(), "long");
}

#[test]
fn a_sample_that_fails_fails_the_row() {
    let mut harness = GraphHarness::ask(graph(maker(2, 9, AnswerEquality::Exact, None)), "go");
    harness.answer("w", "x");
    harness.fail("w", RowError::new(RowErrorKind::ServerError, "down"));
    assert_eq!(harness.outcome().unwrap_err().message, "`w`: down");
}

#[test]
fn samples_are_asked_for_the_schema() {
    let mut harness =
        GraphHarness::ask(graph_with_schema(maker(2, 9, AnswerEquality::Structured, None)), "go");
    assert_eq!(harness.form("w"), AnswerFormat::Result);
    harness.answer("w", r#"{"n":1,"m":2}"#);
    harness.answer("w", r#"{"m":2,"n":1}"#);
    assert_eq!(harness.outcome(), Ok(r#"{"m":2,"n":1}"#.to_owned()));
}
