//! Analyses code files for vulnerabilities: the model reports its findings with a typed tool.

use std::{error::Error, io::Write};

use rowmill::{Batch, ReturnNone, ToolOutput, Worker, WorkerTools};
use rowmill_testkit::{ScriptedTurn, Simulator, SimulatorScript};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Report {
    /// The call that can be misused, if there is one.
    weak_call: Option<String>,
}

const FILES: [(&str, &str); 3] = [
    ("file1", "void foo() { strcpy(buf, input); }"),
    ("file2", "void bar() { strncpy(buf, input, sizeof(buf)); }"),
    ("file3", "void baz() { gets(buffer); }"),
];

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    // Plays the model: it reports calls that write without a bound.
    let simulator = Simulator::start_blocking(SimulatorScript::new().answer_calls(|seen| {
        let weak = ["strcpy", "gets"].into_iter().find(|call| seen.prompt.contains(&format!(" {call}(")));
        ScriptedTurn::new().call("report", serde_json::json!({"weak_call": weak})).into()
    }));
    let tools = WorkerTools::none().add_function("report", "Ends the analysis.", async |report: Report| {
        Ok(ToolOutput::final_result(report.weak_call.unwrap_or("nothing".into())))
    });
    let worker = Worker::from_model_name("generic.analyst").base_url(simulator.url() + "/v1").tools(tools);
    let batch = Batch::over(FILES).prompt(|(_, code)| format!("Find weak calls:\n{code}")).worker(worker);
    for ((id, _), reported) in FILES.iter().zip(batch.concurrency(5).on_failure(ReturnNone).run_blocking()?) {
        writeln!(out, "{id}: {}", reported.unwrap_or("no analysis".into()))?;
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}
