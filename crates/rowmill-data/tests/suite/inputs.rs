//! Inputs are found, distinguished from streams, identified and copied.

use std::io::Write;
use std::path::Path;

use rowmill_core::ports::{Dataset, ReadLimit};
use rowmill_data::{InputFormat, InputLocation, InputSpec, open_dataset, spool_input};
use rowmill_testkit::permissions_are_enforced;
use rowmill_types::{Problem, ProblemCode};

fn spec(path: &Path) -> InputSpec {
    InputSpec::new(InputLocation::File(path.into()), None)
}

fn refused(path: &Path) -> Problem {
    open_dataset(&spec(path)).unwrap_err()
}

fn numbers(data: &dyn Dataset) -> Vec<u64> {
    let mut source = data.open().unwrap();
    let mut rows = Vec::new();
    while source.read(&mut rows, ReadLimit { rows: 100, bytes: 1 << 20 }).unwrap() {}
    rows.into_iter().map(|row| row.unwrap().number()).collect()
}

#[test]
fn a_missing_input_an_empty_folder_and_an_unknown_ending_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("rows.jsonl");
    let problem = refused(&missing);
    assert_eq!(problem.code, ProblemCode::InputNotFound);
    assert_eq!(problem.message, format!("input file not found: `{}`", missing.display()));

    let problem = refused(folder.path());
    assert_eq!(problem.code, ProblemCode::InputNotFound);
    assert_eq!(problem.message, format!("no file in folder `{}`", folder.path().display()));

    let unknown = folder.path().join("rows.dat");
    std::fs::write(&unknown, "").unwrap();
    assert_eq!(refused(&unknown).code, ProblemCode::InputFormat);
    assert_eq!(refused(&unknown.join("rows.csv")).code, ProblemCode::InputNotFound);
}

#[cfg(unix)]
#[test]
fn an_input_without_permission_is_distinguished_from_a_missing_one() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, "a\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if !permissions_are_enforced(
        &path,
        "inputs::an_input_without_permission_is_distinguished_from_a_missing_one",
    ) {
        return;
    }
    let problem = refused(&path);
    assert_eq!(problem.code, ProblemCode::InputUnreadable);
    assert_eq!(problem.message, format!("no permission to read the input file: `{}`", path.display()));
}

#[test]
fn a_file_can_be_read_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    std::fs::write(&path, "{}\n{}\n").unwrap();
    let data = open_dataset(&spec(&path)).unwrap();
    assert!(data.is_rereadable());
    assert_eq!(numbers(&*data), [1, 2]);
    assert_eq!(numbers(&*data), [1, 2]);
}

#[cfg(unix)]
#[test]
fn a_pipe_with_a_name_is_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let data = open_dataset(&spec(&path)).unwrap();
    assert!(!data.is_rereadable());
    let identity = data.identity().unwrap();
    assert_eq!((identity.size, identity.probe), (None, None));

    let writer = std::thread::spawn(move || {
        std::fs::OpenOptions::new().write(true).open(path).unwrap().write_all(b"{}\n\n{}\n").unwrap();
    });
    assert_eq!(numbers(&*data), [1, 3]);
    writer.join().unwrap();
    assert!(data.open().is_err());
}

#[cfg(unix)]
#[test]
fn a_spooled_pipe_can_be_read_again_and_keeps_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("rows");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let input = InputSpec::new(InputLocation::File(pipe.clone()), Some(InputFormat::Csv));
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::OpenOptions::new().write(true).open(pipe).unwrap().write_all(b"a\n1\n2\n").unwrap()
    });
    let data = spool_input(&input, folder.path(), ("copy-", ".spool")).unwrap();
    writer.join().unwrap();
    assert!(data.is_rereadable());
    assert_eq!((numbers(&*data), numbers(&*data)), (vec![2, 3], vec![2, 3]));
    let copies = || {
        let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".spool")).collect::<Vec<_>>()
    };
    assert_eq!(std::fs::read(folder.path().join(&copies()[0])).unwrap(), b"a\n1\n2\n");
    let identity = data.identity().unwrap();
    assert_eq!((identity.path, identity.size), (pipe.display().to_string(), Some(6)));
    drop(data);
    assert!(copies().is_empty(), "the copy goes with the last who reads it");
}

#[test]
fn the_identity_changes_when_either_end_of_the_file_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let identity = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        open_dataset(&spec(&path)).unwrap().identity().unwrap()
    };
    let mut bytes = vec![b' '; 300_000];
    let first = identity(&bytes);
    assert_eq!(first, identity(&bytes));
    assert_eq!(first.path, path.canonicalize().unwrap().display().to_string());
    assert_eq!((first.size, first.probe.as_ref().map(String::len)), (Some(300_000), Some(16)));
    for at in [0, 65_535, 300_000 - 65_536, 299_999] {
        bytes[at] = b'\n';
        assert_ne!(first.probe, identity(&bytes).probe, "{at}");
        bytes[at] = b' ';
    }
    assert_ne!(first, identity(&bytes[..299_999]));
    assert_ne!(identity(b"ab").probe, identity(b"ba").probe);
}
