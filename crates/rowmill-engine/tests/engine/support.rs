//! A run with fakes on every port, which records what happens in which order.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails here fails the test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::agent::AgentGraph;
use rowmill_core::limits::{Budget, BudgetLimits, CallParallelism, MinuteLimits, PaceMode, RunPaceSettings};
use rowmill_core::ports::{
    AppendOutcome, Dataset, EventGroup, Ledger, LedgerPosition, LedgerRecordId, Model, Observer, OpenLedger,
    PublishedRecord, RecordReader, RecordSink, RunEpoch, RunEvent,
};
use rowmill_core::prompt::PromptTemplate;
use rowmill_core::record::{EnvelopeHead, RowRecord};
use rowmill_core::redact::Redactor;
use rowmill_core::resume::ResumeIndex;
use rowmill_core::retry;
use rowmill_core::select::{IdRule, RowSelection, RowSelector};
use rowmill_core::validate::ResultSchema;
use rowmill_engine::{
    CallGateSettings, EndpointKey, IdCheckPhase, ModelEndpoint, ModelRoleEndpoints, OnQuota, ReadingThread,
    RecordSinks, RowExecutionSetup, RowWorker, RunSetup, SharedLimits, StopHandle, StopRules,
    WorkerAssignment,
};
use rowmill_testkit::FakeDataset;
use rowmill_types::{AttachmentRules, Problem, ProblemCode, SettingVocabulary};
use serde_json::Value;

/// The log of events, in order, as short lines such as `ledger 3` and `output 3`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// The numbers of all lines that start with `word`, in order.
    pub(crate) fn rows(&self, word: &str) -> Vec<u64> {
        let rest = |line: String| line.strip_prefix(&format!("{word} ")).map(str::to_owned);
        self.lines().into_iter().filter_map(rest).map(|row| row.parse().unwrap()).collect()
    }

    /// Waits until something has happened, without letting time advance.
    pub(crate) async fn until(&self, happened: impl Fn(&Self) -> bool) {
        while !happened(self) {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn place(&self, line: &str) -> usize {
        let found = self.lines().iter().position(|other| other == line);
        found.unwrap_or_else(|| panic!("`{line}` is not in {:?}", self.lines()))
    }
}

/// A ledger in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeLedger {
    bytes: Arc<Mutex<Vec<u8>>>,
    log: Log,
    /// The group from which the reserve is needed, and the one from which every write fails.
    trouble_at: Option<usize>,
    fails_at: Option<usize>,
    groups: Arc<AtomicUsize>,
}

impl FakeLedger {
    pub(crate) fn open(self) -> OpenLedger {
        OpenLedger { ledger: Arc::new(self), epoch: RunEpoch(1) }
    }

    pub(crate) fn trouble_at(mut self, group: usize) -> Self {
        self.trouble_at = Some(group);
        self
    }

    pub(crate) fn fails_at(mut self, group: usize) -> Self {
        self.fails_at = Some(group);
        self
    }
}

pub(crate) fn disk_full() -> Problem {
    Problem::new(ProblemCode::WriteFailed, "the disk is full")
}

impl FakeLedger {
    fn write(&self, group: EventGroup<'_>) -> Result<AppendOutcome, Problem> {
        let groups = self.groups.fetch_add(1, Ordering::Relaxed) + 1;
        if self.fails_at.is_some_and(|at| groups >= at) {
            return Err(disk_full());
        }
        group.taken.iter().for_each(|row| self.log.add(format!("taken {}", row.number)));
        group.released.iter().for_each(|row| self.log.add(format!("released {}", row.number)));
        for parked in group.parked {
            self.log.add(format!("parked {} for {}", parked.row, parked.waits_for.join(" and ")));
        }
        if let Some(spent) = group.spent_at_most {
            self.log.add(format!("cover {}", spent.cost.pico()));
        }
        let mut bytes = self.bytes.lock().unwrap();
        for turn in group.turns {
            let step_event = String::from_utf8_lossy(&turn.step_event);
            let kind = step_event.split('"').nth(1).unwrap_or_default().to_owned();
            self.log.add(format!("turn {kind} of {}", turn.row));
            turn.write(&mut bytes);
        }
        let mut records = Vec::new();
        for record in group.records {
            self.log.add(format!("ledger {}", EnvelopeHead::parse(record.envelope()).unwrap().number));
            records.push(record_id(bytes.len(), record.line.len()));
            bytes.extend_from_slice(&record.line);
        }
        let trouble = self.trouble_at.filter(|at| groups >= *at).map(|_| disk_full());
        Ok(AppendOutcome { records, problem: trouble })
    }
}

fn record_id(place: usize, bytes: usize) -> LedgerRecordId {
    LedgerRecordId::new(LedgerPosition::from_key(place as u64), bytes)
}

impl Ledger for FakeLedger {
    fn append<'a>(
        &'a self,
        _: RunEpoch,
        group: EventGroup<'a>,
    ) -> BoxFuture<'a, Result<AppendOutcome, Problem>> {
        std::future::ready(self.write(group)).boxed()
    }

    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem> {
        Ok(Box::new(self.clone()))
    }

    fn position(&self) -> LedgerPosition {
        LedgerPosition::from_key(self.bytes.lock().unwrap().len() as u64)
    }
}

