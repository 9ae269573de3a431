//! The user at the terminal, and their browser.

use std::io::IsTerminal;
use std::process::{Command, Stdio};
use std::time::Duration;

use rowmill::{InteractiveSignIn, RunControl, RunNotice};

use crate::process_environment::process_environment;
use crate::resolve::DisplayOptions;

/// How long to wait for the browser.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The user who can sign in to servers while a run starts, if one is present: standard input and
/// standard error are a terminal, progress is shown, and the process is not a CI job.
pub(crate) fn interactive_sign_in(show: DisplayOptions, control: &RunControl) -> Option<InteractiveSignIn> {
    let is_job =
        process_environment().variable("CI").is_some_and(|value| !matches!(value.trim(), "" | "0" | "false"));
    let is_present =
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && show.progress && !is_job;
    let tell = control.notice.clone();
    is_present.then(|| {
        let show = move |server: &str, address: &str| {
            tell(RunNotice::sign_in(format!(
                "the MCP server `{server}` requires you to sign in; open this address:\n{address}"
            )));
            open(address);
        };
        InteractiveSignIn::new(show, PATIENCE)
    })
}

/// Opens an address in a browser, if there is a graphical screen. The caller must print the address,
/// too, because this may fail.
pub(crate) fn open(address: &str) {
    let has_screen =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| process_environment().variable(name).is_some());
    let opener = match (cfg!(target_os = "macos"), has_screen) {
        (true, _) => "open",
        (false, true) => "xdg-open",
        (false, false) => return,
    };
    if std::io::stderr().is_terminal() {
        let mut command = Command::new(opener);
        drop(command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn());
    }
}
