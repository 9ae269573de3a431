//! The engine that carries out runs. It knows no adapter: everything outside is reached through the ports of
//! `rowmill-core`.

mod answer_checks;
mod answer_mapping;
mod batch_queue;
mod call_demand;
mod call_gate;
mod call_report;
mod commit;
mod dropped_steps;
mod endpoint;
mod feed;
mod intake;
mod limits;
mod loop_inputs;
mod memory;
mod model_turn;
mod panics;
mod plan;
mod prepared;
mod publish;
mod queue_head;
mod replay;
mod request_keys;
mod row_context;
mod row_execution;
mod row_work;
mod row_worker;
mod run;
mod run_account;
mod run_driver;
mod running_steps;
mod stop;
mod stop_policy;
mod tool_call;
mod tries;
mod waiting_rows;
mod wake;

pub use call_demand::{OutputCapChoice, OutputCaps, prompt_token_upper_bound};
pub use call_gate::CallGate;
pub use endpoint::{BatchTerms, ModelEndpoint};
pub use limits::{CallGateSettings, EndpointKey, OnQuota, SharedLimits};
pub use memory::ROW_MEMORY;
pub use plan::{
    AnswerCache, ErrorRateLimit, IdCheckPhase, ModelRoleEndpoints, ReadingThread, RecordSinks,
    RowExecutionSetup, RowWorker, RowWorkerSource, RunSetup, StopRules, ToolSetup, WorkerAssignment,
};
pub use row_work::panic_message;
pub use run::{RunOutcome, execute_run};
pub use stop::StopHandle;
pub use stop_policy::StopCause;