impl RecordReader for FakeLedger {
    fn read(&mut self, id: LedgerRecordId) -> Result<Vec<u8>, Problem> {
        let start = id.position().key() as usize;
        self.log.add("read back".into());
        Ok(self.bytes.lock().unwrap()[start..start + id.event_length()].to_vec())
    }
}

/// Keeps the envelopes that it gets, and logs them under its name.
pub(crate) struct FakeSink {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    pub(crate) envelopes: Arc<Mutex<Vec<Value>>>,
    pub(crate) fails: bool,
}

impl RecordSink for FakeSink {
    fn publish(&mut self, published: PublishedRecord<'_>) -> Result<(), Problem> {
        if self.fails {
            return Err(disk_full());
        }
        let envelope: Value = serde_json::from_slice(published.envelope).unwrap();
        self.log.add(format!("{} {}", self.name, envelope["row_number"]));
        let telemetry: Value = serde_json::from_slice(published.telemetry).unwrap();
        for call in telemetry["tool_calls"].as_array().into_iter().flatten() {
            self.log.add(format!("{} took {} ms", call["tool"], call["duration_ms"]));
        }
        self.envelopes.lock().unwrap().push(envelope);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Problem> {
        Ok(())
    }
}

struct Watcher(Log);

impl Observer for Watcher {
    fn observe(&self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Retrying { wait, .. } => self.0.add(format!("wait {}", wait.as_millis())),
            RunEvent::Draining => self.0.add("draining".into()),
            RunEvent::AnswersCapped { tokens, calls, .. } => {
                self.0.add(format!("answers of {tokens} tokens, {calls:?} calls"));
            }
            RunEvent::OutputCapIgnored { allowed, used, .. } => {
                self.0.add(format!("{used} of {allowed} tokens"))
            }
            RunEvent::PacedByBudget { calls, .. } => self.0.add(format!("budget for {calls} calls")),
            RunEvent::Waiting { endpoint, reason, .. } => {
                self.0.add(format!("{endpoint} waits for {reason}"))
            }
            _ => {}
        }
    }
}

/// The model endpoints of a model role.
pub(crate) fn shared(endpoints: Vec<ModelEndpoint>) -> Vec<Arc<ModelEndpoint>> {
    endpoints.into_iter().map(Arc::new).collect()
}

/// A model role whose models accept only text files.
pub(crate) fn model_role(endpoints: Vec<ModelEndpoint>) -> ModelRoleEndpoints {
    ModelRoleEndpoints {
        endpoints: shared(endpoints),
        files: AttachmentRules { kinds: Vec::new(), max_total: 1 << 20, max_count: 8 },
    }
}

/// The default pace of model endpoints in tests.
pub(crate) const ENDPOINT: CallGateSettings = CallGateSettings { share: SHARE, on_quota: OnQuota::Wait };

/// The default pace of a run's calls in tests.
pub(crate) const SHARE: RunPaceSettings = RunPaceSettings {
    parallel: CallParallelism::AtMost(1_000),
    pace: PaceMode::Auto,
    rates: MinuteLimits { requests: None, tokens: None, input_tokens: None, output_tokens: None },
    max_output: None,
    reserves_output: false,
    priming: false,
    max_outage: Duration::from_secs(3_600),
};

/// The settings of a model endpoint whose calls are paced in this way.
pub(crate) fn paced(share: RunPaceSettings) -> CallGateSettings {
    CallGateSettings { share, ..ENDPOINT }
}

/// The bench with this model at a model endpoint of its own.
pub(crate) fn with_endpoint<M: Model + 'static>(
    mut bench: Bench,
    model: &Arc<M>,
    settings: CallGateSettings,
) -> Bench {
    bench.row_worker().model_roles[0].endpoints = shared(vec![endpoint("model", model.clone(), settings)]);
    bench.plan.parallel = settings.share.parallel.max_calls();
    bench
}

/// A model with limits of its own.
pub(crate) fn endpoint(name: &str, model: Arc<dyn Model>, settings: CallGateSettings) -> ModelEndpoint {
    let key = EndpointKey { provider: name.into(), account: String::new(), model: name.into() };
    ModelEndpoint {
        name: name.into(),
        model,
        gate: SharedLimits::default().gate(key, settings),
        price: None,
        max_output: settings.share.max_output,
        output_caps: None,
        batch_terms: None,
        fixed_bytes: 0,
        identity: String::new(),
    }
}

/// A run that is assembled step by step.
pub(crate) struct Bench {
    pub(crate) plan: RunSetup,
    pub(crate) log: Log,
    envelopes: Arc<Mutex<Vec<Value>>>,
}

impl Bench {
    /// Rows whose prompts are the numbers from 1 to `rows`.
    pub(crate) fn new(rows: usize, model: Arc<dyn Model>) -> Self {
        let texts = (1..=rows).map(|number| format!("{{\"p\":\"{number}\"}}"));
        Self::over(FakeDataset::from_texts(texts), model)
    }

