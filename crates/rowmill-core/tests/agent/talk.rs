//! One agent's conversation with its model: answers, corrections, pauses, limits.

use rowmill_core::agent::{Agent, Cast, Form};
use rowmill_types::{Completion, Echo, ErrorKind, Finish, Message, Role, RowError};

use crate::stage::*;

#[test]
fn a_plain_cast_asks_once_and_the_text_is_the_result() {
    let mut stage = Stage::ask(Cast::plain(None, 0).unwrap(), "hello");
    assert_eq!(stage.asked(""), "hello");
    stage.answer("", "a \"b\"\n");
    assert!(stage.course.is_over() && stage.open.is_empty());
    assert_eq!(stage.outcome(), Ok(r#""a \"b\"\n""#.to_owned()));
    assert!(stage.course.is_over(), "a course whose outcome was taken asks for nothing more");
    assert_eq!(stage.course.turns(), 1);
}

#[test]
fn an_answer_that_breaks_the_schema_is_corrected_as_often_as_is_allowed() {
    let mut stage = Stage::ask(Cast::plain(Some(number_schema()), 2).unwrap(), "count");
    assert_eq!(stage.form(""), Form::Result);
    stage.answer("", "three");
    let messages = stage.messages("");
    assert_eq!(
        messages.iter().map(|m| m.role).collect::<Vec<_>>(),
        [Role::User, Role::Assistant, Role::User]
    );
    assert_eq!(messages[1].text, "three");
    assert!(messages[2].text.starts_with("Your answer does not satisfy the required JSON Schema:"));
    stage.answer("", r#"{"n":"3"}"#);
    assert_eq!(stage.messages("").len(), 5);
    stage.answer("", "```json\n{\"n\": 3}\n```");
    assert_eq!(stage.outcome(), Ok(r#"{"n":3}"#.to_owned()));

    let mut stage = Stage::ask(Cast::plain(Some(number_schema()), 1).unwrap(), "count");
    stage.answer("", "three");
    stage.answer("", "four");
    let error = stage.outcome().unwrap_err();
    assert_eq!((error.kind, error.raw_text.as_deref()), (ErrorKind::StructuredOutput, Some("four")));
}

#[test]
fn answers_that_are_no_answers_fail_the_row_with_what_was_said() {
    for (finish, kind) in [
        (Finish::Refused, ErrorKind::Refusal),
        (Finish::Filtered, ErrorKind::ContentFilter),
        (Finish::Length, ErrorKind::OutputTruncated),
    ] {
        let mut stage = Stage::ask(cast(vec![agent("a")]), "hello");
        // Calls in a truncated answer are not made.
        let completion = Completion { finish, text: "half".into(), ..calls(&[("search", "{")]) };
        stage.answer_with("a", completion);
        let error = stage.outcome().unwrap_err();
        assert_eq!((error.kind, error.raw_text.as_deref()), (kind, Some("half")));
    }
    let mut stage = Stage::ask(cast(vec![agent("a")]), "hello");
    stage.fail("a", RowError { status: Some(500), ..RowError::new(ErrorKind::ServerError, "down") });
    let error = stage.outcome().unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str(), error.status),
        (ErrorKind::ServerError, "down", Some(500))
    );
}

#[test]
fn a_paused_turn_goes_on_with_what_was_said_sent_back_as_it_came() {
    let mut stage = Stage::ask(cast(vec![agent("a")]), "search");
    let echo = Echo { form: "anthropic".into(), content: "[]".into() };
    let paused = Completion {
        finish: Finish::Paused,
        echo: Some(Box::new(echo.clone())),
        ..Completion::of_text("wait")
    };
    stage.answer_with("a", paused);
    let messages = stage.messages("a");
    assert_eq!(texts(messages), ["search", "wait"]);
    assert_eq!(messages[1].echo.as_deref(), Some(&echo));
    stage.answer("a", "found");
    assert_eq!(stage.text(), "found");
    assert_eq!(stage.course.turns(), 2);
}

#[test]
fn an_agent_stops_at_its_max_iterations_and_keeps_what_was_said_last() {
    let limited = Agent { max_iterations: 2, ..Agent::default() };
    let mut stage = Stage::ask(cast(vec![agent_with("a", limited)]), "search");
    let paused = |text: &str| Completion { finish: Finish::Paused, ..Completion::of_text(text) };
    stage.answer_with("a", paused("one"));
    stage.answer_with("a", paused("two"));
    let error = stage.outcome().unwrap_err();
    assert_eq!(error.kind, ErrorKind::TurnLimit);
    assert_eq!(error.message, "`a` has no result after 2 model calls (`max_iterations`)");
    assert_eq!(error.raw_text.as_deref(), Some("two"));
}

#[test]
fn a_row_stops_at_its_turns_whoever_makes_them() {
    let paused = Completion { finish: Finish::Paused, ..Completion::of_text("one") };
    let mut stage = Stage::ask(cast(vec![agent("a")]).with_turns(Some(1)), "search");
    stage.answer_with("a", paused);
    let error = stage.outcome().unwrap_err();
    assert_eq!(error.message, "no result after 1 model call (`turns`)");
    assert_eq!((error.kind, error.raw_text.as_deref()), (ErrorKind::TurnLimit, Some("one")));
    assert_eq!(stage.course.turns(), 1);
}

#[test]
fn examples_stand_before_the_request_and_are_never_taken_for_what_was_said() {
    let examples = vec![Message::user("2+2"), Message::assistant("4")];
    let with_examples = || agent_with("a", Agent { examples: examples.clone(), ..Agent::default() });
    let mut stage = Stage::ask(cast(vec![with_examples()]), "3+3");
    assert_eq!(texts(stage.messages("a")), ["2+2", "4", "3+3"]);
    stage.answer("a", "6");
    assert_eq!(stage.text(), "6");

    let mut stage = Stage::ask(cast(vec![with_examples()]).with_turns(Some(0)), "3+3");
    let error = stage.outcome().unwrap_err();
    assert_eq!((error.kind, error.raw_text), (ErrorKind::TurnLimit, None));
}

#[test]
fn an_aborted_row_is_over_and_its_first_outcome_stays() {
    let mut stage = Stage::ask(cast(vec![agent("a")]), "hello");
    stage.course.abort(RowError::new(ErrorKind::Interrupted, "stopped"));
    stage.answer("a", "late");
    assert_eq!(stage.outcome().unwrap_err().kind, ErrorKind::Interrupted);
}
