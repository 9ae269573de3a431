//! Runs queries with a tool that counts failures per item, with one database for all items.

use std::{error::Error, io::Write, sync::Arc, sync::atomic::AtomicU32, sync::atomic::Ordering};

use rowmill::{Batch, ToolOutput, Worker, WorkerTools};
use rowmill_testkit::{ScriptedTurn, Simulator, SimulatorScript};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Query {
    sql: String,
}

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    // Plays the model: it mistypes its first query, and fixes it after the error.
    let simulator = Simulator::start_blocking(SimulatorScript::new().answer_calls(|seen| {
        let sql = seen.prompt.replace("SELECT", if seen.turn == 1 { "SELEKT" } else { "SELECT" });
        ScriptedTurn::new().call("run_query", serde_json::json!({"sql": sql})).into()
    }));
    let database = Arc::new(["SELECT users", "SELECT orders"]);
    let tools = WorkerTools::with_state(move |_| (Arc::clone(&database), AtomicU32::new(0))).add_function(
        "run_query",
        "Runs a query.",
        async |state: Arc<(Arc<[&str; 2]>, AtomicU32)>, query: Query| match state.0.contains(&&*query.sql) {
            true => Ok(ToolOutput::final_result(format!("the rows of `{}`", query.sql))),
            false if state.1.fetch_add(1, Ordering::Relaxed) + 1 == 3 => Ok(ToolOutput::final_result("")),
            false => Ok(ToolOutput::error(format!("`{}` cannot be run: correct it", query.sql))),
        },
    );
    let worker = Worker::from_model_name("generic.clerk").base_url(simulator.url() + "/v1").tools(tools);
    let batch = Batch::over(["SELECT users", "SELECT orders", "SELECT x"]).prompt(|sql| *sql).worker(worker);
    for (answer, turns) in batch.map_answers(|done| (done.answer, done.calls)).run_blocking()? {
        writeln!(out, "`{answer}` in {turns} turns")?;
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}