    pub(crate) fn over(dataset: FakeDataset, model: Arc<dyn Model>) -> Self {
        let (log, envelopes) = (Log::default(), Arc::default());
        let sink = |name| -> Box<dyn RecordSink> {
            Box::new(FakeSink { name, log: log.clone(), envelopes: Arc::clone(&envelopes), fails: false })
        };
        let mut sinks = RecordSinks::default();
        sinks.in_input_order.push(sink("output"));
        let plan = RunSetup {
            run: "run".into(),
            source: dataset.open().unwrap(),
            reading: ReadingThread::for_dataset(&dataset),
            selector: RowSelector::new(&RowSelection::default(), None).unwrap(),
            ids: IdRule::default(),
            id_check: IdCheckPhase::Done,
            resume: ResumeIndex::default(),
            worker: RowExecutionSetup {
                assignment: WorkerAssignment::Shared(Arc::new(RowWorker {
                    graph: Arc::new(AgentGraph::single_agent(None, 1).unwrap()),
                    model_roles: vec![model_role(vec![endpoint("model", model, ENDPOINT)])],
                    tools: None,
                })),
                row_budget: BudgetLimits::default(),
                checkpoint: false,
                attachments: None,
                prompts: Arc::new(PromptTemplate::parse("{{p}}".into())),
                answer_mapper: None,
                retry: retry::RetryPolicy::default(),
                timeout: Duration::from_secs(600),
                row_timeout: None,
                answer_cache: None,
                include_input: false,
                vocabulary: SettingVocabulary::NEUTRAL,
                traces: None,
                redactor: Redactor::default(),
            },
            parallel: 4,
            memory: rowmill_engine::ROW_MEMORY,
            stop_rules: StopRules::default(),
            budget: Budget::default(),
            ledger: FakeLedger { log: log.clone(), ..FakeLedger::default() }.open(),
            sinks,
            locks: None,
            observer: Arc::new(Watcher(log.clone())),
            stop: StopHandle::default(),
        };
        Self { plan, log, envelopes }
    }

    pub(crate) fn with_schema(&mut self, schema: ResultSchema) {
        self.row_worker().graph = Arc::new(AgentGraph::single_agent(Some(schema), 1).unwrap());
    }

    /// Its row worker.
    pub(crate) fn row_worker(&mut self) -> &mut RowWorker {
        match &mut self.plan.worker.assignment {
            WorkerAssignment::Shared(row_worker) => Arc::get_mut(row_worker).unwrap(),
            WorkerAssignment::PerRow(_) => panic!("rows have crews of their own"),
        }
    }

    /// The first model.
    pub(crate) fn endpoint(&mut self) -> &mut ModelEndpoint {
        Arc::get_mut(&mut self.row_worker().model_roles[0].endpoints[0]).unwrap()
    }

    pub(crate) fn ledger(&self) -> FakeLedger {
        FakeLedger { log: self.log.clone(), ..FakeLedger::default() }
    }

    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    pub(crate) fn sink(&self, name: &'static str, fails: bool) -> Box<dyn RecordSink> {
        Box::new(FakeSink { name, log: self.log.clone(), envelopes: Arc::default(), fails })
    }

    /// The parts that are needed after the plan has been passed to the engine.
    pub(crate) fn split(self) -> (RunSetup, Watched) {
        (self.plan, Watched { log: self.log, envelopes: self.envelopes })
    }
}

/// The results of a run.
pub(crate) struct Watched {
    pub(crate) log: Log,
    envelopes: Arc<Mutex<Vec<Value>>>,
}

impl Watched {
    pub(crate) fn envelopes(&self) -> Vec<Value> {
        self.envelopes.lock().unwrap().clone()
    }

    /// The numbers of all rows with an envelope, in the order of the output.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.envelopes().iter().map(|envelope| envelope["row_number"].as_u64().unwrap()).collect()
    }

    /// The error types of the rows, `ok` for those without.
    pub(crate) fn outcomes(&self) -> Vec<String> {
        let outcome = |envelope: &Value| envelope["error"]["type"].as_str().unwrap_or("ok").to_owned();
        self.envelopes().iter().map(outcome).collect()
    }
}

/// The record of a row that is ok, as a ledger line.
pub(crate) fn kept_line(number: u64) -> Vec<u8> {
    let envelope =
        format!(r#"{{"id":{number},"row_number":{number},"ok":true,"result":"kept","error":null}}"#);
    let line = format!("{{\"event\":\"row_ended\",\"envelope\":{envelope},\"telemetry\":{{}}}}\n");
    RowRecord::parse(line.into_bytes()).unwrap().line
}

impl FakeLedger {
    /// Puts a record into the ledger as if from an earlier run; returns its position.
    pub(crate) fn holds(&self, line: &[u8]) -> LedgerRecordId {
        let mut bytes = self.bytes.lock().unwrap();
        let id = record_id(bytes.len(), line.len());
        bytes.extend_from_slice(line);
        id
    }
}
