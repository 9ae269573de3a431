//! Agents in the batch lane: each round of model calls is a job, and tools run here in between.

use std::collections::BTreeMap;

use rowmill_testkit::{ScriptedTurn, SimulatedAnswer, SimulatedCallView, SimulatorScript};
use serde_json::json;

use crate::agents_support::{with_programs, write_cards};
use crate::lanes_support::{BothLanes, DETACHED, LONG, MODEL, MODELS, provided};
use crate::support::Place;

/// A function whose every call leaves a line in a file.
fn tools(place: &Place) -> String {
    let counted = place.path("counted");
    format!(
        "def look(key: str) -> str:\n    \"\"\"Looks something up.\"\"\"\n    \
         with open({:?}, \"a\") as counted:\n        counted.write(key + \"\\n\")\n    \
         return \"value of \" + key\n",
        counted.display().to_string()
    )
}

/// Two turns with a tool, then the answer.
fn two_tool_turns(seen: &SimulatedCallView<'_>) -> SimulatedAnswer {
    let look = |step: &str| {
        let arguments = json!({"key": format!("{} {step}", seen.prompt)});
        SimulatedAnswer::Calls { text: String::new(), calls: vec![("look".to_owned(), arguments)] }
    };
    match seen.turn {
        1 => look("first"),
        2 => look("second"),
        _ => SimulatedAnswer::Text(format!("{}: {}", seen.prompt, seen.last)),
    }
}

fn script() -> SimulatorScript {
    SimulatorScript::new().keep_requests(0).answer_calls(two_tool_turns)
}

/// A card with the function, and rows with prompts of their own.
fn write_agent(place: &mut Place, model: &str, rows: usize) {
    with_programs(place);
    place.write("cards/tools.py", tools(place));
    write_cards(place, &[("solo", &format!("model: {model}\nfunction_tools: [tools.py:look]"), "Look.")]);
    place.write(
        "rows.jsonl",
        (1..=rows).map(|row| format!("{}\n", json!({"p": format!("row {row}")}))).collect::<String>(),
    );
}

/// How often each call ran.
fn counted(place: &Place) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in place.read("counted").lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

const FLAGS: &[&str] = &["--agent-card", "cards", "-p", "{{p}}", "--python-processes", "1"];

#[test]
fn an_agent_with_two_tool_turns_gives_the_same_in_three_rounds_and_calls_each_tool_once() {
    let prepare = |place: &mut Place| write_agent(place, MODEL, 300);
    let (live, batch) = BothLanes { script: &script, prepare: &prepare, flags: FLAGS }.give_the_same();
    let stats = batch.jobs();
    assert_eq!((stats.jobs, stats.rows, stats.answers), (3, 900, 900));
    assert!(batch.ended.stderr.contains("batch:  3 jobs in 3 rounds"), "{}", batch.ended.stderr);
    let (live, batch) = (counted(&live.place), counted(&batch.place));
    assert_eq!(batch.len(), 600);
    assert!(batch.values().all(|times| *times == 1), "each call ran once");
    assert_eq!(live, batch);
}

#[test]
fn agents_with_tools_and_thinking_give_the_same_in_both_lanes_over_every_protocol() {
    // The first four have protocols of their own; the others speak that of the first one.
    for model in &MODELS[..4] {
        // Thoughts are signed by those vendors that do so, and have to be sent back unchanged.
        let script = || {
            SimulatorScript::new().answer_calls(|seen: &SimulatedCallView<'_>| match two_tool_turns(seen) {
                SimulatedAnswer::Calls { calls, .. } => {
                    let turn =
                        calls.into_iter().fold(ScriptedTurn::new().think(), |turn, (name, arguments)| {
                            turn.call(name, arguments)
                        });
                    turn.into()
                }
                answer => answer,
            })
        };
        let prepare = |place: &mut Place| write_agent(place, model, 4);
        let (_, batch) = BothLanes { script: &script, prepare: &prepare, flags: FLAGS }.give_the_same();
        assert_eq!((batch.jobs().jobs, batch.jobs().answers), (3, 12), "{model}");
        assert!(counted(&batch.place).values().all(|times| *times == 1), "{model}");
    }
}

#[test]
fn rows_that_need_more_turns_go_on_while_others_have_ended() {
    // One row fails for good in its second turn, one loses a result, one needs no tool at all.
    let script = || {
        SimulatorScript::new().answer_calls(|seen: &SimulatedCallView<'_>| match (seen.prompt, seen.turn) {
            ("row 1", 1) => SimulatedAnswer::Text("at once".to_owned()),
            ("row 2", 2) => SimulatedAnswer::Fail(rowmill_testkit::SimulatedFault::from_status(400)),
            _ => two_tool_turns(seen),
        })
    };
    let prepare = |place: &mut Place| write_agent(place, MODEL, 5);
    let (_, batch) = BothLanes { script: &script, prepare: &prepare, flags: FLAGS }.give_the_same();
    assert_eq!((batch.jobs().jobs, batch.jobs().rows), (3, 5 + 4 + 3));
    assert!(counted(&batch.place).values().all(|times| *times == 1));
}

#[test]
fn a_new_process_for_every_round_calls_each_tool_once() {
    let batches = rowmill_testkit::SimulatedBatches::new().duration(LONG);
    let (simulator, mut place) = provided(script().batches(batches));
    simulator.stop_job_clock();
    write_agent(&mut place, MODEL, 20);
    place.run_rows(&[FLAGS, DETACHED].concat()).code(5);
    for code in [5, 5, 0] {
        simulator.finish_jobs();
        place.rowmill(&["batch", "retrieve"]).code(code);
    }
    let counts = counted(&place);
    assert_eq!((counts.len(), counts.values().sum::<usize>()), (40, 40));
    let envelopes = place.json("out.jsonl");
    assert_eq!(envelopes[6]["result"], "row 7: value of row 7 second");
    assert_eq!((simulator.stats().batches.jobs, simulator.stats().batches.answers), (3, 60));
}
