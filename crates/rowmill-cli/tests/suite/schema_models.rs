//! Results that the user's own pydantic model checks.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rowmill_testkit::{Answer, Script, Simulator};
use serde_json::{Value, json};

use crate::support::{KEY, Place, each, scripted};

const SHAPES: &str = r#"
print("imported")
from pydantic import BaseModel, field_validator

class Review(BaseModel):
    label: str
    score: int = 5

    @field_validator("label")
    @classmethod
    def known(cls, value):
        if value == "bug":
            raise KeyError("no such thing")
        if value not in ("good", "bad"):
            raise ValueError(f"{value} is no label; use good or bad")
        return value.upper()
"#;

/// A folder with a model, and a provider that gives these answers in turn, the last of them for ever;
/// `None` where there is no pydantic.
fn with_model(answers: &'static [&'static str]) -> Option<(Simulator, Place)> {
    let has_pydantic =
        Command::new("python3").args(["-c", "import pydantic"]).output().ok()?.status.success();
    if !has_pydantic {
        return None;
    }
    let given = Arc::new(AtomicUsize::new(0));
    let script = Script::new().key(KEY).answer(move |_, _| {
        let at = given.fetch_add(1, Ordering::Relaxed);
        Answer::Text(answers[at.min(answers.len() - 1)].to_owned())
    });
    let (simulator, mut place) = scripted(script);
    place.set("PATH", &std::env::var_os("PATH")?.into_string().ok()?);
    place.write("shapes.py", SHAPES);
    Some((simulator, place))
}

const FLAGS: &[&str] =
    &["-m", "openai.m", "-p", "{{n}}", "--schema-model", "shapes:Review", "--parallel", "1"];

#[test]
fn validators_run_their_messages_go_into_the_repair_and_defaults_are_filled() {
    let answers = &[r#"{"label": "fine"}"#, r#"{"label": "good"}"#];
    let Some((simulator, place)) = with_model(answers) else { return };
    place.write_rows(1);
    place.run_rows(FLAGS).ok();
    assert_eq!(each(&place.json("out.jsonl"), "/result"), [json!({"label": "GOOD", "score": 5})]);
    let requests = simulator.requests();
    assert_eq!(requests.len(), 2);
    let feedback = requests[1].json()["messages"][2]["content"].to_string();
    assert!(feedback.contains("- at `/label`: Value error, fine is no label; use good or bad"), "{feedback}");
}

#[test]
fn what_a_model_refuses_after_all_repairs_fails_the_row_and_a_broken_model_asks_for_none() {
    let Some((simulator, place)) = with_model(&[r#"{"label": "fine"}"#]) else { return };
    place.write_rows(1);
    place.run_rows(FLAGS).code(3);
    let error = place.json("out.jsonl")[0]["error"].clone();
    assert_eq!(error["type"], "StructuredOutputError");
    let message = "the answer does not satisfy the JSON schema: at `/label`: Value error, fine is no label; \
                   use good or bad";
    assert_eq!((&error["message"], simulator.requests().len()), (&json!(message), 2));

    let Some((simulator, place)) = with_model(&[r#"{"label": "bug"}"#]) else { return };
    place.write_rows(1);
    place.run_rows(FLAGS).code(3);
    let error = place.json("out.jsonl")[0]["error"].clone();
    let message = "the answer could not be checked: the schema model failed: KeyError: 'no such thing'";
    assert_eq!((&error["message"], simulator.requests().len()), (&json!(message), 1));
}

#[test]
fn an_answer_that_is_used_again_keeps_what_the_model_made_of_it() {
    let Some((simulator, place)) = with_model(&[r#"{"label": "good"}"#]) else { return };
    place.write("rows.jsonl", "{\"n\":1}\n{\"n\":1}\n{\"n\":1}\n");
    place.run_rows(&[FLAGS, &["--dedupe"]].concat()).ok();
    let results: Vec<Value> = each(&place.json("out.jsonl"), "/result");
    assert_eq!(simulator.requests().len(), 1);
    // `GOOD` is what the validator made of the answer, so it is not given to it again.
    assert_eq!(results, vec![json!({"label": "GOOD", "score": 5}); 3]);
}

#[test]
fn a_resume_with_another_model_code_is_refused() {
    let Some((_simulator, place)) = with_model(&[r#"{"label": "good"}"#]) else { return };
    place.write_rows(2);
    place.run_rows(&[FLAGS, &["--limit", "1"]].concat()).ok();
    place.write("shapes.py", SHAPES.replace("value.upper()", "value.title()"));
    place.run_rows(&[FLAGS, &["--resume"]].concat()).code(1).says("schema");
    place.write("shapes.py", SHAPES);
    place.run_rows(&[FLAGS, &["--resume"]].concat()).ok();
    assert_eq!(place.json("out.jsonl").len(), 2);
}
