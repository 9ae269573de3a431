//! Routers.

use rowmill_core::agent::{Cast, Form, Kind, Member};
use rowmill_types::{ErrorKind, Role, RowError};

use crate::stage::*;

fn router(make: fn(Vec<Member>) -> Cast) -> Cast {
    make(vec![agent("cook"), agent("driver"), member("desk", Kind::Router { agents: vec![0, 1] })])
}

fn choice(agent: &str) -> String {
    format!(r#"{{"agent":"{agent}","confidence":"high","reasoning":"it fits"}}"#)
}

#[test]
fn the_model_chooses_and_the_chosen_one_gets_the_request_with_its_files() {
    let mut stage = Stage::start(router(cast), request_with_file("lunch"));
    assert_eq!((stage.asked("desk"), stage.form("desk")), ("lunch", Form::Route));
    assert_eq!(files(stage.messages("desk")), [1]);
    stage.answer("desk", &choice("cook"));
    assert_eq!((stage.asked("cook"), files(stage.messages("cook"))), ("lunch", vec![1]));
    stage.answer("cook", "soup");
    assert_eq!(stage.text(), "soup");
}

#[test]
fn the_chosen_one_is_asked_for_the_schema() {
    let mut stage = Stage::ask(router(cast_with_schema), "lunch");
    assert_eq!(stage.form("desk"), Form::Route);
    stage.answer("desk", &choice("driver"));
    assert_eq!(stage.form("driver"), Form::Result);
    stage.answer("driver", r#"{"n":2}"#);
    assert_eq!(stage.outcome(), Ok(r#"{"n":2}"#.to_owned()));
}

#[test]
fn a_single_agent_is_asked_without_a_choice() {
    let cast = cast(vec![agent("cook"), member("desk", Kind::Router { agents: vec![0] })]);
    assert_eq!(cast.voices().len(), 1);
    let mut stage = Stage::ask(cast, "lunch");
    assert_eq!(stage.waits_for(), ["cook"]);
    stage.answer("cook", "soup");
    assert_eq!((stage.text().as_str(), stage.course.turns()), ("soup", 1));
}

#[test]
fn a_name_that_does_not_exist_is_told_to_the_model_once() {
    let mut stage = Stage::start(router(cast), request_with_file("lunch"));
    stage.answer("desk", &choice("baker"));
    let messages = stage.messages("desk");
    assert_eq!(
        texts(messages),
        [
            "lunch",
            &choice("baker"),
            "There is no agent `baker`. Choose again, and name one of these exactly: `cook`, `driver`."
        ]
    );
    assert_eq!(messages[1].role, Role::Assistant);
    assert_eq!(files(messages), [1, 0, 0]);
    stage.answer("desk", &choice("driver"));
    assert_eq!((stage.asked("driver"), files(stage.messages("driver"))), ("lunch", vec![1]));
}

#[test]
fn a_model_that_keeps_choosing_nobody_fails_the_row_with_what_it_said() {
    let mut stage = Stage::ask(router(cast), "lunch");
    stage.answer("desk", &choice("baker"));
    stage.answer("desk", &choice("butcher"));
    let error = stage.outcome().unwrap_err();
    assert_eq!(error.kind, ErrorKind::StructuredOutput);
    assert_eq!(error.message, "`desk`: the model chose the agent `butcher`; there are only `cook`, `driver`");
    assert_eq!(error.raw_text, Some(choice("butcher")));
}

#[test]
fn a_choice_that_breaks_its_schema_is_corrected_like_any_answer() {
    let mut stage = Stage::ask(router(cast).with_repairs(1), "lunch");
    stage.answer("desk", "cook");
    assert_eq!(stage.messages("desk").len(), 3);
    stage.answer("desk", &choice("cook"));
    assert_eq!(stage.waits_for(), ["cook"]);
}

#[test]
fn failures_say_whether_the_router_or_the_chosen_one_failed() {
    let mut stage = Stage::ask(router(cast), "lunch");
    stage.fail("desk", RowError::new(ErrorKind::Timeout, "slow"));
    assert_eq!(stage.outcome().unwrap_err().message, "`desk`: slow");
    let mut stage = Stage::ask(router(cast), "lunch");
    stage.answer("desk", &choice("cook"));
    stage.fail("cook", RowError::new(ErrorKind::Timeout, "slow"));
    assert_eq!(stage.outcome().unwrap_err().message, "`cook`: slow");
}
