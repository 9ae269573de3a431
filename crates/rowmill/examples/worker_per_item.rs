//! Creates a separate worker for every item: each with another instruction, and with a stronger model
//! for long texts.

use std::error::Error;
use std::io::Write;

use rowmill::{Batch, FunctionFailure, Worker};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};

const LETTERS: [(&str, &str); 3] =
    [("Norwegian", "Hello!"), ("French", "Thank you for all the fish."), ("Klingon", "Success!")];

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    // Plays the models: each answers with its name and its instruction.
    let simulator = Simulator::start_blocking(SimulatorScript::new().answer_calls(|seen| {
        SimulatedAnswer::Text(format!("{}: {} {}", seen.model, seen.system, seen.prompt))
    }));
    let address = simulator.url() + "/v1";
    let worker_for = move |index: usize, (language, text): &(&str, &str)| {
        if *language == "Klingon" {
            return Err(FunctionFailure::new(format!("nobody speaks the language of letter {index}")));
        }
        let model = if text.len() > 10 { "generic.large" } else { "generic.small" };
        let instruction = format!("Translate into {language}.");
        Ok(Worker::from_model_name(model).base_url(address.as_str()).instruction(instruction))
    };
    let batch = Batch::over(LETTERS).prompt(|(_, text)| *text).worker_for(worker_for);
    for result in batch.on_failure(rowmill::ReturnError).run_blocking()? {
        writeln!(out, "{}", result.unwrap_or_else(|error| error.to_string()))?;
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}
