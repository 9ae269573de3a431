//! Test support: runs the real command in a separate folder and inspects its results.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rowmill_testkit::{Simulator, SimulatorScript};
use serde_json::Value;
use tempfile::TempDir;

/// The API key for every provider.
pub(crate) const KEY: &str = "sk-test-key";

/// Flags that make a run write every kind of file.
pub(crate) const EVERY_FILE: &[&str] = &[
    "--retries",
    "1",
    "--retry-wait",
    "1ms",
    "--keep-temp",
    "--telemetry-output",
    "times.jsonl",
    "--error-output",
    "bad.jsonl",
    "--summary-output",
    "sum.json",
    "--export-traces",
    "traces",
];

/// The timeout for something that is certain to happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder to work in, with an environment of only the variables that are set here.
pub(crate) struct Place {
    folder: TempDir,
    environment: Vec<(String, String)>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, expected, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Checks that the command succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.code(0)
    }

    /// Checks that standard error contains a text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "`{text}` is not said in: {}", self.stderr);
        self
    }

    /// The JSON summary on standard output.
    pub(crate) fn summary(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// Standard output as JSON lines.
    pub(crate) fn lines(&self) -> Vec<Value> {
        json_lines(&self.stdout)
    }
}

impl Place {
    /// An empty folder and no provider.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut place = Self { folder, environment: Vec::new() };
        fs::create_dir(place.path("tmp")).unwrap();
        place.set("TMPDIR", &place.path("tmp").display().to_string());
        place.set("HOME", &place.folder.path().display().to_string());
        place
    }

    /// An empty folder in which every provider is the simulator.
    pub(crate) fn with(simulator: &Simulator) -> Self {
        let mut place = Self::new();
        let url = simulator.url();
        for (provider, base_url) in [
            ("OPENAI", format!("{url}/v1")),
            ("GENERIC", format!("{url}/v1")),
            ("ANTHROPIC", url.clone()),
            ("GEMINI", url.clone()),
        ] {
            place.set(&format!("{provider}_BASE_URL"), &base_url);
            place.set(&format!("{provider}_API_KEY"), KEY);
        }
        place
    }

    /// Sets a variable of the environment, replacing an earlier value.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Removes a variable.
    pub(crate) fn unset(&mut self, name: &str) {
        self.environment.retain(|(known, _)| known != name);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    /// Writes `rows.jsonl` with `count` rows `{"n":1}`, `{"n":2}` and so on.
    pub(crate) fn write_rows(&self, count: usize) {
        self.write("rows.jsonl", numbered_rows(count));
    }

    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The lines of a file as JSON, keys in their order.
    #[track_caller]
    pub(crate) fn json(&self, name: &str) -> Vec<Value> {
        json_lines(&self.read(name))
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The names in a folder, including hidden ones, except the header of a finished run; sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        names(&self.path(folder))
    }

    /// The command, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowmill"));
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `rowmill` with these arguments.
    pub(crate) fn rowmill(&self, arguments: &[&str]) -> Ended {
        finish(self.command(arguments).spawn().unwrap())
    }

    /// Runs `rowmill` in a folder below this one.
    pub(crate) fn rowmill_in(&self, folder: &str, arguments: &[&str]) -> Ended {
        finish(self.command(arguments).current_dir(self.path(folder)).spawn().unwrap())
    }

    /// Runs `rowmill run` with these arguments.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.rowmill(&[&["run"], arguments].concat())
    }

    /// Runs `rowmill run` from `rows.jsonl` to `out.jsonl` with further arguments.
    pub(crate) fn run_rows(&self, arguments: &[&str]) -> Ended {
        self.run(&[&["-i", "rows.jsonl", "-o", "out.jsonl"], arguments].concat())
    }

    /// Starts `rowmill run` from `rows.jsonl` to `out.jsonl` with further arguments.
    pub(crate) fn start_rows(&self, arguments: &[&str]) -> Child {
        self.command(&[&["run", "-i", "rows.jsonl", "-o", "out.jsonl"], arguments].concat()).spawn().unwrap()
    }

    /// Runs `rowmill run` with `input` on its standard input.
    pub(crate) fn pipe(&self, input: &[u8], arguments: &[&str]) -> Ended {
        let mut command = self.command(&[&["run", "-i", "-"], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // A command that does not start does not read its input; the assertions are about its messages.
        drop(child.stdin.take().unwrap().write_all(input));
        finish(child)
    }

    /// Waits until a file has this many complete lines.
    pub(crate) fn wait_for_lines(&self, name: &str, count: usize) -> String {
        let path = self.path(name);
        wait_for(|| fs::read_to_string(&path).ok().filter(|text| text.matches('\n').count() >= count))
    }
}

/// Waits for a process that was started. One that does not end fails the test.
#[track_caller]
pub(crate) fn finish(child: Child) -> Ended {
    let (sender, receiver) = mpsc::channel();
    // After the timeout, nothing receives the result any more.
    thread::spawn(move || drop(sender.send(child.wait_with_output())));
    let output = receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the command does not end"));
    Ended::of(output.unwrap())
}

/// Polls without a pause until there is a value.
#[track_caller]
pub(crate) fn wait_for<T>(mut head_of_dataset: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = head_of_dataset() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "what was waited for did not come");
        thread::yield_now();
    }
}

