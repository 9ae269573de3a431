//! Test support: servers, the processes of a run, and a model that calls tools.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::faults_support::{Home, Run};

/// How many rows are worked on at once.
pub(crate) const PARALLEL: usize = 32;

/// The timeout for something that is certain to happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that `scripts/prepare-mcp` installed.
pub(crate) fn installed(program: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let places = [".mcp/node_modules/.bin", ".mcp/venv/bin"].map(|folder| root.join(folder).join(program));
    let found = places.iter().find(|place| place.exists());
    assert!(
        found.is_some(),
        "`{program}` is missing: run `bash scripts/prepare-mcp`, which needs nodejs, npm and python3-venv"
    );
    let has_node = || env!("PATH").split(':').any(|folder| Path::new(folder).join("node").exists());
    assert!(found == places.last() || has_node(), "`{program}` needs Node.js: install nodejs and npm");
    found.unwrap().canonicalize().unwrap_or_else(|_| found.unwrap().clone()).display().to_string()
}

/// The `rowmill.toml` entry of a server that is a process.
pub(crate) fn entry(name: &str, command: &[&str], more: &str) -> String {
    let (program, args) = command.split_first().unwrap();
    // Texts and lists of texts have the same form in JSON and TOML.
    let args = serde_json::to_string(args).unwrap();
    format!("[mcp.servers.{name}]\ncommand = {program:?}\nargs = {args}\n{more}\n")
}

/// The entry of our own server.
pub(crate) fn own_entry(name: &str, flags: &[&str], more: &str) -> String {
    let words = rowmill_testkit::mcp_server();
    let words: Vec<&str> = words.iter().map(String::as_str).chain(flags.iter().copied()).collect();
    entry(name, &words, more)
}

/// Our own server in a card, as `t`, with these flags and fields.
pub(crate) fn own_in_card(flags: &[&str], more: &str) -> String {
    let words = rowmill_testkit::mcp_server();
    let args: Vec<&str> = words[1..].iter().map(String::as_str).chain(flags.iter().copied()).collect();
    let args = serde_json::to_string(&args).unwrap();
    format!("mcp_connect:\n  t:\n    command: {}\n    args: {args}\n    {more}", words[0])
}

/// A card of an agent called `worker`.
pub(crate) fn card(fields: &str) -> String {
    format!("---\nname: worker\n{fields}\n---\nUse your tools.\n")
}

/// A folder with this many rows, a configuration and a card.
pub(crate) fn home(rows: usize, config: &str, card: &str) -> Home {
    let home = Home::with_rows(rows);
    home.write("rowmill.toml", config);
    home.write("worker.md", card);
    home
}

/// A run of the card against the simulator.
pub(crate) fn run(home: &Home, simulator: &Simulator) -> Run {
    home.run()
        .on(simulator)
        .env("PATH", env!("PATH"))
        .env("HOME", home.path("").to_str().unwrap())
        .args(&["--agent-card", "worker.md"])
}

/// The row number of a prompt.
pub(crate) fn number(prompt: &str) -> usize {
    prompt.strip_prefix("row ").unwrap().parse().unwrap()
}

/// An answer of the model that calls a tool.
pub(crate) fn call(tool: &str, arguments: Value) -> SimulatedAnswer {
    SimulatedAnswer::Calls { text: String::new(), calls: vec![(tool.to_owned(), arguments)] }
}

/// A model that calls a tool in its first turn and then answers with the result.
pub(crate) fn calling(
    tool: &'static str,
    arguments: impl Fn(usize) -> Value + Send + Sync + 'static,
) -> SimulatorScript {
    SimulatorScript::new().answer_calls(move |seen| match seen.turn {
        1 => call(tool, arguments(number(seen.prompt))),
        _ => SimulatedAnswer::Text(seen.last.to_owned()),
    })
}

/// The number of rows for [`most_at_once`]: no more than a run sends before its first answer.
pub(crate) const MEETING_ROWS: usize = 6;

/// Lets every row call `meet` of the server `t`, and returns the maximum number of calls at once, as
/// the server reports it. The model answers only after all rows have asked, so that all of them call at
/// once.
#[track_caller]
pub(crate) fn most_at_once(home: &Home) -> usize {
    let simulator = Simulator::start_blocking(calling("t__meet", |_| json!({})).hold_after(0));
    let parallel = MEETING_ROWS.to_string();
    let running = run(home, &simulator).args(&["--parallel", &parallel]).start();
    simulator.wait_until_blocking(|now| now.requests == MEETING_ROWS as u64);
    simulator.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let counts = home.envelopes();
    let counts = counts.iter().map(|envelope| envelope["result"].as_str().unwrap().parse::<usize>());
    counts.map(|count| count.unwrap()).max().unwrap()
}

