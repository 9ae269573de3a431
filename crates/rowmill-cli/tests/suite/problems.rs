//! Problems in the environment of a run: each message names the cause and the remedy, and once the
//! cause is gone a resume finishes without requesting anything twice. Problems with the provider
//! (nothing at the port, a wrong key, an unknown model) are in `faults.rs`.

use crate::faults_support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::faults_support::{Home, Run, assert_all_ok, names};
use rowmill_testkit::{Simulator, SimulatorScript, report_skipped};

/// A small file system; it is unmounted when this is dropped.
struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Creates one at `name`; `None` if the user is not permitted to.
    fn mount(home: &Home, name: &str, size: &str) -> Option<Self> {
        if !rustix::process::getuid().is_root() {
            let test = std::thread::current().name().unwrap_or_default().to_owned();
            report_skipped(&test, "only root can mount a small file system");
            return None;
        }
        let folder = home.path(name);
        fs::create_dir(&folder).unwrap();
        assert!(mount(&folder, &format!("size={size}")), "`mount` gives no file system in memory");
        Some(Self { folder })
    }

    fn grow(&self) {
        assert!(mount(&self.folder, "remount,size=64m"));
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.folder).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

fn mount(folder: &Path, options: &str) -> bool {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder);
    command.output().is_ok_and(|output| output.status.success())
}

const ROWS: usize = 1_500;

/// Fills the disk with a run, checks its message, frees space and resumes.
fn full_disk(place: impl Fn(&SmallDisk, &Home) -> Vec<String>) {
    full_disk_of("1m", 1_500, place);
}

fn full_disk_of(size: &str, answer_bytes: usize, place: impl Fn(&SmallDisk, &Home) -> Vec<String>) {
    let home = Home::with_rows(ROWS);
    let Some(disk) = SmallDisk::mount(&home, "disk", size) else { return };
    let simulator =
        Simulator::start_blocking(SimulatorScript::new().answer_bytes(answer_bytes).forget_prompts());
    let args = place(&disk, &home);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let run = || home.run_with(&args).on(&simulator).args(&["--parallel", "16", "--retries", "0"]);
    let ended = run().ends_with(1);
    ended.says(&[
        "error[RM1401]: cannot write",
        "No space left on device",
        "help: the disk is full",
        "--resume",
    ]);
    assert_eq!(ended.err.matches("error[").count(), 1, "{}", ended.err);
    let answered = simulator.stats().answers;
    assert!(answered > 100 && answered < ROWS as u64, "{answered}");

    disk.grow();
    let ended = run().args(&["--resume"]).ends_with(0);
    ended.resumed(answered, 0, 0);
    assert_eq!(simulator.stats().answers, ROWS as u64, "nothing that was answered is asked again");
    let output = Path::new(args[3]);
    let envelopes = faults_support::parse_lines(&fs::read_to_string(output).unwrap());
    assert_all_ok(&envelopes, ROWS);
}

fn strings<const N: usize>(args: [&str; N]) -> Vec<String> {
    args.map(str::to_owned).to_vec()
}

#[test]
fn a_full_disk_under_output_and_ledger_loses_nothing() {
    full_disk(|disk, home| {
        let input = home.path("in.jsonl");
        strings(["-i", input.to_str().unwrap(), "-o", &disk.path("out.jsonl")])
    });
}

#[test]
fn a_full_disk_loses_nothing_when_answers_are_large() {
    full_disk_of("8m", 15_000, |disk, home| {
        let input = home.path("in.jsonl");
        strings(["-i", input.to_str().unwrap(), "-o", &disk.path("out.jsonl")])
    });
}

#[test]
fn a_full_disk_under_the_output_alone_loses_nothing() {
    full_disk(|disk, home| {
        let (input, work) = (home.path("in.jsonl"), home.path("work"));
        let output = disk.path("out.jsonl");
        strings(["-i", input.to_str().unwrap(), "-o", &output, "--work-dir", work.to_str().unwrap()])
    });
}

#[test]
fn a_full_disk_under_the_ledger_alone_loses_nothing() {
    full_disk(|disk, home| {
        let (input, output) = (home.path("in.jsonl"), home.path("out.jsonl"));
        let work = disk.path("work");
        strings(["-i", input.to_str().unwrap(), "-o", output.to_str().unwrap(), "--work-dir", &work])
    });
}

