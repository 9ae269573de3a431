//! Servers with sign-in by a person, and servers of Hugging Face.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::json;

use crate::faults_support::{Home, assert_all_ok};
use crate::mcp::kit::{OwnServer, call, calling, card, files, home, run};

/// The head of the answer to a GET request.
pub(super) fn get(address: &str) -> String {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The address to which an answer redirects a browser.
pub(super) fn location(answer: &str) -> &str {
    answer.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap()
}

fn rowmill(home: &Home, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowmill"));
    command.current_dir(home.path("")).env_clear().env("HOME", home.path("")).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Signs in like a person: opens the address that is printed, and follows its redirects. Returns the
/// output of the command, and whether it succeeded.
fn sign_in(home: &Home, server: &str) -> (String, bool) {
    let mut child = rowmill(home, &["mcp", "login", server]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut message = String::new();
    for line in lines.by_ref() {
        let line = line.unwrap();
        message.push_str(&format!("{line}\n"));
        if line.starts_with("http://") {
            // Browsers request an icon as well, which is not an answer.
            let back = get(&line);
            let (origin, _) = location(&back).split_once("/callback").unwrap();
            assert!(get(&format!("{origin}/favicon.ico")).starts_with("HTTP/1.1 404"));
            assert!(get(location(&back)).contains("close this window"));
            break;
        }
    }
    message.extend(lines.map(|line| line.unwrap() + "\n"));
    (message, child.wait().unwrap().success())
}

pub(super) fn token_files(home: &Home) -> Vec<PathBuf> {
    let folder = home.path(".local/state/rowmill/mcp");
    if !folder.exists() {
        return Vec::new();
    }
    files(&folder).into_iter().filter(|file| file.extension().is_some_and(|end| end == "json")).collect()
}

#[test]
fn a_person_signs_in_once_and_runs_use_and_renew_the_tokens_until_they_sign_out() {
    let home = home(4, "", "");
    let counted = home.path("counted");
    // Tokens that have expired before they are used are renewed at every start.
    let flags = ["--people", "yes", "--lifetime", "5", "--count", counted.to_str().unwrap()];
    let server = OwnServer::start(&flags);
    home.write("rowmill.toml", &format!("[mcp.servers.docs]\nurl = \"{}\"\n", server.url));
    home.write("worker.md", &card("servers: [docs]"));
    // A tool repeats the tokens of the sign-in.
    let simulator = Simulator::start_blocking(calling(
        "docs__echo",
        |row| json!({"text": format!("said {row} token-2-planted refresh-2-planted")}),
    ));

    let refused = run(&home, &simulator).ends_with(1);
    refused.says(&[
        "asks for a credential (HTTP 401)",
        &format!("sign in with `rowmill mcp login {}`", server.url),
    ]);

    let (message, ok) = sign_in(&home, "docs");
    assert!(ok && message.contains("open this address to sign in"), "{message}");
    assert!(message.contains(&format!("signed in to {}", server.url)), "{message}");
    let [file] = token_files(&home).try_into().unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!message.contains("planted"), "{message}");

    run(&home, &simulator).args(&["--export-traces", "traces"]).ends_with(0);
    assert_all_ok(&home.envelopes(), 4);
    assert_eq!(home.envelopes()[0]["result"], "said 1 *** ***");
    let grants = std::fs::read_to_string(&counted).unwrap();
    assert!(grants.starts_with("register rowmill\nauthorization_code\nrefresh_token\n"), "{grants}");
    let holds = |path: &&PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains("planted");
    let all = files(&home.path(""));
    assert_eq!(all.iter().filter(holds).collect::<Vec<_>>(), [&file], "tokens are in their file alone");

    let ended = rowmill(&home, &["mcp", "logout", &server.url]).output().unwrap();
    assert!(ended.status.success() && token_files(&home).is_empty());
    run(&home, &simulator).args(&["--overwrite"]).ends_with(1).says(&["rowmill mcp login"]);
}

#[test]
fn a_token_that_is_renewed_in_the_middle_of_a_run_is_in_no_file_but_its_own() {
    let server = OwnServer::start(&["--people", "yes"]);
    let entry = format!("mcp_connect:\n  - target: {}?login\n    name: docs", server.url);
    let home = home(3, "", &card(&entry));
    assert!(sign_in(&home, &server.url).1);
    let script = SimulatorScript::new().answer_calls(|seen| match seen.turn {
        1 => call("docs__revoke", json!({})),
        2 => call("docs__credential", json!({})),
        _ => SimulatedAnswer::Text(format!("{}: {}", seen.prompt, seen.last)),
    });
    let simulator = Simulator::start_blocking(script);
    let kept = ["--export-traces", "traces", "--checkpoint-turns", "--record-tools", "recorded"];
    let ended = run(&home, &simulator).args(&["--parallel", "1"]).args(&kept).ends_with(0);
    let envelopes = home.envelopes();
    assert_all_ok(&envelopes, 3);
    assert_eq!(envelopes[2]["result"], "row 3: Bearer ***");
    ended.says(&["known secrets were replaced by `***`"]);
    let holds = |path: &&PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains("planted");
    let all = files(&home.path(""));
    assert_eq!(all.iter().filter(holds).cloned().collect::<Vec<_>>(), token_files(&home));
}

#[test]
fn a_sign_in_that_is_refused_or_impossible_says_so_and_keeps_nothing() {
    let server = OwnServer::start(&["--people", "no"]);
    let home = home(1, "[mcp.servers.local]\ncommand = \"true\"\n", "");
    let (messages, ok) = sign_in(&home, &server.url);
    assert!(!ok && messages.contains("was denied") && messages.contains("access_denied"), "{messages}");
    for (name, expected) in [
        ("nowhere", "`rowmill.toml` has no MCP server `nowhere`"),
        ("local", "the MCP server `local` is a process, so it needs no sign-in"),
    ] {
        let ended = rowmill(&home, &["mcp", "login", name]).output().unwrap();
        assert_eq!(ended.status.code(), Some(1));
        let messages = String::from_utf8(ended.stderr).unwrap();
        assert!(messages.contains(expected), "{messages}");
    }
    assert_eq!(token_files(&home), [] as [PathBuf; 0]);
}

/// The card of the first example.
const HUGGING_FACE: &str = "description: Research models and datasets.\nmcp_connect:\n- target: \
    \"https://huggingface.co/mcp?login\"\n  name: huggingface";

#[test]
fn a_server_of_hugging_face_gets_the_token_of_the_user_and_no_file_does() {
    const TOKEN: &str = "hf_planted4711";
    let server = OwnServer::start(&["--token", TOKEN]);
    let endpoint = server.url.strip_suffix("/mcp").unwrap();
    let home = home(3, "", &card(HUGGING_FACE));
    let simulator = Simulator::start_blocking(calling("huggingface__echo", |_| json!({"text": "found"})));
    let begin = || run(&home, &simulator).env("HF_ENDPOINT", endpoint);

    let refused = begin().ends_with(1);
    refused.says(&["the MCP server `huggingface` asks for a credential (HTTP 401)", "set `HF_TOKEN`"]);
    let refused = begin().env("HF_TOKEN", "hf_another-token").ends_with(1);
    refused.says(&["the Hugging Face access token was rejected"]);
    assert!(!refused.err.contains("hf_another-token"), "{}", refused.err);

    let kept = ["--export-traces", "traces", "--checkpoint-turns", "--record-tools", "recorded"];
    let ended = begin().env("HF_TOKEN", TOKEN).args(&kept).ends_with(0);
    assert_all_ok(&home.envelopes(), 3);
    assert!(!ended.out.contains(TOKEN) && !ended.err.contains(TOKEN));
    let holds = |path: &PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(TOKEN);
    assert_eq!(files(&home.path("")).into_iter().filter(holds).collect::<Vec<_>>(), [] as [PathBuf; 0]);

    // A sign-in with the hub's own client works as well.
    std::fs::create_dir_all(home.path(".cache/huggingface")).unwrap();
    home.write(".cache/huggingface/token", TOKEN);
    begin().args(&["--overwrite"]).ends_with(0);
}
