//! The person at the screen, and their browser.

use std::io::IsTerminal;
use std::process::{Command, Stdio};
use std::time::Duration;

use rowmill::{Control, Notice, Person};

use crate::resolve::Show;
use crate::surroundings::environment;

/// How long the browser is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The person who can sign in to servers while a run starts, if one is there: standard input and
/// standard error are a terminal, progress is shown, and it is no job of a CI system.
pub(crate) fn person(show: Show, control: &Control) -> Option<Person> {
    let is_job =
        environment().variable("CI").is_some_and(|value| !matches!(value.trim(), "" | "0" | "false"));
    let is_present =
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && show.progress && !is_job;
    let tell = control.notice.clone();
    is_present.then(|| {
        let show = move |server: &str, address: &str| {
            tell(Notice::sign_in(format!(
                "the MCP server `{server}` requires you to sign in; open this address:\n{address}"
            )));
            open(address);
        };
        Person::new(show, PATIENCE)
    })
}

/// Opens an address in a browser, where there is a screen. Whether it works or not, the address is
/// to be on the screen too.
pub(crate) fn open(address: &str) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| environment().variable(name).is_some());
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
