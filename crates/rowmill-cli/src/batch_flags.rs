//! The flags of `rowmill batch`.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::flag_values::parse_duration;
use crate::flags::RunFlags;
use crate::notify_flags::NotifyFlags;

/// Follow, collect, cancel and repeat batch jobs of runs with `--lane batch`.
///
/// These commands work from any folder. Without an id, they use the last submitted job: that of the
/// nearest project (a folder with `rowmill.toml`, or with `agent_actions.yml`, the project file of Agent
/// Actions), otherwise one in the current folder, otherwise that of this user. `rowmill batch run` is
/// the same as `rowmill run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    rowmill run -i reviews.jsonl -o out.jsonl -m openai.gpt-5.4-mini --lane batch --detach\n  \
    rowmill batch status                      state, counts, age and cost\n  \
    rowmill batch retrieve                    write the results that are there\n  \
    rowmill batch list                        all runs that are known")]
pub(crate) struct BatchFlags {
    #[command(subcommand)]
    pub(crate) command: BatchCommand,
}

/// What can be done with runs in the batch lane.
#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    Run(Box<RunFlags>),
    Status(BatchStatusFlags),
    Retrieve(BatchRetrieveFlags),
    List(BatchListFlags),
    Cancel(BatchCancelFlags),
    Retry(BatchRetryFlags),
}

/// Which run is meant.
#[derive(Debug, Args)]
pub(crate) struct BatchTarget {
    /// The provider's id of a job, or the id of a run; the last submitted job if omitted.
    #[arg(value_name = "ID")]
    id: Option<String>,

    /// The same as ID.
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    batch_id: Option<String>,
}

impl BatchTarget {
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref().or(self.batch_id.as_deref())
    }
}

/// Ask the provider for the state of batch jobs.
///
/// The first line is `Batch job status: ` and the state: `validating`, `in_progress`, `finalizing`,
/// `completed`, `failed`, `expired`, `cancelling` or `cancelled`; `waiting` if a job is not submitted
/// yet, and `submitting` if it is not known whether the provider has it. Of a run with several jobs, it
/// is `in_progress` while any is. The exit code is 0 whatever the state is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rowmill batch status\n  \
    rowmill batch status --batch-id batch_abc123\n  rowmill batch status --wait && rowmill batch retrieve")]
pub(crate) struct BatchStatusFlags {
    #[command(flatten)]
    pub(crate) target: BatchTarget,

    /// Wait until no job is pending.
    #[arg(long)]
    pub(crate) wait: bool,

    /// With `--wait`: the first wait between two checks; later waits are longer, up to five minutes
    /// [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "wait")]
    pub(crate) poll_every: Option<Duration>,

    #[command(flatten)]
    pub(crate) notify: NotifyFlags,

    /// Print as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Collect the results that are there, and write the output of the run.
///
/// Prints the path of the output. Rows that failed for a passing reason and answers that need a repair
/// go into a further job. If rows are still pending, the exit code is 5: run the command again later.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rowmill batch retrieve\n  rowmill batch retrieve --batch-id batch_abc123"
)]
pub(crate) struct BatchRetrieveFlags {
    #[command(flatten)]
    pub(crate) target: BatchTarget,

    #[command(flatten)]
    pub(crate) notify: NotifyFlags,

    /// Print what became of the run as JSON, instead of the path.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the runs whose jobs were submitted from this machine, the last one first.
///
/// Shows what was last seen, without asking the providers. Finished runs are listed for 30 days.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rowmill batch list\n  rowmill batch list --json")]
pub(crate) struct BatchListFlags {
    /// Print as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Cancel the jobs of a run at the provider, and keep what they had finished.
///
/// Without an id, only one run may have unfinished jobs. Waits until they have ended, which can take
/// minutes. Rows without a result are sent again by
/// `rowmill batch retry`, or by the command of the run with `--resume`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rowmill batch cancel\n  rowmill batch cancel batch_abc123 --no-wait")]
pub(crate) struct BatchCancelFlags {
    #[command(flatten)]
    pub(crate) target: BatchTarget,

    /// Do not wait until the jobs have ended; `rowmill batch retrieve` collects what they had finished.
    #[arg(long)]
    pub(crate) no_wait: bool,

    /// Print what became of the run as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Send the rows again that failed or were cancelled; rows that are ok are kept.
///
/// Collects what is there first. While rows are still pending, nothing is sent again, and the exit code is 5.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rowmill batch retry\n  rowmill batch retry --batch-id batch_abc123")]
pub(crate) struct BatchRetryFlags {
    #[command(flatten)]
    pub(crate) target: BatchTarget,

    #[command(flatten)]
    pub(crate) notify: NotifyFlags,

    /// Print what became of the run as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
