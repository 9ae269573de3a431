//! The generated documents, and the check that keeps them up to date.

use std::fs;

use xtask::{DocumentMode, Workspace, generate_documents};

#[test]
fn the_documents_in_the_repository_are_what_the_code_says() {
    let workspace = Workspace::here().unwrap();
    if let Err(stale) = generate_documents(workspace.root(), DocumentMode::Check) {
        panic!("{stale}");
    }
}

#[test]
fn a_check_names_what_is_stale_and_writes_nothing() {
    let folder = std::env::temp_dir().join(format!("rowmill-xtask-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let stale = generate_documents(&folder, DocumentMode::Check).unwrap_err().to_string();
    assert!(
        stale.starts_with(
            "stale: docs/cli.md, docs/errors.md, docs/exit-codes.md, docs/run-spec.schema.json."
        ),
        "{stale}"
    );
    assert!(stale.contains("run `cargo xtask generate`"), "{stale}");
    assert!(!folder.join("docs").exists());

    generate_documents(&folder, DocumentMode::Write).unwrap();
    generate_documents(&folder, DocumentMode::Check).unwrap();
    let reference = fs::read_to_string(folder.join("docs/cli.md")).unwrap();
    fs::write(folder.join("docs/cli.md"), format!("{reference}more")).unwrap();
    let stale = generate_documents(&folder, DocumentMode::Check).unwrap_err().to_string();
    assert!(stale.starts_with("stale: docs/cli.md. "), "{stale}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_reference_describes_a_flag_with_its_value_and_variable() {
    let workspace = Workspace::here().unwrap();
    let reference = fs::read_to_string(workspace.root().join("docs/cli.md")).unwrap();
    let parts = ["## `rowmill run`", "`-m`, `--model <MODEL>`", "Environment: `ROWMILL_MODEL`.", "Examples:"];
    for part in parts {
        assert!(reference.contains(part), "{part}");
    }
}