#[test]
fn a_full_disk_under_the_telemetry_loses_nothing() {
    full_disk(|disk, home| {
        let (input, output) = (home.path("in.jsonl"), home.path("out.jsonl"));
        let filler = "x".repeat(900_000);
        fs::write(disk.path("filler"), filler).unwrap();
        let telemetry = disk.path("telemetry.jsonl");
        let paths = [input.to_str().unwrap(), "-o", output.to_str().unwrap()];
        [strings(["-i"]), strings(paths), strings(["--telemetry-output", &telemetry])].concat()
    });
}

#[test]
fn a_work_folder_and_an_output_on_different_file_systems_go_together() {
    for output_is_there in [true, false] {
        let home = Home::with_prompts(["a", "b [[400x1]]", "c"]);
        let Some(disk) = SmallDisk::mount(&home, "disk", "4m") else { return };
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let (output, work) = match output_is_there {
            true => (disk.path("out.jsonl"), "work".to_owned()),
            false => ("out.jsonl".to_owned(), disk.path("work")),
        };
        let run = || home.run_with(&["-i", "in.jsonl", "-o", &output, "--work-dir", &work]).on(&simulator);
        run().ends_with(3);
        run().args(&["--resume"]).ends_with(0).resumed(2, 1, 0);
        let written = fs::read_to_string(home.path(&output)).unwrap();
        assert_all_ok(&faults_support::parse_lines(&written), 3);
        assert_eq!(simulator.stats().answers, 3);
        let work = if output_is_there { home.path("work") } else { PathBuf::from(disk.path("work")) };
        assert_eq!(names(&work), ["run.json"], "no litter");
    }
}

#[test]
fn an_error_output_that_takes_nothing_stops_the_run_and_the_ledger_keeps_every_answer() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts((1..=50).map(|number| match number {
        20 => "row 20 [[400x1]]".to_owned(),
        _ => format!("row {number}"),
    }));
    let run = |errors: &str| home.run().on(&simulator).args(&["--parallel", "2", "--error-output", errors]);
    let ended = run("/dev/full").ends_with(1);
    ended.says(&["error[RM1401]: cannot write `/dev/full`", "No space left on device", "--resume"]);
    run("errors.jsonl").args(&["--resume"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 50);
    assert_eq!(simulator.stats().answers, 50);
}

#[test]
fn errors_can_be_thrown_away_and_the_device_stays_a_device() {
    use std::os::unix::fs::FileTypeExt;
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_prompts(["a [[400x1]]", "b"]);
    let args = ["--error-output", "/dev/null", "--telemetry-output", "/dev/null"];
    home.run().on(&simulator).args(&args[..2]).ends_with(3);
    home.run().on(&simulator).args(&args[..2]).args(&["--resume"]).ends_with(0);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    home.run().on(&simulator).args(&args[2..]).args(&["--overwrite"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 2);
}

#[test]
fn a_standard_output_that_takes_nothing_stops_the_run_and_the_ledger_keeps_every_answer() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(50);
    let run = || home.run_with(&["-i", "in.jsonl", "-o", "-"]).on(&simulator).args(&["--work-dir", "work"]);
    let ended = run().stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap()).ends_with(1);
    ended.says(&["error[RM1401]: cannot write `standard output`", "No space left on device"]);
    let answered = simulator.stats().answers;
    let ended = run().args(&["--resume"]).ends_with(0);
    ended.resumed(answered, 0, 0);
    assert_all_ok(&faults_support::parse_lines(&ended.out), 50);
    assert_eq!(simulator.stats().answers, 50);
}

#[test]
fn a_run_that_a_full_disk_refuses_leaves_nothing_behind_and_takes_nothing_away() {
    let home = Home::with_rows(3);
    let Some(disk) = SmallDisk::mount(&home, "disk", "1m") else { return };
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let run = |output: &str, args: &[&str]| {
        let io = ["-i", "in.jsonl", "-o", &disk.path(output), "--parallel", "1"];
        home.run_with(&io).on(&simulator).args(args)
    };
    run("out.jsonl", &[]).ends_with(0);
    // Less than the reserve of a ledger is left.
    fs::write(disk.path("filler"), vec![b'x'; 960 * 1024]).unwrap();
    let header = disk.path(".out.jsonl.rowmill/run.json");
    let kept = || (fs::read(disk.path("out.jsonl")).unwrap(), fs::read(&header).unwrap());
    let (before, files) = (kept(), names(&disk.folder));
    let full = [
        "error[RM1401]: cannot write",
        "No space left on device",
        "help: the disk is full: free some space and run the same command again; nothing was sent",
    ];
    for (output, args) in [
        ("new.jsonl", &[][..]),
        ("new.jsonl", &["--overwrite"]),
        ("out.jsonl", &["--overwrite"]),
        ("new.csv", &[]),
        ("out.jsonl", &["--overwrite", "--dedupe"]),
    ] {
        run(output, args).ends_with(1).says(&full);
        assert_eq!(names(&disk.folder), files, "{output} {args:?}");
        assert_eq!(kept(), before, "{output} {args:?}");
    }
    assert_eq!(simulator.stats().requests, 3, "nothing was sent");
    disk.grow();
    run("out.jsonl", &["--overwrite"]).ends_with(0);
}

