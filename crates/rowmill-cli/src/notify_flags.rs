//! The flags that say who is notified of the end of a run.

use clap::Args;
use rowmill::{NotifyOptions, RunDefaults};

/// Who is notified of the end of a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NotifyFlags {
    /// Shell command to run when the run has ended; it gets a JSON object on its standard input.
    ///
    /// The object has the summary, the exit code and the batch jobs. A command that fails is a warning,
    /// and one that has not ended after ten seconds is ended.
    #[arg(long, value_name = "COMMAND", help_heading = "Notifications")]
    pub(crate) notify: Option<String>,

    /// Address to which the same JSON object is sent with POST.
    #[arg(long, value_name = "URL", help_heading = "Notifications")]
    pub(crate) notify_url: Option<String>,
}

impl NotifyFlags {
    /// Those that are given here, else in `rowmill.toml`.
    pub(crate) fn options(&self, defaults: &RunDefaults) -> NotifyOptions {
        let file = NotifyOptions { command: defaults.notify.clone(), url: defaults.notify_url.clone() };
        self.given().or(&file)
    }

    /// Those that are given here.
    pub(crate) fn given(&self) -> NotifyOptions {
        NotifyOptions { command: self.notify.clone(), url: self.notify_url.clone() }
    }
}
