//! Tests that need other privileges than the current process may have.

#![expect(clippy::expect_used, reason = "tests end where they cannot be made")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Set in the process that runs such a test again.
const RUN_AGAIN: &str = "ROWMILL_TEST_WITHOUT_PRIVILEGES";

/// Whether the permissions of `closed`, which nobody may read, are enforced. If not, the test with this name
/// is run again in a process where they are.
///
/// # Panics
///
/// The test fails there, or no such process can be started.
pub fn permissions_are_enforced(closed: &Path, test: &str) -> bool {
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
    let message = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && message.contains("1 passed"), "{message}");
    false
}

/// Records that a test was skipped, for `scripts/test`, which reports it at the end: the output of a passing
/// test is not shown.
///
/// # Panics
///
/// The file in the target folder cannot be written.
pub fn report_skipped(test: &str, reason: &str) {
    let program = std::env::current_exe().expect("the program of a test has a path");
    let target = program.ancestors().nth(3).expect("it stands in the target folder");
    write_skipped(&target.join("tests-that-could-not-run.txt"), test, reason);
}

fn write_skipped(path: &Path, test: &str, reason: &str) {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    writeln!(file.expect("the target folder can be written to"), "{test}: {reason}").expect("and the file");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "0 passed")]
    fn a_test_that_is_not_found_where_permissions_count_does_not_pass() {
        let readable = tempfile::NamedTempFile::new().expect("a file can be made");
        permissions_are_enforced(readable.path(), "privileges::tests::there_is_no_such_test");
    }

    #[test]
    fn every_test_that_could_not_run_is_written_down() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("skipped.txt");
        for test in ["one", "another"] {
            write_skipped(&path, test, "it needs more");
        }
        let text = std::fs::read_to_string(path).expect("it was written");
        assert_eq!(text, "one: it needs more\nanother: it needs more\n");
    }
}
