//! Chains.

use rowmill_core::agent::{Agent, Cast, Form, Kind};
use rowmill_types::{Completion, ErrorKind, Finish, Role, RowError};

use crate::stage::*;

fn chain(cumulative: bool, make: fn(Vec<rowmill_core::agent::Member>) -> Cast) -> Cast {
    let kind = Kind::Chain { sequence: vec![0, 1, 0], cumulative };
    make(vec![agent("a"), agent("b"), member("line", kind)])
}

#[test]
fn each_gets_only_the_answer_before_it_and_the_first_gets_the_request_with_its_files() {
    let mut stage = Stage::start(chain(false, cast), request_with_file("go"));
    assert_eq!((stage.asked("a"), files(stage.messages("a"))), ("go", vec![1]));
    stage.answer("a", "one");
    assert_eq!((stage.asked("b"), files(stage.messages("b"))), ("one", vec![0]));
    stage.answer("b", "two");
    assert_eq!(stage.asked("a"), "two");
    stage.answer("a", "three");
    assert_eq!(stage.text(), "three");
}

#[test]
fn a_cumulative_chain_shows_everyone_all_answers_and_gives_them_all() {
    let mut stage = Stage::start(chain(true, cast), request_with_file("go"));
    assert_eq!(stage.asked("a"), "go");
    stage.answer("a", "one");
    assert_eq!(texts(stage.messages("b")), ["go", "one"]);
    stage.answer("b", "two\n");
    let messages = stage.messages("a");
    assert_eq!(texts(messages), ["go", "one", "two\n"]);
    assert_eq!(files(messages), [1, 0, 0]);
    assert!(messages.iter().all(|message| message.role == Role::User));
    stage.answer("a", "three");
    assert_eq!(
        stage.text(),
        "<fastagent:request>go</fastagent:request>\n\n\
         <fastagent:response agent='a'>one</fastagent:response>\n\n\
         <fastagent:response agent='b'>two\n</fastagent:response>\n\n\
         <fastagent:response agent='a'>three</fastagent:response>"
    );
}

#[test]
fn an_empty_request_is_named_as_such_in_the_result_of_a_cumulative_chain() {
    let kind = Kind::Chain { sequence: vec![0], cumulative: true };
    let mut stage = Stage::ask(cast(vec![agent("a"), member("line", kind)]), "");
    stage.answer("a", "one");
    assert_eq!(
        stage.text(),
        "<fastagent:request><no response></fastagent:request>\n\n\
         <fastagent:response agent='a'>one</fastagent:response>"
    );
}

#[test]
fn only_the_last_one_is_asked_for_the_schema_and_its_json_is_the_result() {
    for cumulative in [false, true] {
        let mut stage = Stage::ask(chain(cumulative, cast_with_schema), "go");
        assert_eq!(stage.form("a"), Form::Text);
        stage.answer("a", "one");
        assert_eq!(stage.form("b"), Form::Text);
        stage.answer("b", "two");
        assert_eq!(stage.form("a"), Form::Result);
        stage.answer("a", r#"{"n": 1}"#);
        assert_eq!(stage.outcome(), Ok(r#"{"n":1}"#.to_owned()));
    }
}

#[test]
fn a_member_that_fails_ends_the_chain_and_the_error_says_which_one_it_was() {
    let mut stage = Stage::ask(chain(true, cast), "go");
    stage.answer("a", "one");
    let error = RowError {
        status: Some(400),
        code: Some("too_long".into()),
        raw_text: Some("half".into()),
        ..RowError::new(ErrorKind::BadRequest, "refused")
    };
    stage.fail("b", error.clone());
    assert_eq!(stage.outcome(), Err(RowError { message: "`b`: refused".into(), ..error }));
}

#[test]
fn chains_of_chains_name_the_way_to_the_one_that_failed() {
    let inner = Kind::Chain { sequence: vec![0, 0], cumulative: false };
    let outer = Kind::Chain { sequence: vec![1, 0], cumulative: false };
    let mut stage = Stage::ask(cast(vec![agent("a"), member("inner", inner), member("outer", outer)]), "go");
    stage.answer("a", "one");
    stage.fail("a", RowError::new(ErrorKind::Timeout, "slow"));
    assert_eq!(stage.outcome().unwrap_err().message, "`inner`: `a`: slow");
}

#[test]
fn one_that_has_no_result_is_named_once() {
    let limited = agent_with("a", Agent { max_iterations: 1, ..Agent::default() });
    let line = member("line", Kind::Chain { sequence: vec![0, 0], cumulative: false });
    let mut stage = Stage::ask(cast(vec![limited, line]), "go");
    stage.answer_with("a", Completion { finish: Finish::Paused, ..Completion::of_text("one") });
    let error = stage.outcome().unwrap_err();
    assert_eq!(error.message, "`a` has no result after 1 model call (`max_iterations`)");
}
