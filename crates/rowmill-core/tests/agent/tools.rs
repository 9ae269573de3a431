//! Calls of tools.

use rowmill_core::agent::{AgentGraph, AgentSettings, ToolCallAction};
use rowmill_types::{Completion, Message, MessageRole, RowErrorKind, ToolOutput};

use crate::harness::*;

fn with_tools(agent: AgentSettings) -> AgentGraph {
    let tools = vec![
        tool("search", ToolCallAction::Call),
        tool("final", ToolCallAction::Passthrough),
        tool("secret", ToolCallAction::Deny),
    ];
    let agent = AgentSettings { tools: vec![0, 1, 2], ..agent };
    AgentGraph::new(vec![agent_with("a", agent)], tools, 0, None).unwrap()
}

fn asked_for(agent: AgentSettings, wanted: &[(&str, &str)]) -> GraphHarness {
    let mut harness = GraphHarness::ask(with_tools(agent), "go");
    harness.answer_with("a", calls(wanted));
    harness
}

const Q: &str = r#"{"q":"x"}"#;

/// The tool results as the model gets them: ids, texts and whether they failed.
fn results(messages: &[Message]) -> Vec<(&str, &str, bool)> {
    let tools = messages.iter().filter(|message| message.role == MessageRole::Tool);
    tools
        .map(|message| {
            let answered = message.answered_call.as_ref().unwrap();
            (answered.call.as_str(), message.text.as_str(), answered.is_error)
        })
        .collect()
}

