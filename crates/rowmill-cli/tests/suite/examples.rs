//! Every example of the repository works as written, without a key.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of each example, and the number of envelopes it writes.
pub(crate) const EXAMPLES: [(&str, usize); 12] = [
    ("01-first-run", 20),
    ("02-schema", 20),
    ("03-resume", 20),
    ("04-csv-and-sample", 5),
    ("05-pipe", 18),
    ("06-telemetry", 5),
    ("07-config-and-variables", 5),
    ("08-limits-and-money", 20),
    ("09-select-and-tables", 4),
    ("10-documents", 4),
    ("11-agent", 4),
    ("12-batch", 20),
];

pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Copies a folder, so that what an example writes does not end up in the repository.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn run(script: &Path) -> Output {
    run_with(script, env!("CARGO_BIN_EXE_rowmill"), &[])
}

/// Runs an example with a command in place of `rowmill`, and additional variables.
pub(crate) fn run_with(script: &Path, rowmill: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("bash");
    command.arg(script).env("ROWMILL", rowmill).envs(variables.iter().copied());
    for variable in ["ROWMILL_MODEL", "ROWMILL_PARALLEL", "ROWMILL_RETRIES", "ROWMILL_TIMEOUT"] {
        command.env_remove(variable);
    }
    command.output().unwrap()
}

#[test]
fn every_example_succeeds_and_leaves_one_envelope_per_row() {
    let home = tempfile::tempdir().unwrap();
    copy(&examples(), home.path());
    for (name, envelopes) in EXAMPLES {
        let folder = home.path().join(name);
        // Results of an earlier manual run must not count.
        drop(fs::remove_file(folder.join("results.jsonl")));

        let output = run(&folder.join("run.sh"));

        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} ended with {}:\n{talk}", output.status);
        let results = fs::read_to_string(folder.join("results.jsonl")).unwrap();
        let ids: Vec<u64> = results.lines().map(row_number).collect();
        assert_eq!(ids.len(), envelopes, "{name}:\n{talk}");
        assert!(ids.is_sorted_by(|one, next| one < next), "{name} is not in input order: {ids:?}");
    }
}

#[test]
fn every_example_is_tried() {
    let mut found: Vec<String> = fs::read_dir(examples())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("run.sh").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, EXAMPLES.map(|(name, _)| name));
}

fn row_number(envelope: &str) -> u64 {
    let value: serde_json::Value = serde_json::from_str(envelope).unwrap();
    value["row_number"].as_u64().unwrap()
}
