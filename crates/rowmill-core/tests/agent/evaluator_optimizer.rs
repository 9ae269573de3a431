//! Answers that are judged and improved.

use rowmill_core::agent::{AgentDefinition, AgentGraph, AgentKind, AnswerFormat, AnswerRating};
use rowmill_types::{RowError, RowErrorKind};

use crate::harness::*;

fn studio(min_rating: AnswerRating, max_refinements: u32, instruction: Option<&str>) -> Vec<AgentDefinition> {
    let kind = AgentKind::EvaluatorOptimizer {
        generator: 0,
        evaluator: 1,
        min_rating,
        max_refinements,
        instruction: instruction.map(str::to_owned),
    };
    vec![agent("writer"), agent("critic"), agent_of_kind("studio", kind)]
}

fn opinion(rating: &str, needs_improvement: bool) -> String {
    format!(
        r#"{{"rating":"{rating}","feedback":"too {rating}","needs_improvement":{needs_improvement},"focus_areas":["style","facts"]}}"#
    )
}

fn asked(graph: AgentGraph) -> GraphHarness {
    GraphHarness::start(graph, request_with_file("a poem"))
}

#[test]
fn generator_and_evaluator_get_exactly_these_words() {
    let mut harness = asked(graph(studio(AnswerRating::Good, 3, None)));
    assert_eq!((harness.asked("writer"), files(harness.messages("writer"))), ("a poem", vec![1]));
    harness.answer("writer", "roses");
    assert_eq!(harness.form("critic"), AnswerFormat::Rating);
    assert_eq!(
        harness.asked("critic"),
        "Judge answers strictly and fairly.\n\n\
         Judge how well the answer below does what the request asks for. This is round 1 of judging. Rate \
         it, say what is good and what should be better, and name what to work on first.\n\n\
         <request>\na poem\n</request>\n\n<answer>\nroses\n</answer>"
    );
    assert_eq!(files(harness.messages("critic")), [1]);
    harness.answer("critic", &opinion("FAIR", true));
    assert_eq!(
        harness.asked("writer"),
        "Your answer to the request below was judged. Make it better: this is refinement 1.\n\n\
         <request>\na poem\n</request>\n\n<answer>\nroses\n</answer>\n\n<rating>FAIR</rating>\n\n\
         <feedback>\ntoo FAIR\n</feedback>\n\n<work_on>\n- style\n- facts\n</work_on>\n\n\
         Act on every point of the feedback, keep what is good, and stay with what the request asks for. \
         Answer with the whole improved answer and nothing else."
    );
    assert_eq!(files(harness.messages("writer")), [1]);
    harness.answer("writer", "violets");
    assert!(harness.asked("critic").contains("This is round 2 of judging."));
    assert!(harness.asked("critic").ends_with("<answer>\nviolets\n</answer>"));
    harness.answer("critic", &opinion("GOOD", true));
    assert_eq!(harness.text(), "violets");
}

#[test]
fn the_cards_instruction_stands_first_for_both() {
    let mut harness = asked(graph(studio(AnswerRating::Good, 3, Some("Mind the metre."))));
    harness.answer("writer", "roses");
    assert!(harness.asked("critic").starts_with("Mind the metre.\n\nJudge how well"));
    let bare = r#"{"rating":"POOR","feedback":"no","needs_improvement":true,"focus_areas":[]}"#;
    harness.answer("critic", bare);
    assert!(harness.asked("writer").starts_with("Mind the metre.\n\nYour answer to the request"));
    assert!(harness.asked("writer").contains("<work_on>\n- nothing in particular\n</work_on>"));
}

