//! Tests that need other privileges than they may have here.

#![expect(clippy::expect_used, reason = "tests end where they cannot be made")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Set in the process in which such a test is run again.
const RUN_AGAIN: &str = "ROWMILL_TEST_WITHOUT_PRIVILEGES";

/// Whether the permissions of `closed`, which nobody may read, count. Where they do not, the test with this name
/// is run again in a process where they do.
///
/// # Panics
///
/// The test fails there, or no such process can be made.
pub fn permissions_count(closed: &Path, test: &str) -> bool {
    if std::fs::File::open(closed).is_err() {
        return true;
    }
    assert!(std::env::var_os(RUN_AGAIN).is_none(), "`setpriv` took no privileges away");
    let program = std::env::current_exe().expect("the program of a test has a path");
    let ended = Command::new("setpriv")
        .args(["--bounding-set", "-dac_override,-dac_read_search", "--"])
        .arg(program)
        .args(["--exact", test])
        .env(RUN_AGAIN, "1")
        .output()
        .expect("`setpriv` can be started");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// Writes down that a test could not do its work here, for `scripts/test`, which tells it at the end: nobody sees
/// what a test prints that passes.
///
/// # Panics
///
/// The file in the target folder cannot be written.
pub fn tell_skipped(test: &str, reason: &str) {
    let program = std::env::current_exe().expect("the program of a test has a path");
    let target = program.ancestors().nth(3).expect("it stands in the target folder");
    let path = target.join("tests-that-could-not-run.txt");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    writeln!(file.expect("the target folder can be written to"), "{test}: {reason}").expect("and the file");
}
