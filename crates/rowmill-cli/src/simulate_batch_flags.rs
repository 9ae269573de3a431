//! The flags of `rowmill simulate` for the batch APIs.

use std::time::Duration;

use clap::Args;
use rowmill_simulator::{RandomDistribution, SimulatedBatches, parse_flags};

/// Flags for jobs of the batch APIs.
#[derive(Debug, Args)]
pub(crate) struct SimulateBatchFlags {
    /// How long a batch job takes, such as `10s`, `2h` or `uniform:1h..30h`.
    ///
    /// Also `lognormal:1h,0.6` (median, sigma) or `exponential:1h` (mean). Over this time, a job is
    /// validated, in progress, finalized and completed.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_flags::parse_job_duration_distribution, help_heading = "Batches")]
    batch_duration: RandomDistribution,

    /// Let the time of batch jobs pass this many times as fast, such as `3600` for an hour a second.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_flags::parse_time_scale, help_heading = "Batches")]
    time_scale: f64,

    /// Expire batch jobs after this time, such as `24h`; by default, each vendor's own.
    #[arg(long, value_name = "TIME", value_parser = parse_flags::parse_job_duration, help_heading = "Batches")]
    batch_window: Option<Duration>,

    /// Limit the prompt tokens of all open batch jobs of a vendor and model.
    ///
    /// A job beyond that fails with `token_limit_exceeded`; Anthropic, Google and Mistral reject it
    /// with 429.
    #[arg(long, value_name = "N", help_heading = "Batches")]
    batch_queued_tokens: Option<u64>,

    /// Maximum number of rows in a batch job; by default, each vendor's own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Batches")]
    batch_max_rows: Option<u64>,

    /// Maximum size of a batch input in bytes; by default, each vendor's own.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Batches")]
    batch_max_bytes: Option<u64>,

    /// Let every batch job with an input file fail, such as `duplicate_custom_id:3` for line 3.
    #[arg(long, value_name = "CODE:LINE", value_parser = parse_flags::parse_validation_error, help_heading = "Batches")]
    batch_invalid: Option<(String, u64)>,

    /// Share of the rows that are missing from all results of a batch job, such as `1%`.
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = parse_flags::parse_share, help_heading = "Batches")]
    batch_missing: f64,

    /// Give every batch job an error file, even an empty one; Azure always does.
    #[arg(long, help_heading = "Batches")]
    batch_empty_error_files: bool,

    /// Make the first N batch jobs, but close the connection without an answer.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Batches")]
    batch_lose_creates: u64,

    /// Make the next N batch jobs, but answer with a status: `2` or `2:500`; the default is 503.
    #[arg(long, value_name = "N[:STATUS]", default_value = "0", value_parser = parse_flags::parse_failed_creates, help_heading = "Batches")]
    batch_fail_creates: (u64, u16),

    /// Reset the connection in the middle of the first N uploads.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Batches")]
    batch_cut_uploads: u64,

    /// Close the connection in the middle of the first N downloads of results.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Batches")]
    batch_cut_downloads: u64,

    /// Send the next N downloads of results slowly, in 64 pieces.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Batches")]
    batch_slow_downloads: u64,
}

impl SimulateBatchFlags {
    /// The settings that these flags tell.
    pub(crate) fn settings(self) -> SimulatedBatches {
        let (failed, status) = self.batch_fail_creates;
        let mut settings = SimulatedBatches::new()
            .duration(self.batch_duration)
            .time_scale(self.time_scale)
            .folder(std::env::temp_dir())
            .missing_rows(self.batch_missing)
            .lose_first_create_responses(self.batch_lose_creates)
            .fail_first_create_responses(failed, status)
            .cut_first_uploads(self.batch_cut_uploads)
            .cut_first_downloads(self.batch_cut_downloads)
            .slow_first_downloads(self.batch_slow_downloads);
        if self.batch_empty_error_files {
            settings = settings.empty_error_files();
        }
        if let Some(window) = self.batch_window {
            settings = settings.window(window);
        }
        if let Some(tokens) = self.batch_queued_tokens {
            settings = settings.queued_tokens(tokens);
        }
        if let Some(rows) = self.batch_max_rows {
            settings = settings.max_rows(rows);
        }
        if let Some(bytes) = self.batch_max_bytes {
            settings = settings.max_bytes(bytes);
        }
        match self.batch_invalid {
            Some((code, line)) => settings.validation_error(code, line),
            None => settings,
        }
    }
}
