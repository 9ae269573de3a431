//! Test support for the two lanes: the same run with live calls and with batch jobs.

use std::time::Duration;

use rowmill_testkit::{SimulatedBatchStats, SimulatedBatches, Simulator, SimulatorScript};
use serde_json::Value;

use crate::support::{Ended, KEY, Place};

/// A model of every provider with a batch API.
pub(crate) const MODELS: [&str; 8] = [
    "openai.gpt-5.4-mini",
    "responses.gpt-5.4-mini",
    "anthropic.m",
    "google.m",
    "mistral.m",
    "groq.m",
    "together.m",
    "azure.m",
];

/// The first of them.
pub(crate) const MODEL: &str = MODELS[0];

/// What makes a run one of the batch lane that waits for its jobs without a pause.
pub(crate) const BATCH: &[&str] = &["--lane", "batch", "--poll-every", "1ms"];

/// What makes a run one of the batch lane that leaves its jobs.
pub(crate) const DETACHED: &[&str] = &["--lane", "batch", "--detach"];

/// Jobs take this long; the clock of jobs stands still in tests that hold it.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

/// A schema that few answers satisfy by chance.
pub(crate) const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {"label": {"enum": ["good", "bad"]}, "score": {"type": "integer", "minimum": 0, "maximum": 9}},
  "required": ["label", "score"],
  "additionalProperties": false
}"#;

/// A simulator, and a folder in which every provider with a batch API is that simulator.
pub(crate) fn provided(script: SimulatorScript) -> (Simulator, Place) {
    let simulator = Simulator::start_blocking(script.key(KEY));
    let mut place = Place::with(&simulator);
    let url = simulator.url();
    for (base_url, key, path) in [
        ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "/azure/openai/v1"),
        ("GROQ_BASE_URL", "GROQ_API_KEY", "/groq/openai/v1"),
        ("TOGETHER_BASE_URL", "TOGETHER_API_KEY", "/together/v1"),
        ("MISTRAL_BASE_URL", "MISTRAL_API_KEY", "/mistral/v1"),
    ] {
        place.set(base_url, &format!("{url}{path}"));
        place.set(key, KEY);
    }
    (simulator, place)
}

/// A simulator whose jobs end only when a test lets them, with these rows in `rows.jsonl`.
pub(crate) fn held(batches: SimulatedBatches, texts: &[&str]) -> (Simulator, Place) {
    let (simulator, place) = provided(SimulatorScript::new().batches(batches.duration(LONG)));
    simulator.stop_job_clock();
    write_texts(&place, texts);
    (simulator, place)
}

/// Writes `rows.jsonl` with rows whose prompts are in the field `t`.
pub(crate) fn write_texts<T: AsRef<str>>(place: &Place, texts: impl IntoIterator<Item = T>) {
    let row = |text: T| format!("{}\n", serde_json::json!({"t": text.as_ref()}));
    place.write("rows.jsonl", texts.into_iter().map(row).collect::<String>());
}

/// A run over these rows.
pub(crate) fn run_texts(place: &Place, flags: &[&[&str]]) -> Ended {
    place.run_rows(&[&["-m", MODEL, "-p", "{{t}}"], &*flags.concat()].concat())
}

/// A run that has ended, with the simulator that it used.
pub(crate) struct LaneRun {
    pub(crate) simulator: Simulator,
    pub(crate) place: Place,
    pub(crate) ended: Ended,
}

impl LaneRun {
    pub(crate) fn jobs(&self) -> SimulatedBatchStats {
        self.simulator.stats().batches
    }

    pub(crate) fn output(&self) -> String {
        self.place.read("out.jsonl")
    }
}

/// The same run in both lanes, each with a simulator and a folder of its own.
pub(crate) struct BothLanes<'a> {
    pub(crate) script: &'a dyn Fn() -> SimulatorScript,
    /// Writes the files of the run.
    pub(crate) prepare: &'a dyn Fn(&mut Place),
    pub(crate) flags: &'a [&'a str],
}

impl BothLanes<'_> {
    /// Runs it, first live, and checks that both write the same envelopes and end in the same way.
    #[track_caller]
    pub(crate) fn give_the_same(&self) -> (LaneRun, LaneRun) {
        let live = self.run(&["--retry-wait", "1ms", "--lane", "live"]);
        let batch = self.run(BATCH);
        let (left, right) = (live.output(), batch.output());
        for (left, right) in left.lines().zip(right.lines()) {
            assert_eq!(left, right, "{:?}", self.flags);
        }
        assert_eq!(left, right, "{:?}", self.flags);
        assert_eq!(live.ended.code, batch.ended.code, "{}", batch.ended.stderr);
        assert_eq!((live.jobs().jobs, batch.simulator.stats().requests), (0, 0), "each stays in its lane");
        assert_eq!(batch.jobs().repeated_answers, 0, "nothing is paid for twice");
        assert_eq!(counts(&live.ended), counts(&batch.ended));
        (live, batch)
    }

    fn run(&self, lane: &[&str]) -> LaneRun {
        let (simulator, mut place) = provided((self.script)());
        (self.prepare)(&mut place);
        let ended = place.run_rows(&[self.flags, &["--final-summary"], lane].concat());
        assert!(matches!(ended.code, 0 | 3), "{}", ended.stderr);
        LaneRun { simulator, place, ended }
    }
}

/// What a summary counts that is the same in both lanes.
fn counts(ended: &Ended) -> Vec<Value> {
    let summary = ended.summary();
    let fields = [
        "selected_rows",
        "processed_rows",
        "failed_rows",
        "failures",
        "usage",
        "outcome_unknown_rows",
        "reused",
    ];
    fields.iter().map(|field| summary[field].clone()).collect()
}