/// Waits until a process handles Ctrl-C.
#[track_caller]
pub(crate) fn wait_for_signals(child: &Child) {
    wait_for(|| {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
        (u64::from_str_radix(&mask, 16).unwrap() & 0b10 != 0).then_some(())
    });
}

/// Every name in a folder, except work folders that contain nothing but the header of a run.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let only_header = |path: &Path| {
        path.extension().is_some_and(|ending| ending == "rowmill") && names(path) == ["run.json"]
    };
    let mut names: Vec<String> = entries
        .filter(|entry| !only_header(&entry.path()))
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A simulator that answers every call, and a folder that uses it.
pub(crate) fn simulated() -> (Simulator, Place) {
    scripted(SimulatorScript::new().key(KEY))
}

/// A simulator with a script, and a folder that uses it.
pub(crate) fn scripted(script: SimulatorScript) -> (Simulator, Place) {
    let simulator = Simulator::start_blocking(script);
    let place = Place::with(&simulator);
    (simulator, place)
}

/// Lines `{"n":1}`, `{"n":2}` and so on.
pub(crate) fn numbered_rows(count: usize) -> String {
    (1..=count).map(|n| format!("{{\"n\":{n}}}\n")).collect()
}

/// Text as JSON lines.
#[track_caller]
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(parse).collect()
}

/// A field of every envelope.
pub(crate) fn each(envelopes: &[Value], pointer: &str) -> Vec<Value> {
    envelopes.iter().map(|envelope| envelope.pointer(pointer).cloned().unwrap_or_default()).collect()
}

/// The row numbers of envelopes, in their order.
pub(crate) fn row_numbers(envelopes: &[Value]) -> Vec<u64> {
    envelopes.iter().map(|envelope| envelope["row_number"].as_u64().unwrap()).collect()
}

/// The names of an object's fields, in their order.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The user messages of chat requests, in the order in which they arrived.
pub(crate) fn chat_prompts(simulator: &Simulator) -> Vec<String> {
    let requests = simulator.requests();
    let calls = requests.iter().filter(|request| request.path == "/v1/chat/completions");
    let prompt = |body: Value| {
        let messages = body["messages"].as_array().unwrap().clone();
        messages.iter().find(|message| message["role"] == "user").unwrap()["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    calls.map(|request| prompt(request.json())).collect()
}

/// The URL of a file.
pub(crate) fn file_url(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// Checks that a text is in no file of a folder.
#[track_caller]
pub(crate) fn assert_in_no_file(folder: &Path, secret: &str) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            assert_in_no_file(&entry, secret);
        } else {
            let text = String::from_utf8_lossy(&fs::read(&entry).unwrap()).into_owned();
            assert!(!text.contains(secret), "{secret} is in {}: {text}", entry.display());
        }
    }
}