/// The processes of a run and their children, recognized by their environment.
pub(crate) fn processes(home: &Home) -> Vec<(Pid, String)> {
    processes_at(&home.path(""))
}

fn processes_at(home: &Path) -> Vec<(Pid, String)> {
    let mark = format!("HOME={}\0", home.display());
    let known = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let pid = path.file_name()?.to_str()?.parse().ok().and_then(Pid::from_raw)?;
        let environment = fs::read(path.join("environ")).ok()?;
        let command = String::from_utf8_lossy(&fs::read(path.join("cmdline")).ok()?).replace('\0', " ");
        String::from_utf8_lossy(&environment).contains(&mark).then_some((pid, command))
    });
    known.collect()
}

/// Waits until no process of a run is left.
#[track_caller]
pub(crate) fn wait_until_gone(home: &Home) {
    let began = Instant::now();
    while !processes(home).is_empty() {
        assert!(began.elapsed() < PATIENCE, "processes are left: {:?}", processes(home));
        thread::yield_now();
    }
}

pub(crate) fn signal(process: Pid, signal: Signal) {
    kill_process(process, signal).unwrap();
}

/// A server that is killed while calls are in flight.
///
/// When the row `from` comes, the server is halted, so that calls pile up; when every slot of the run
/// waits for it, it is killed. A halted server can neither answer nor process a call twice.
pub(crate) struct Victim {
    from: usize,
    find: Box<dyn Fn() -> Pid + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    halted: Option<Pid>,
    killed: Option<Pid>,
    under_way: usize,
}

impl Victim {
    pub(crate) fn new(from: usize, find: impl Fn() -> Pid + Send + Sync + 'static) -> Self {
        Self { from, find: Box::new(find), state: Mutex::default() }
    }

    /// The process of a run whose command line contains `program`.
    pub(crate) fn of(from: usize, home: &Home, program: &str) -> Self {
        let (home, program) = (home.path(""), program.to_owned());
        Self::new(from, move || {
            let all = processes_at(&home);
            all.into_iter().find(|(_, command)| command.contains(&program)).unwrap().0
        })
    }

    /// A row is about to call it.
    pub(crate) fn called(&self, row: usize) {
        let mut state = self.state.lock().unwrap();
        state.under_way += 1;
        if row == self.from {
            let process = (self.find)();
            signal(process, Signal::STOP);
            state.halted = Some(process);
        }
        if state.under_way == PARALLEL
            && let Some(process) = state.halted.take()
        {
            signal(process, Signal::KILL);
            state.killed = Some(process);
        }
    }

    /// A row has received its answer.
    pub(crate) fn answered(&self) {
        self.state.lock().unwrap().under_way -= 1;
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state.lock().unwrap().killed.is_some()
    }
}

/// The everything server on a local port, in a process that the tests start.
pub(crate) struct Everything {
    child: Child,
    port: u16,
}

impl Everything {
    pub(crate) fn start(port: Option<u16>) -> Self {
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // Between the search for a free port and the start of the server, another process may take the
        // port.
        let started = (0..10).find_map(|_| Self::try_start(port.unwrap_or_else(free)));
        started.unwrap_or_else(|| panic!("the server does not start"))
    }

    fn try_start(port: u16) -> Option<Self> {
        let mut command = Command::new(installed("mcp-server-everything"));
        command.arg("streamableHttp").env("PORT", port.to_string());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        if !lines.any(|line| line.unwrap().contains("listening on port")) {
            child.wait().unwrap();
            return None;
        }
        // Its output is read from now on; otherwise it would block.
        thread::spawn(move || lines.for_each(drop));
        Some(Self { child, port })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn process(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn entry(&self, name: &str) -> String {
        format!("[mcp.servers.{name}]\nurl = \"http://127.0.0.1:{}/mcp\"\n", self.port)
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        // It may have been killed already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Our server over HTTP, in a process that the tests start.
pub(crate) struct OwnServer {
    child: Child,
    pub(crate) url: String,
}

impl OwnServer {
    pub(crate) fn start(flags: &[&str]) -> Self {
        let words = rowmill_testkit::mcp_server();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["--http", "0"]).args(flags);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Every file in a folder and its subfolders.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