#[test]
fn it_ends_when_the_rating_is_enough_or_nothing_needs_to_be_better_or_nothing_more_is_allowed() {
    // Ratings of the answers 1, 2, 3 …, the minimum rating, the maximum of refinements, and the result.
    type Case = (&'static [(&'static str, bool)], AnswerRating, u32, &'static str);
    let cases: &[Case] = &[
        (&[("GOOD", true)], AnswerRating::Good, 3, "1"),
        (&[("POOR", false)], AnswerRating::Excellent, 3, "1"),
        (&[("FAIR", true), ("POOR", false)], AnswerRating::Good, 3, "2"),
        (&[("POOR", true), ("EXCELLENT", true)], AnswerRating::Excellent, 3, "2"),
        (&[("POOR", true), ("FAIR", true), ("FAIR", true)], AnswerRating::Good, 2, "2"),
        (&[("POOR", true), ("POOR", true)], AnswerRating::Good, 1, "1"),
        (&[("FAIR", true)], AnswerRating::Good, 0, "1"),
    ];
    for (opinions, min_rating, max_refinements, result) in cases {
        let mut harness = asked(graph(studio(*min_rating, *max_refinements, None)));
        for (index, (rating, needs_improvement)) in opinions.iter().enumerate() {
            harness.answer("writer", &(index + 1).to_string());
            harness.answer("critic", &opinion(rating, *needs_improvement));
        }
        assert_eq!(harness.text(), *result, "{opinions:?}");
    }
}

#[test]
fn an_answer_that_is_rated_below_what_was_asked_for_says_so() {
    // Ratings, the minimum rating, the maximum of refinements, and the final rating if it is too low.
    type Case = (&'static [(&'static str, bool)], AnswerRating, u32, Option<AnswerRating>);
    let cases: &[Case] = &[
        (&[("GOOD", true)], AnswerRating::Good, 3, None),
        (&[("POOR", true), ("EXCELLENT", true)], AnswerRating::Excellent, 3, None),
        (&[("POOR", true), ("FAIR", true), ("POOR", true)], AnswerRating::Good, 2, Some(AnswerRating::Fair)),
        (&[("FAIR", true)], AnswerRating::Good, 0, Some(AnswerRating::Fair)),
        // The evaluator reports that nothing needs to be better, and yet the rating is too low.
        (&[("POOR", false)], AnswerRating::Excellent, 3, Some(AnswerRating::Poor)),
    ];
    for (opinions, min_rating, max_refinements, rating) in cases {
        let mut harness = asked(graph(studio(*min_rating, *max_refinements, None)));
        for (rating, needs_improvement) in *opinions {
            harness.answer("writer", "an answer");
            harness.answer("critic", &opinion(rating, *needs_improvement));
        }
        let reported: Vec<_> = harness
            .row_state
            .low_ratings()
            .iter()
            .map(|reported| (reported.agent_index, reported.rating, reported.min_rating))
            .collect();
        let expected: Vec<_> = rating.iter().map(|rating| (2, *rating, *min_rating)).collect();
        assert_eq!(reported, expected, "{opinions:?}");
    }
}

#[test]
fn the_generator_is_asked_for_the_schema_and_the_best_json_is_the_result() {
    let mut harness = asked(graph_with_schema(studio(AnswerRating::Good, 1, None)));
    assert_eq!(harness.form("writer"), AnswerFormat::Result);
    harness.answer("writer", r#"{"n": 1}"#);
    assert!(harness.asked("critic").ends_with("<answer>\n{\"n\":1}\n</answer>"));
    harness.answer("critic", &opinion("FAIR", true));
    assert_eq!(harness.form("writer"), AnswerFormat::Result);
    harness.answer("writer", r#"{"n": 2}"#);
    harness.answer("critic", &opinion("POOR", true));
    assert_eq!(harness.outcome(), Ok(r#"{"n":1}"#.to_owned()));
}

#[test]
fn failures_say_who_failed() {
    let mut harness = asked(graph(studio(AnswerRating::Good, 1, None)));
    harness.fail("writer", RowError::new(RowErrorKind::Timeout, "slow"));
    assert_eq!(harness.outcome().unwrap_err().message, "`writer`: slow");
    let mut harness = asked(graph(studio(AnswerRating::Good, 1, None)));
    harness.answer("writer", "roses");
    harness.answer("critic", "I like it");
    let error = harness.outcome().unwrap_err();
    assert_eq!((error.kind, error.raw_text.as_deref()), (RowErrorKind::StructuredOutput, Some("I like it")));
    assert!(error.message.starts_with("`critic`: the answer does not satisfy"), "{}", error.message);
}
