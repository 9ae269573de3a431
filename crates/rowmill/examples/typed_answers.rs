//! Answers questions with values of a type, whose JSON Schema is sent with every request.

use std::error::Error;
use std::io::Write;

use rowmill::{Batch, ReturnNone, Worker};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Answer {
    answer: String,
    /// Between 0 and 1.
    confidence: f64,
}

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    // Plays the model: it knows two answers, and gives unstructured text otherwise.
    let simulator =
        Simulator::start_blocking(SimulatorScript::new().answer_calls(|seen| match seen.prompt {
            "What is 2+2?" => SimulatedAnswer::Json(json!({"answer": "4", "confidence": 1.0})),
            "Capital of France?" => SimulatedAnswer::Json(json!({"answer": "Paris", "confidence": 0.99})),
            _ => SimulatedAnswer::Text("I would rather not say.".into()),
        }));
    let worker = Worker::from_model_name("generic.scholar").base_url(simulator.url() + "/v1");
    let batch = Batch::over(["What is 2+2?", "Capital of France?", "Largest planet?"])
        .prompt(|question| *question)
        .answer_type::<Answer>()
        .worker(worker);
    for answer in batch.concurrency(3).on_failure(ReturnNone).run_blocking()? {
        let reported = answer.map(|reported| format!("{} ({})", reported.answer, reported.confidence));
        writeln!(out, "{}", reported.unwrap_or("no answer".into()))?;
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}
