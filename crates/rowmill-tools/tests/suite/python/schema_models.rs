//! Answers that the user's pydantic model checks, with real Python processes.

use std::fs;
use std::time::Duration;

use rowmill_core::ports::AnswerChecker as _;
use rowmill_tools::{SchemaModelAnswerChecker, SchemaModelCheckSettings};
use rowmill_types::AnswerVerdict;
use tempfile::TempDir;

use crate::python::support::{Meeting, gone, with_pydantic};

const CODE: &str = r#"
import os, signal, socket
from pydantic import BaseModel, Field, field_validator, model_validator

kept = []
calls = 0

class Review(BaseModel):
    label: str
    score: int = Field(default=5, ge=0)
    also: str = Field(default="-", alias="else")

    @field_validator("label")
    @classmethod
    def known(cls, value):
        global calls
        calls += 1
        print("seen", value)
        if value == "die":
            os._exit(7)
        if value == "die once" and not os.path.exists("died"):
            open("died", "w").close()
            os._exit(7)
        if value == "hang":
            signal.pause()
        if value == "count":
            return str(calls)
        if value.isdigit():
            kept.append(socket.create_connection(("127.0.0.1", int(value))))
        if value == "bug":
            raise KeyError("no such thing")
        if value == "odd":
            raise ValueError("odd is no label; use even")
        return value.strip()

    @model_validator(mode="after")
    def agrees(self):
        if self.label == "best" and self.score < 9:
            raise ValueError("the best has a score of 9")
        return self
"#;

/// A model in a folder of its own.
fn model(timeout: Duration) -> (TempDir, SchemaModelAnswerChecker) {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("shapes.py"), CODE).unwrap();
    let settings = SchemaModelCheckSettings {
        interpreter: with_pydantic(),
        folder: folder.path().into(),
        model: "shapes:Review".into(),
        timeout,
        variables: None,
    };
    (folder, SchemaModelAnswerChecker::new(&settings))
}

const LONG: Duration = Duration::from_secs(60);

fn valid(text: &str) -> AnswerVerdict {
    AnswerVerdict::Valid(text.into())
}

#[tokio::test]
async fn validators_run_defaults_are_filled_and_mistakes_name_their_place() {
    let (_folder, model) = model(LONG);
    let filled = r#"{"label":"good","score":5,"else":"-"}"#;
    assert_eq!(model.check(r#"{"label": " good "}"#).await, valid(filled));
    let invalid = |lines: &[&str]| AnswerVerdict::Invalid(lines.iter().map(|line| (*line).into()).collect());
    assert_eq!(
        model.check(r#"{"label": "odd", "score": -1}"#).await,
        invalid(&[
            "at `/label`: Value error, odd is no label; use even",
            "at `/score`: Input should be greater than or equal to 0",
        ])
    );
    let best = model.check(r#"{"label": "best"}"#).await;
    assert_eq!(best, invalid(&["Value error, the best has a score of 9"]));
    assert_eq!(model.check("{}").await, invalid(&["at `/label`: Field required"]));
    let bug = model.check(r#"{"label": "bug"}"#).await;
    assert_eq!(bug, AnswerVerdict::Unchecked("the schema model failed: KeyError: 'no such thing'".into()));
    let counted = model.check(r#"{"label": "count"}"#).await;
    assert_eq!(counted, valid(r#"{"label":"5","score":5,"else":"-"}"#), "one process has seen them all");
    model.close().await;
}

#[tokio::test]
async fn a_process_that_dies_is_replaced_and_an_answer_that_kills_two_is_not_checked() {
    let (_folder, model) = model(LONG);
    let filled = r#"{"label":"die once","score":5,"else":"-"}"#;
    assert_eq!(model.check(r#"{"label": "die once"}"#).await, valid(filled));
    let died = model.check(r#"{"label": "die"}"#).await;
    let message = "the Python process exited (exit status: 7); its last output: seen die";
    assert_eq!(died, AnswerVerdict::Unchecked(message.into()));
    let again = model.check(r#"{"label": "a"}"#).await;
    assert_eq!(again, valid(r#"{"label":"a","score":5,"else":"-"}"#));
    model.close().await;
}

#[tokio::test]
async fn a_validator_that_hangs_is_ended_and_the_next_answer_is_checked() {
    let (_folder, model) = model(Duration::from_secs(2));
    let hung = model.check(r#"{"label": "hang"}"#).await;
    assert_eq!(hung, AnswerVerdict::Unchecked("the schema model took longer than 2 s".into()));
    let again = model.check(r#"{"label": "a"}"#).await;
    assert_eq!(again, valid(r#"{"label":"a","score":5,"else":"-"}"#));
    model.close().await;
}

#[tokio::test]
async fn no_process_is_left_when_the_run_ends() {
    let (_folder, model) = model(LONG);
    let meeting = Meeting::new().await;
    let answer = format!("{{\"label\": \"{}\"}}", meeting.port);
    let (verdict, connection) = tokio::join!(model.check(&answer), meeting.arrival());
    assert!(matches!(verdict, AnswerVerdict::Valid(_)), "{verdict:?}");
    model.close().await;
    gone(connection).await;
}

#[tokio::test]
async fn a_model_that_cannot_be_imported_is_reported() {
    let (folder, model) = model(LONG);
    fs::write(folder.path().join("shapes.py"), "import none_of_this\n").unwrap();
    let verdict = model.check("{}").await;
    let message = "cannot start Python for the schema model: ModuleNotFoundError: No module named \
                   'none_of_this'";
    assert_eq!(verdict, AnswerVerdict::Unchecked(message.into()));
}
