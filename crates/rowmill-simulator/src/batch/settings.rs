//! Settings of the batch APIs.

use std::path::PathBuf;
use std::time::Duration;

use crate::distribution::RandomDistribution;

/// How long jobs take, what limits them, and what damage is done to them.
///
/// ```
/// # use rowmill_simulator::SimulatedBatches;
/// # use std::time::Duration;
/// let batches = SimulatedBatches::new()
///     .duration(Duration::from_secs(7_200))
///     .time_scale(3_600.0)
///     .missing_rows(0.01)
///     .lose_first_create_responses(1);
/// ```
#[derive(Debug, Clone)]
pub struct SimulatedBatches {
    pub(crate) duration: RandomDistribution,
    pub(crate) time_scale: f64,
    pub(crate) window: Option<Duration>,
    pub(crate) queued_tokens: Option<u64>,
    pub(crate) max_rows: Option<u64>,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) missing_rows: f64,
    pub(crate) empty_error_files: bool,
    pub(crate) validation_error: Option<(String, u64)>,
    pub(crate) lost_creates: u64,
    pub(crate) failed_creates: (u64, u16),
    pub(crate) cut_first_uploads: u64,
    pub(crate) cut_first_downloads: u64,
    pub(crate) slow_first_downloads: u64,
    pub(crate) folder: Option<PathBuf>,
}

impl SimulatedBatches {
    /// Jobs are done at once, within the vendors' limits and without damage.
    #[must_use]
    pub fn new() -> Self {
        Self {
            duration: RandomDistribution::Constant(0.0),
            time_scale: 1.0,
            window: None,
            queued_tokens: None,
            max_rows: None,
            max_bytes: None,
            missing_rows: 0.0,
            empty_error_files: false,
            validation_error: None,
            lost_creates: 0,
            failed_creates: (0, 503),
            cut_first_uploads: 0,
            cut_first_downloads: 0,
            slow_first_downloads: 0,
            folder: None,
        }
    }

    /// Sets how long a job takes: a constant, or a distribution.
    #[must_use]
    pub fn duration(mut self, duration: impl Into<RandomDistribution>) -> Self {
        self.duration = duration.into();
        self
    }

    /// Lets the time of jobs pass this many times as fast as real time.
    #[must_use]
    pub fn time_scale(mut self, scale: f64) -> Self {
        self.time_scale = scale.clamp(0.0, 1e9);
        self
    }

    /// Sets the time after which a job expires, in place of the vendor's own. Azure's jobs never expire.
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }

    /// Limits the prompt tokens of all open jobs of a vendor and model. A job beyond that fails with
    /// `token_limit_exceeded`; Anthropic, Google and Mistral reject it with 429.
    #[must_use]
    pub fn queued_tokens(mut self, tokens: u64) -> Self {
        self.queued_tokens = Some(tokens);
        self
    }

    /// Sets the maximum number of rows in a job, in place of the vendor's own.
    #[must_use]
    pub fn max_rows(mut self, rows: u64) -> Self {
        self.max_rows = Some(rows);
        self
    }

    /// Sets the maximum size of an input in bytes, in place of the vendor's own.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Omits this share of the rows from all results, chosen by the script's seed.
    #[must_use]
    pub fn missing_rows(mut self, share: f64) -> Self {
        self.missing_rows = share.clamp(0.0, 1.0);
        self
    }

    /// Gives every job an error file, even if it has zero bytes. Azure always does.
    #[must_use]
    pub fn empty_error_files(mut self) -> Self {
        self.empty_error_files = true;
        self
    }

    /// Lets every job with an input file fail with this code at this line.
    #[must_use]
    pub fn validation_error(mut self, code: impl Into<String>, line: u64) -> Self {
        self.validation_error = Some((code.into(), line));
        self
    }

    /// Makes the first `count` jobs, but closes the connection without an answer.
    #[must_use]
    pub fn lose_first_create_responses(mut self, count: u64) -> Self {
        self.lost_creates = count;
        self
    }

    /// Makes the next `count` jobs, but answers with this status.
    #[must_use]
    pub fn fail_first_create_responses(mut self, count: u64, status: u16) -> Self {
        self.failed_creates = (count, status);
        self
    }

    /// Resets the connection in the middle of the first `count` uploads.
    #[must_use]
    pub fn cut_first_uploads(mut self, count: u64) -> Self {
        self.cut_first_uploads = count;
        self
    }

    /// Closes the connection in the middle of the first `count` downloads of results.
    #[must_use]
    pub fn cut_first_downloads(mut self, count: u64) -> Self {
        self.cut_first_downloads = count;
        self
    }

    /// Keeps files in a new folder in this one, in place of the system's folder for temporary files. It is
    /// removed at the end.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sends the next `count` downloads of results in 64 pieces, each released like a byte of a dripping
    /// answer.
    #[must_use]
    pub fn slow_first_downloads(mut self, count: u64) -> Self {
        self.slow_first_downloads = count;
        self
    }
}

impl Default for SimulatedBatches {
    fn default() -> Self {
        Self::new()
    }
}