#[test]
fn a_file_that_may_not_grow_is_an_error_of_the_run_and_no_end_by_a_signal() {
    const ROWS: usize = 400;
    let simulator = Simulator::start_blocking(SimulatorScript::new().answer_bytes(20_000).forget_prompts());
    let home = Home::with_rows(ROWS);
    let run = || home.run().on(&simulator).args(&["--parallel", "4", "--retries", "0"]);
    // 512 bytes each, so 4 MiB of the 8 that come.
    let ended = run().under("ulimit -f 8192").ends_with(1);
    ended.says(&[
        "error[RM1401]: cannot write",
        "File too large",
        "help: raise the limit on file sizes (`ulimit -f`",
    ]);
    let answered = simulator.stats().answers;
    assert!(answered > 100 && answered < ROWS as u64, "{answered}");
    run().args(&["--resume"]).ends_with(0);
    assert_all_ok(&home.envelopes(), ROWS);
    let twice = simulator.stats().answers - ROWS as u64;
    assert!(twice <= 4, "only what was in flight is asked again: {twice}");
}

#[test]
fn a_file_that_may_not_grow_is_an_error_of_every_command() {
    let home = Home::with_rows(200);
    home.run().args(&["-m", "passthrough"]).ends_with(0);
    let ended = home.command("export", &["out.jsonl", "-o", "out.csv"]).under("ulimit -f 2").ends_with(1);
    ended.says(&[
        "error[RM1401]: cannot write `out.csv`",
        "File too large",
        "help: raise the limit on file sizes (`ulimit -f`",
    ]);
    assert!(!home.exists("out.csv"), "half a table is no table");
    for (command, args) in [
        ("head", &["in.jsonl", "--json", "-n", "200"][..]),
        ("results", &["out.jsonl", "--sql", "SELECT * FROM input", "--json"]),
        ("run", &["-i", "in.jsonl", "-o", "-", "-m", "passthrough", "-p", "{{p}}"]),
        ("man", &[]),
    ] {
        let shown = fs::File::create(home.path("shown")).unwrap();
        let ended = home.command(command, args).under("ulimit -f 2").stdout(shown).ends_with(1);
        ended.says(&["error[RM1401]: cannot write", "File too large", "raise the limit on file sizes"]);
    }
}

/// Checks that a run is refused before anything is sent or made.
#[track_caller]
fn refused(home: &Home, run: Run, code: i32, texts: &[&str]) {
    let before = home.names();
    let ended = run.args(&["-m", "passthrough"]).ends_with(code);
    ended.says(texts);
    assert_eq!(home.names(), before, "a refused run leaves nothing behind");
}

