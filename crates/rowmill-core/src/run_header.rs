//! The data of a run besides its events.

use serde::{Deserialize, Serialize};

use rowmill_types::DiagnosticText;

use crate::fingerprint::RunFingerprint;
use crate::history::AnsweredRowUsage;
use crate::limits::Spend;
use crate::ports::{InputIdentity, LedgerPosition, RunEpoch};
use crate::setting_changes::{RunTexts, setting_changes};

/// Identifies a run and describes its state. It is replaced atomically.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHeader {
    /// The id of the run, which never changes. The keys sent to tools and providers are derived from it.
    pub run: String,
    /// When it started.
    pub at: String,
    /// Everything that shapes its results.
    pub fingerprint: RunFingerprint,
    /// The last part of the run that was started. Only the store changes it.
    #[serde(default)]
    pub epoch: RunEpoch,
    /// The telemetry file, and its content before this ledger.
    pub telemetry: Option<AppendedFileStart>,
    /// Whether all its rows are ok, so that nothing is lost with the ledger.
    #[serde(default)]
    pub finished: bool,
    /// Set until the run reaches the end of its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<UnfinishedRunEntry>,
    /// Identifies the rows that the run's query returned, if it may return others when it is run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_rows: Option<String>,
    /// The upper bound of the run's spending before the last part of this ledger.
    #[serde(default)]
    pub spent: Spend,
    /// Where that part begins: everything before it is included in `spent`.
    #[serde(default)]
    pub counted: LedgerPosition,
    /// From this position on, turns belong to the current agents.
    #[serde(default)]
    pub turns_from: LedgerPosition,
    /// Up to this position, the output has everything that the ledger has about rows: their latest envelopes, in its
    /// order.
    #[serde(default)]
    pub settled_to: LedgerPosition,
    /// The usage of rows before this ledger began, for an estimate of the next run.
    #[serde(default)]
    pub history: AnsweredRowUsage,
    /// The JSON Schema of results, as text: the column types of tables are derived from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The texts behind the digests of the fingerprint, to show what changed.
    #[serde(default)]
    pub texts: RunTexts,
    /// The input as it was when the run read it, with its content also if rows have ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<InputIdentity>,
    /// The full path of the work folder, so that a resume recognizes files that were moved with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Full paths of the run's inputs, so that no file made from its results replaces them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// The full path of the file for failed rows, so that a resume recognizes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_output: Option<String>,
    /// Whether its envelopes contain the input rows, so that a resume does the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_input: bool,
}

/// A run that has not reached the end of its input: it was stopped or interrupted, or is still running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedRunEntry {
    /// The number of its rows, if all of them were read before it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

/// A file that records are appended to, and its length before this ledger began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendedFileStart {
    /// The absolute path.
    pub path: String,
    /// Its length in bytes.
    pub length: u64,
}

impl RunHeader {
    /// The header of a new run.
    #[must_use]
    pub fn new(
        run: &str,
        at: &str,
        fingerprint: &RunFingerprint,
        telemetry: Option<AppendedFileStart>,
    ) -> Self {
        let (run, at) = (run.to_owned(), at.to_owned());
        Self {
            run,
            at,
            fingerprint: fingerprint.clone(),
            epoch: RunEpoch::default(),
            telemetry,
            finished: false,
            unfinished: Some(UnfinishedRunEntry::default()),
            recorded_rows: None,
            spent: Spend::default(),
            counted: LedgerPosition::START,
            turns_from: LedgerPosition::START,
            settled_to: LedgerPosition::START,
            history: AnsweredRowUsage::default(),
            schema: None,
            texts: RunTexts::default(),
            input: None,
            folder: None,
            reads: Vec::new(),
            error_output: None,
            keeps_input: false,
        }
    }

    /// The differences from the settings of `now`, for users.
    #[must_use]
    pub fn setting_changes(&self, now: &Self) -> Vec<DiagnosticText> {
        let texts = |header: &Self| RunTexts { schema: header.schema.clone(), ..header.texts.clone() };
        setting_changes((&self.fingerprint, &texts(self)), (&now.fingerprint, &texts(now)))
    }
}
