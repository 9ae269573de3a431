//! Test support for running the command as a process: a folder, a run, and its results.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use rowmill_testkit::Simulator;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The protocols, by a model that uses each of them.
pub(crate) const PROTOCOLS: [&str; 4] = ["generic.m", "responses.m", "anthropic.m", "google.m"];

/// A folder that a test works in.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with `in.jsonl`, whose rows have these prompts in the field `p`.
    pub(crate) fn with_prompts<T: AsRef<str>>(prompts: impl IntoIterator<Item = T>) -> Self {
        let home = Self::new();
        home.write_prompts(prompts);
        home
    }

    /// A folder with `in.jsonl`, whose rows have the prompts `row 1`, `row 2` and so on.
    pub(crate) fn with_rows(count: usize) -> Self {
        Self::with_prompts((1..=count).map(|number| format!("row {number}")))
    }

    pub(crate) fn write_prompts<T: AsRef<str>>(&self, prompts: impl IntoIterator<Item = T>) {
        let lines =
            prompts.into_iter().map(|prompt| format!("{}\n", serde_json::json!({"p": prompt.as_ref()})));
        self.write("in.jsonl", &lines.collect::<String>());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn append(&self, name: &str, text: &str) {
        let mut file = fs::OpenOptions::new().append(true).open(self.path(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn remove(&self, name: &str) {
        let path = self.path(name);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The lines of a file as JSON.
    pub(crate) fn json_lines(&self, name: &str) -> Vec<Value> {
        parse_lines(&self.read(name))
    }

    /// The envelopes of `out.jsonl`.
    pub(crate) fn envelopes(&self) -> Vec<Value> {
        self.json_lines("out.jsonl")
    }

    /// Every name in the folder, including hidden ones, except the header of a finished run.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.folder.path())
    }

    /// A run over `in.jsonl` to `out.jsonl`, with waits too short to notice.
    pub(crate) fn run(&self) -> Run {
        self.run_with(&["-i", "in.jsonl", "-o", "out.jsonl"])
    }

    /// A run with the given input and output, and with a prompt if it is not the field `p`.
    pub(crate) fn run_with(&self, args: &[&str]) -> Run {
        self.work("run", args)
    }

    /// A plan for a run over `in.jsonl`.
    pub(crate) fn plan(&self) -> Run {
        self.work("plan", &["-i", "in.jsonl"])
    }

    /// Another command, with exactly these arguments.
    pub(crate) fn command(&self, name: &str, args: &[&str]) -> Run {
        self.start_of(&[&[name], args].concat())
    }

    fn work(&self, name: &str, args: &[&str]) -> Run {
        let prompt: &[&str] = if args.contains(&"-p") { &[] } else { &["-p", "{{p}}"] };
        self.start_of(&[&[name, "--retry-wait", "1ms", "--no-final-summary"], prompt, args].concat())
    }

    fn start_of(&self, args: &[&str]) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowmill"));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("TMPDIR", self.folder.path())
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Run { command, stdin: None }
    }
}

/// Every name in a folder, except work folders that contain nothing but the header of a run.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> = entries
        .filter(|entry| !holds_only_a_header(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn holds_only_a_header(path: &Path) -> bool {
    let hidden = path.extension().is_some_and(|ending| ending == "rowmill");
    hidden && names(path) == ["run.json"]
}

pub(crate) fn parse_lines(text: &str) -> Vec<Value> {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line lacks its newline: {text:?}");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Gives a command a terminal, and passes on what it shows and what is typed.
const TERMINAL: &str = r#"
import os, pty, select, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
open_ends = [terminal, 0]
while terminal in open_ends:
    for end in select.select(open_ends, [], [])[0]:
        try:
            text = os.read(end, 65536)
        except OSError:
            text = b""  # The command has ended.
        os.write(1 if end == terminal else terminal, text)
        if not text:
            open_ends.remove(end)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

/// A command that is about to be started.
pub(crate) struct Run {
    command: Command,
    stdin: Option<String>,
}

impl Run {
    /// Calls the simulator with the model `m` over the chat protocol.
    pub(crate) fn on(self, simulator: &Simulator) -> Self {
        self.model(simulator, "generic.m")
    }

    /// Calls the simulator with this model, whatever its provider.
    pub(crate) fn model(self, simulator: &Simulator, model: &str) -> Self {
        self.at(&simulator.url()).args(&["-m", model])
    }

    /// Calls the server at this address.
    pub(crate) fn at(mut self, url: &str) -> Self {
        for (variable, path) in [
            ("GENERIC_BASE_URL", "/v1"),
            ("OPENAI_BASE_URL", "/v1"),
            ("ANTHROPIC_BASE_URL", ""),
            ("GEMINI_BASE_URL", ""),
        ] {
            self.command.env(variable, format!("{url}{path}"));
        }
        self.key("k")
    }

    pub(crate) fn key(mut self, key: &str) -> Self {
        for variable in ["GENERIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
            self.command.env(variable, key);
        }
        self
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn stdin(mut self, text: &str) -> Self {
        self.stdin = Some(text.to_owned());
        self.command.stdin(Stdio::piped());
        self
    }

    pub(crate) fn stdout(mut self, file: fs::File) -> Self {
        self.command.stdout(file);
        self
    }

    /// Runs as a user to whom the permissions of files apply, which they do not for root.
    pub(crate) fn without_privileges(self) -> Self {
        if !rustix::process::getuid().is_root() {
            return self;
        }
        let mut setpriv = Command::new("setpriv");
        setpriv.args(["--bounding-set", "-dac_override,-dac_read_search", "--"]);
        Self { command: self.within(setpriv), stdin: None }
    }

    /// Runs in a shell that first executes this, such as `ulimit -n 64`, and then becomes the command.
    pub(crate) fn under(self, first: &str) -> Self {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(format!("{first}; exec \"$0\" \"$@\""));
        Self { command: self.within(shell), stdin: None }
    }

    /// Starts on its own terminal: standard output has what it shows, and what is written to standard
    /// input is typed.
    pub(crate) fn start_on_terminal(self) -> Child {
        let mut python = Command::new("python3");
        python.args(["-c", TERMINAL]);
        self.within(python).stdin(Stdio::piped()).env("TERM", "xterm").spawn().unwrap()
    }

    /// Another command that is given this one as its argument, with its environment.
    fn within(self, mut other: Command) -> Command {
        other.arg(self.command.get_program()).args(self.command.get_args()).env_clear();
        let set = self.command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        other.envs(set).current_dir(self.command.get_current_dir().unwrap());
        other.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        other
    }

    pub(crate) fn start(mut self) -> Running {
        let mut child = self.command.spawn().unwrap();
        if let Some(text) = self.stdin {
            // A run that stops early does not read to the end.
            child.stdin.take().unwrap().write_all(text.as_bytes()).ok();
        }
        Running { child }
    }

    /// Starts with this text on standard input, which stays open as long as the returned handle.
    pub(crate) fn start_fed(mut self, text: &str) -> (Running, ChildStdin) {
        let mut child = self.command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        (Running { child }, stdin)
    }

    /// Runs to the end, with any exit code.
    pub(crate) fn end(self) -> Ended {
        self.start().end()
    }

    /// Runs to the end, which must have this exit code.
    pub(crate) fn ends_with(self, code: i32) -> Ended {
        let ended = self.end();
        assert_eq!(ended.code, Some(code), "stderr: {}", ended.err);
        ended
    }
}

/// A process that is running; it dies with the test.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Its peak memory so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Kills it at once and waits for its end.
    pub(crate) fn kill(mut self) -> Ended {
        self.child.kill().unwrap();
        self.end()
    }

    pub(crate) fn end(mut self) -> Ended {
        let mut out = String::new();
        let mut err = String::new();
        let (stdout, mut stderr) = (self.child.stdout.take(), self.child.stderr.take().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| stdout.map(|mut stdout| stdout.read_to_string(&mut out).unwrap()));
            stderr.read_to_string(&mut err).unwrap();
        });
        let code = self.child.wait().unwrap().code();
        Ended { code, out, err }
    }

    /// Waits until a line on standard error contains `text`; [`Running::end`] does not return what was
    /// read here.
    pub(crate) fn wait_for_talk(&mut self, text: &str) {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut seen = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&seen).contains(text) {
            let read = stderr.read(&mut byte).unwrap();
            assert_eq!(read, 1, "ended before it said `{text}`: {}", String::from_utf8_lossy(&seen));
            seen.push(byte[0]);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The output of a run that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Checks that standard error contains each of these texts.
    #[track_caller]
    pub(crate) fn says(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(self.err.contains(text), "`{text}` is not in: {}", self.err);
        }
        self
    }

    /// Checks the message of a resume: rows skipped, retried, and sent again.
    #[track_caller]
    pub(crate) fn resumed(&self, done: u64, failed: u64, unknown: u64) -> &Self {
        let rows = |count: u64| if count == 1 { "row" } else { "rows" };
        self.says(&[&format!(
            "resuming: skipping {done} finished {}, retrying {failed} failed {} and {unknown} {} with \
             unknown outcome",
            rows(done),
            rows(failed),
            rows(unknown)
        )])
    }

    /// The summary, if requested with `--final-summary`.
    pub(crate) fn summary(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// Checks that there is one envelope per row, ok, in input order.
#[track_caller]
pub(crate) fn assert_all_ok(envelopes: &[Value], rows: usize) {
    let numbers: Vec<u64> =
        envelopes.iter().map(|envelope| envelope["row_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=rows as u64).collect::<Vec<_>>());
    let failed: Vec<&Value> = envelopes.iter().filter(|envelope| envelope["ok"] != true).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// How many calls a line of telemetry reports.
pub(crate) fn attempts(telemetry: &Value) -> usize {
    telemetry["usage"]["provider_attempts"].as_array().map_or(0, Vec::len)
}