#[test]
fn paths_that_cannot_be_used_are_refused_by_name_with_a_remedy() {
    let home = Home::with_rows(3);
    fs::create_dir(home.path("folder")).unwrap();
    let run = |input: &str, output: &str| home.run_with(&["-i", input, "-o", output]);
    refused(&home, run("missing.jsonl", "out.jsonl"), 1, &["error[RM1001]", "`missing.jsonl`", "help:"]);
    refused(&home, run("folder", "out.jsonl"), 1, &["error[RM1001]", "`folder`", "help:"]);
    let through =
        ["error[RM1302]: `in.jsonl/b/out.jsonl`, given to `--output`, leads through `in.jsonl`", "help:"];
    refused(&home, run("in.jsonl", "in.jsonl/b/out.jsonl"), 1, &through);
    refused(
        &home,
        run("in.jsonl", "folder"),
        1,
        &["error[RM1302]: `folder`, given to `--output`, is a folder"],
    );
    refused(&home, run("in.jsonl", "new/"), 1, &["error[RM1302]: `new/`, given to `--output`, is a folder"]);
    let same = [
        "error[RM1303]: `--output` must not point to the same file as `--input`",
        "help: use a different path for each",
    ];
    refused(&home, run("in.jsonl", "./in.jsonl").args(&["--overwrite"]), 1, &same);
    for flag in ["--error-output", "--telemetry-output", "--summary-output"] {
        let twice = run("in.jsonl", "out.jsonl").args(&[flag, "folder/../out.jsonl"]);
        refused(&home, twice, 1, &["error[RM1303]", flag, "`--output`"]);
        let through = run("in.jsonl", "out.jsonl").args(&[flag, "in.jsonl/x"]);
        refused(&home, through, 1, &["error[RM1302]", flag, "which is not a folder"]);
    }
    let blocked = run("in.jsonl", "out.jsonl").args(&["--work-dir", "in.jsonl/work"]);
    refused(&home, blocked, 1, &["error[RM1302]", "in.jsonl/work", "--work-dir"]);
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_the_first_call() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::with_rows(3);
    let run = |args: &[&str]| {
        let io = ["-i", "in.jsonl", "--work-dir", "work", "--overwrite"];
        home.run_with(&io).on(&simulator).args(args).without_privileges()
    };
    run(&["-o", "out.jsonl", "--export-traces", "closed"]).ends_with(0);
    fs::write(home.path("locked"), "").unwrap();
    let mode = |name: &str, mode: u32| {
        fs::set_permissions(home.path(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    mode("locked", 0o444);
    // Existing files in the folder can be written, but no new ones can be created.
    mode("closed", 0o555);
    let before = (home.names(), names(&home.path("closed")), home.read("out.jsonl"));
    for (args, named) in [
        (&["-o", "out.jsonl", "--summary-output", "locked"][..], "`locked`"),
        (&["-o", "out.jsonl", "--error-output", "locked"], "`locked`"),
        (&["-o", "out.jsonl", "--telemetry-output", "locked"], "`locked`"),
        (&["-o", "out.jsonl", "--summary-output", "closed/s.json"], "`closed/s.json`"),
        (&["-o", "out.jsonl", "--error-output", "closed/e.jsonl"], "`closed/e.jsonl`"),
        (&["-o", "out.jsonl", "--telemetry-output", "closed/t.jsonl"], "`closed/t.jsonl`"),
        (&["-o", "out.jsonl", "--export-traces", "closed"], "`closed`"),
        (&["-o", "closed/out.csv"], "closed`"),
        (&["--output-dir", "closed", "--split-by", "input.p"], "closed`"),
        (&["-o", "closed/out.jsonl"], "`closed/out.jsonl`"),
    ] {
        let ended = run(args).ends_with(1);
        ended.says(&["error[RM1401]: cannot write", named, "Permission denied"]);
        let after = (home.names(), names(&home.path("closed")), home.read("out.jsonl"));
        assert_eq!(after, before, "{args:?}");
    }
    assert_eq!(simulator.stats().requests, 3, "nothing was sent");
    mode("closed", 0o755);
}

#[test]
fn missing_permissions_are_named_and_once_given_the_run_goes_on() {
    let home = Home::with_rows(3);
    let open = |name: &str, mode: u32| {
        fs::set_permissions(home.path(name), PermissionsExt::from_mode(mode)).unwrap()
    };
    let run = |output: &str| {
        home.run_with(&["-i", "in.jsonl", "-o", output, "-m", "passthrough"]).without_privileges()
    };
    open("in.jsonl", 0o000);
    run("out.jsonl").ends_with(1).says(&["error[RM1002]", "`in.jsonl`", "Permission denied", "help:"]);
    open("in.jsonl", 0o644);
    fs::create_dir(home.path("closed")).unwrap();
    open("closed", 0o555);
    run("closed/out.jsonl").ends_with(1).says(&["error[RM1401]", "closed/", "Permission denied", "help:"]);
    let elsewhere = run("closed/out.jsonl").args(&["--work-dir", "work"]).ends_with(1);
    elsewhere.says(&[
        "error[RM1401]",
        "`closed/out.jsonl`",
        "Permission denied",
        "help: check the permissions",
    ]);
    open("closed", 0o777);
    run("closed/out.jsonl").ends_with(0);
    assert_eq!(names(&home.path("closed")), ["out.jsonl"]);
}
