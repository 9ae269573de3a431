//! Your own tool host: it runs calls, keeps a notebook for every item and deletes it when the item has
//! ended.

use std::collections::HashMap;
use std::error::Error;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rowmill::extend::{BoxFuture, ToolFailure, ToolHost, ToolOutput, ToolRequest};
use rowmill::{Batch, OfferedTool, Worker, WorkerTools};
use rowmill_testkit::{ScriptedTurn, SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::{Value, json};

/// Notes by row number.
#[derive(Debug, Default)]
pub(crate) struct Notebooks(Mutex<HashMap<u64, Vec<String>>>);

impl Notebooks {
    fn locked(&self) -> MutexGuard<'_, HashMap<u64, Vec<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, row: u64, note: Option<&str>) -> ToolOutput {
        let Some(note) = note.filter(|note| !note.is_empty()) else {
            return ToolOutput::error("there is nothing to write down");
        };
        let mut notebooks = self.locked();
        let notes = notebooks.entry(row).or_default();
        notes.push(note.to_owned());
        ToolOutput::from_text(format!("note {}: {note}", notes.len()))
    }
}

impl ToolHost for Notebooks {
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async move {
            let arguments: Value = serde_json::from_str(request.arguments).unwrap_or_default();
            match request.tool {
                "write" => Ok(self.write(request.row, arguments["note"].as_str())),
                other => {
                    Err(ToolFailure { message: format!("there is no tool `{other}`"), may_have_run: false })
                }
            }
        })
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        self.locked().remove(&row);
        Box::pin(std::future::ready(()))
    }
}

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    // Plays the model: it notes every word, one after the other.
    let simulator = Simulator::start_blocking(SimulatorScript::new().answer_calls(|seen| {
        let word = usize::try_from(seen.turn - 1).ok().and_then(|word| seen.prompt.split(' ').nth(word));
        match word {
            Some(word) => ScriptedTurn::new().call("write", json!({"note": word})).into(),
            None => SimulatedAnswer::Text(format!("done after {}", seen.last)),
        }
    }));
    let schema = json!({"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]});
    let tools = WorkerTools::from_host(
        Notebooks::default(),
        vec![OfferedTool::new("write", "Writes a note.", schema)],
    );
    let batch = Batch::over(["bread and salt", "oil"])
        .prompt(|list| *list)
        .worker(Worker::from_model_name("generic.clerk").base_url(simulator.url() + "/v1").tools(tools));
    for reported in batch.run_blocking()? {
        writeln!(out, "{reported}")?;
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}
