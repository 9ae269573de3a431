//! What is known of a run besides its events.

use serde::{Deserialize, Serialize};

use rowmill_types::Words;

use crate::changes::{RunTexts, changes};
use crate::fingerprint::Fingerprint;
use crate::history::History;
use crate::limits::Spend;
use crate::ports::{Epoch, LedgerPosition};

/// Which run this is, and where it stands. It is replaced in one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHeader {
    /// The id of the run, for all its life. Keys that tools and providers get are made from it.
    pub run: String,
    /// When it started.
    pub at: String,
    /// What shapes its results.
    pub fingerprint: Fingerprint,
    /// The last part of the run that was begun. Only the store changes it.
    #[serde(default)]
    pub epoch: Epoch,
    /// Where telemetry goes and what the file held before this ledger.
    pub telemetry: Option<SinkBase>,
    /// Whether all its rows are ok, so that nothing is lost with the ledger.
    #[serde(default)]
    pub finished: bool,
    /// Set until the run comes to the end of its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
    /// Names the rows that the query of the run gave, where it may give others when it is asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_rows: Option<String>,
    /// What the run cannot have spent more than before the last part of this ledger began.
    #[serde(default)]
    pub spent: Spend,
    /// Where that part begins: what stands before is in `spent`.
    #[serde(default)]
    pub counted: LedgerPosition,
    /// From where on turns are of the agents that work now.
    #[serde(default)]
    pub turns_from: LedgerPosition,
    /// Up to where the output has what the ledger says of rows: their latest envelopes, in its order.
    #[serde(default)]
    pub settled_to: LedgerPosition,
    /// What rows used before this ledger began, for a look ahead at the next run.
    #[serde(default)]
    pub history: History,
    /// The JSON Schema of results, as text: the types of tables come from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The texts behind the digests of the fingerprint, to show what changed.
    #[serde(default)]
    pub texts: RunTexts,
    /// Full paths of what the run was made from, so that nothing made of its results replaces it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// The full path of the file for failed rows, so that it is known again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_output: Option<String>,
    /// Whether its envelopes hold the input rows, so that a resume does the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_input: bool,
}

/// A run that has not come to the end of its input: it was stopped or cut off, or continues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// How many rows it is for, where all of them were read before it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

/// A file that records are appended to, and its length before this ledger began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkBase {
    /// The absolute path.
    pub path: String,
    /// Its length in bytes.
    pub length: u64,
}

impl RunHeader {
    /// The header of a new run.
    #[must_use]
    pub fn new(run: &str, at: &str, fingerprint: &Fingerprint, telemetry: Option<SinkBase>) -> Self {
        let (run, at) = (run.to_owned(), at.to_owned());
        Self {
            run,
            at,
            fingerprint: fingerprint.clone(),
            epoch: Epoch::default(),
            telemetry,
            finished: false,
            unfinished: Some(Unfinished::default()),
            recorded_rows: None,
            spent: Spend::default(),
            counted: LedgerPosition::START,
            turns_from: LedgerPosition::START,
            settled_to: LedgerPosition::START,
            history: History::default(),
            schema: None,
            texts: RunTexts::default(),
            reads: Vec::new(),
            error_output: None,
            keeps_input: false,
        }
    }

    /// What differs from the settings of `now`, as a person wants to see it.
    #[must_use]
    pub fn changes(&self, now: &Self) -> Vec<Words> {
        let texts = |header: &Self| RunTexts { schema: header.schema.clone(), ..header.texts.clone() };
        changes((&self.fingerprint, &texts(self)), (&now.fingerprint, &texts(now)))
    }
}
