//! What a process prints if a parser panics.

/// Set for the child process that runs a test.
const PANICS_HERE: &str = "ROWMILL_TEST_PANICS_HERE";

/// Runs a test again in a child process, and returns what that printed. `None` in the child, whose panic hook
/// works as in the program: panics of parsers are reported as failures, all others as usual.
pub(crate) fn printed_by(test: &str) -> Option<String> {
    if std::env::var_os(PANICS_HERE).is_some() {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !rowmill_data::is_in_foreign_code() {
                usual(panic);
            }
        }));
        return None;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", test, "--nocapture"]).env(PANICS_HERE, "1").output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    // A name that no test has any more would be a success, too: nothing ran.
    let ran = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && ran.contains("1 passed"), "{ran}{messages}");
    Some(messages)
}
