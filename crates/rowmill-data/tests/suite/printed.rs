//! What a process prints in which parsers panic.

/// Set for the process that does the work of a test.
const PANICS_HERE: &str = "ROWMILL_TEST_PANICS_HERE";

/// Runs a test again in a process of its own, and says what that printed. `None` in that process, in which
/// panics are heard as the program hears them: those of parsers are told as failures, all others as usual.
pub(crate) fn printed_by(test: &str) -> Option<String> {
    if std::env::var_os(PANICS_HERE).is_some() {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !rowmill_data::in_foreign_code() {
                usual(panic);
            }
        }));
        return None;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", test, "--nocapture"]).env(PANICS_HERE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // A name that no test has any more would be a success, too: nothing ran.
    let ran = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && ran.contains("1 passed"), "{ran}{said}");
    Some(said)
}
