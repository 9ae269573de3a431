//! What a run needs, complete: no default is left to the engine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::ports::{Ledger, Model, Observer, RowSource, Sink};
use rowmill_core::prompt::Template;
use rowmill_core::resume::Resume;
use rowmill_core::retry;
use rowmill_core::select::{IdRule, Selector};
use rowmill_core::validate::ResultSchema;

use crate::Stop;

/// Everything one run is made of.
pub struct Plan {
    /// The id of the run; part of every request's key.
    pub run: String,
    /// Where rows come from.
    pub source: Box<dyn RowSource>,
    /// Which of them are taken.
    pub selector: Selector,
    /// How rows are named.
    pub ids: IdRule,
    /// Whether ids were checked before.
    pub id_check: IdCheck,
    /// What an earlier run left.
    pub resume: Resume,
    /// What answers a row.
    pub worker: Worker,
    /// How many rows are worked on at once, at most.
    pub parallel: usize,
    /// Stop once this many rows failed.
    pub max_errors: Option<u64>,
    /// The truth about the run.
    pub ledger: Box<dyn Ledger>,
    /// Where records go.
    pub sinks: Sinks,
    /// Who hears of it.
    pub observer: Arc<dyn Observer>,
    /// How it is stopped from outside.
    pub stop: Stop,
}

impl fmt::Debug for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Plan")
            .field("run", &self.run)
            .field("parallel", &self.parallel)
            .finish_non_exhaustive()
    }
}

/// Whether the ids of all rows are known to be good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdCheck {
    /// The input was read before and every id is valid and unique.
    Done,
    /// The input can be read only once: bad and repeated ids are failed rows.
    WhileReading,
}

/// What answers a row.
#[derive(Debug)]
pub struct Worker {
    /// The model.
    pub model: Arc<dyn Model>,
    /// How a row becomes a prompt.
    pub template: Template,
    /// What results must satisfy.
    pub schema: Option<ResultSchema>,
    /// How often an answer that breaks the schema may be corrected.
    pub repairs: u32,
    /// When failed calls are tried again.
    pub retry: retry::Policy,
    /// How long one call may take.
    pub timeout: Duration,
    /// Whether envelopes carry the input row.
    pub include_input: bool,
}

/// Where records of ended rows go.
#[derive(Default)]
pub struct Sinks {
    /// Get every record in input order.
    pub ordered: Vec<Box<dyn Sink>>,
    /// Get every record as its row ends.
    pub arrival: Vec<Box<dyn Sink>>,
}

impl fmt::Debug for Sinks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Sinks({} ordered, {} by arrival)", self.ordered.len(), self.arrival.len())
    }
}