#[test]
fn calls_of_a_turn_run_at_once_and_the_model_gets_their_results_in_the_order_of_the_calls() {
    let mut harness =
        asked_for(AgentSettings::default(), &[("search", Q), ("search", r#"{"q":"y"}"#), ("search", Q)]);
    assert_eq!(harness.waits_for(), ["search:0", "search:1", "search:2"]);
    harness
        .give("search:2", ToolOutput { attachments: vec![file("p.png")], ..ToolOutput::from_text("third") });
    assert_eq!(harness.give("search:1", ToolOutput::error("broken")), r#"{"q":"y"}"#);
    assert_eq!(harness.waits_for(), ["search:0"]);
    harness.give("search:0", ToolOutput::from_text("first"));
    let messages = harness.messages("a");
    assert_eq!(messages[1].calls.len(), 3);
    assert_eq!(
        results(messages),
        [("call-0", "first", false), ("call-1", "broken", true), ("call-2", "third", false)]
    );
    assert_eq!(files(messages), [0, 0, 0, 0, 1]);
    harness.answer("a", "done");
    assert_eq!(harness.text(), "done");
}

#[test]
fn calls_run_one_after_the_other_where_the_agent_wants_it_so() {
    let one_by_one = AgentSettings { sequential_calls: true, ..AgentSettings::default() };
    let mut harness = asked_for(one_by_one, &[("search", Q), ("secret", Q), ("search", Q)]);
    assert_eq!(harness.waits_for(), ["search:0"]);
    harness.give("search:0", ToolOutput::from_text("1"));
    assert_eq!(harness.waits_for(), ["search:2"]);
    harness.give("search:2", ToolOutput::from_text("2"));
    assert_eq!(results(harness.messages("a")).len(), 3);
}

#[test]
fn what_is_wrong_with_a_call_is_reported_to_the_model_and_nothing_is_called() {
    for (name, arguments, message) in [
        ("secret", Q, "the tool `secret` is denied in this run"),
        ("serch", Q, "there is no tool `serch`; there are: search, final, secret"),
        ("search", "{\"q\":", "the arguments of `search` are not JSON: EOF while parsing a value"),
        ("search", "[1]", "the arguments of `search` must be a JSON object"),
        (
            "search",
            r#"{"q":1}"#,
            "the arguments of `search` do not satisfy its schema: at `/q`: 1 is not of type",
        ),
        ("search", "", "the arguments of `search` do not satisfy its schema: \"q\" is a required property"),
    ] {
        let harness = asked_for(AgentSettings::default(), &[(name, arguments)]);
        assert_eq!(harness.waits_for(), ["a"]);
        let messages = harness.messages("a");
        assert_eq!(messages[1].calls[0].arguments, arguments, "what the model wrote is sent back as it is");
        let results = results(messages);
        assert!(results[0].1.starts_with(message) && results[0].2, "{results:?}");
    }
    let mut harness = GraphHarness::ask(graph(vec![agent("b")]), "go");
    harness.answer_with("b", calls(&[("search", Q)]));
    assert_eq!(results(harness.messages("b"))[0].1, "there is no tool `search`; there are no tools");
}

#[test]
fn good_and_bad_calls_of_one_turn_do_not_disturb_each_other() {
    let mut harness = asked_for(AgentSettings::default(), &[("secret", Q), ("search", Q), ("nope", Q)]);
    assert_eq!(harness.waits_for(), ["search:1"]);
    harness.give("search:1", ToolOutput::from_text("ok"));
    let failed: Vec<bool> = results(harness.messages("a")).iter().map(|result| result.2).collect();
    assert_eq!(failed, [true, false, true]);
}

#[test]
fn what_a_passthrough_tool_gives_is_the_result_without_another_turn() {
    let mut harness = asked_for(AgentSettings::default(), &[("search", Q), ("final", Q), ("final", Q)]);
    harness.give("final:2", ToolOutput::from_text("second"));
    harness.give("final:1", ToolOutput::from_text("first"));
    harness.give("search:0", ToolOutput::from_text("other"));
    assert_eq!(harness.text(), "first");
    assert_eq!(harness.row_state.turn_count(), 1);
}

#[test]
fn a_passthrough_tool_that_fails_is_reported_to_the_model() {
    let mut harness = asked_for(AgentSettings::default(), &[("final", Q)]);
    harness.give("final:0", ToolOutput::error("no"));
    assert_eq!(results(harness.messages("a")), [("call-0", "no", true)]);
}

#[test]
fn what_is_passed_through_must_satisfy_the_schema() {
    for (given, outcome) in [(r#"{"n": 1}"#, Ok(r#"{"n":1}"#)), ("one", Err(RowErrorKind::StructuredOutput))]
    {
        let agent = agent_with("a", AgentSettings { tools: vec![0], ..AgentSettings::default() });
        let tools = vec![tool("final", ToolCallAction::Passthrough)];
        let graph = AgentGraph::new(vec![agent], tools, 0, Some(number_schema())).unwrap().with_repairs(3);
        let mut harness = GraphHarness::ask(graph, "go");
        harness.answer_with("a", calls(&[("final", Q)]));
        harness.give("final:0", ToolOutput::from_text(given));
        let got = harness.outcome();
        assert_eq!(got.as_deref().map_err(|error| error.kind), outcome);
        if let Err(error) = got {
            assert_eq!(error.raw_text.as_deref(), Some("one"));
        }
    }
}

#[test]
fn tools_are_not_called_when_the_model_gets_no_further_turn() {
    let limited = || AgentSettings { max_iterations: 1, ..AgentSettings::default() };
    let mut harness = asked_for(limited(), &[("search", Q)]);
    let error = harness.outcome().unwrap_err();
    assert_eq!(error.kind, RowErrorKind::TurnLimit);

    let mut harness = asked_for(limited(), &[("final", Q)]);
    harness.give("final:0", ToolOutput::from_text("passed"));
    assert_eq!(harness.text(), "passed");

    let mut harness = asked_for(limited(), &[("final", Q)]);
    harness.give("final:0", ToolOutput::error("no"));
    assert_eq!(harness.outcome().unwrap_err().kind, RowErrorKind::TurnLimit);
}

#[test]
fn a_conversation_continues_over_many_turns_with_all_messages_so_far() {
    let mut harness = asked_for(AgentSettings::default(), &[("search", Q)]);
    for turn in 1..=3 {
        harness.give("search:0", ToolOutput::from_text(format!("r{turn}")));
        assert_eq!(harness.messages("a").len(), 1 + 2 * turn);
        let message = Completion { text: format!("t{turn}"), ..calls(&[("search", Q)]) };
        harness.answer_with("a", message);
    }
    harness.give("search:0", ToolOutput::from_text("r4"));
    assert_eq!(texts(harness.messages("a")), ["go", "", "r1", "t1", "r2", "t2", "r3", "t3", "r4"]);
    harness.answer("a", "done");
    assert_eq!((harness.text().as_str(), harness.row_state.turn_count()), ("done", 5));
}
