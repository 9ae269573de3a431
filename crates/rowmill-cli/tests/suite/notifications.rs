//! `--notify` and `--notify-url`: a command and a server are notified of the end of a run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rowmill_testkit::{SimulatedBatches, SimulatorScript};
use serde_json::Value;

use crate::support::{KEY, Place, scripted};

const MODEL: &str = "openai.gpt-5.4-mini";

/// A request that a server got: its head and its body.
struct Posted {
    head: String,
    body: Value,
}

/// A server that answers one request with this status.
fn server(status: u16) -> (String, JoinHandle<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).unwrap();
        }
        let lower = head.to_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        Posted { head, body: serde_json::from_slice(&body).unwrap() }
    });
    (address, served)
}

fn place() -> Place {
    let mut place = Place::new();
    place.set("PATH", "/usr/bin:/bin");
    place.write_rows(2);
    place
}

#[test]
fn a_command_gets_the_summary_of_a_live_run_on_its_standard_input() {
    let place = place();
    let ended = place.run_rows(&["-m", "passthrough", "--notify", "cat > received.json; echo noise"]).ok();
    let received: Value = serde_json::from_str(&place.read("received.json")).unwrap();
    let summary = ended.summary();
    for (name, value) in summary.as_object().unwrap() {
        assert_eq!(received[name], *value, "{name}");
    }
    assert_eq!((&received["exit_code"], &received["status"]), (&0.into(), &"finished".into()));
    assert_eq!((&received["output"], &received["processed_rows"]), (&"out.jsonl".into(), &2.into()));
    assert!(!ended.stdout.contains("noise"), "standard output belongs to the summary");
}

#[test]
fn a_server_gets_the_same_and_nothing_secret_of_its_address_is_shown() {
    let place = place();
    for (status, expected) in [(204, None), (500, Some("failed: the server answered with HTTP 500"))] {
        let (address, served) = server(status);
        let url = format!("http://ada:open-sesame@{address}/hooks/key-42?token=key-43");
        let flags = ["-m", "passthrough", "--overwrite", "--notify-url", &url];
        let ended = place.run_rows(&flags).ok();
        let posted = served.join().unwrap();
        assert!(posted.head.starts_with("POST /hooks/key-42?token=key-43 HTTP/1.1"), "{}", posted.head);
        assert!(posted.head.contains("Basic YWRhOm9wZW4tc2VzYW1l"), "{}", posted.head);
        assert!(posted.head.to_lowercase().contains("content-type: application/json"), "{}", posted.head);
        assert_eq!((&posted.body["exit_code"], &posted.body["status"]), (&0.into(), &"finished".into()));
        assert_eq!(
            expected.is_some(),
            ended.stderr.contains("warning: the notification"),
            "{}",
            ended.stderr
        );
        let ended = ended.says(expected.unwrap_or_default());
        for secret in ["sesame", "key-42", "key-43"] {
            assert!(!ended.stderr.contains(secret), "{}", ended.stderr);
        }
    }
}

#[test]
fn a_notification_that_fails_changes_nothing_but_a_warning() {
    let place = place();
    let received =
        |flags: &[&str]| place.run_rows(&[&["-m", "passthrough", "--overwrite"], flags].concat()).ok().stderr;
    let messages = received(&["--notify", "exit 3"]);
    assert!(
        messages.contains("warning: the notification command failed: it ended with exit code 3"),
        "{messages}"
    );
    let messages = received(&["--notify", "kill -9 $$"]);
    assert!(messages.contains("failed: it was ended by a signal"), "{messages}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let messages = received(&["--notify-url", &format!("http://{closed}/x")]);
    assert!(
        messages.contains(&format!("warning: the notification to `http://{closed}/…` failed")),
        "{messages}"
    );
}

#[test]
fn runs_that_fail_and_runs_that_cannot_begin_are_reported_as_well() {
    let place = place();
    let received = || serde_json::from_str::<Value>(&place.read("received.json")).unwrap();
    place.run_rows(&["-m", "silent", "--notify", "cat > received.json"]).code(3);
    assert_eq!((&received()["exit_code"], &received()["failed_rows"]), (&3.into(), &2.into()));
    place.run_rows(&["-m", "passthrough", "--notify", "cat > received.json"]).code(1);
    assert_eq!((&received()["exit_code"], &received()["status"]), (&1.into(), &"stopped".into()));
    assert!(received()["stopped_by"].as_str().unwrap().contains("exists"), "{}", received());
}

#[test]
fn both_can_be_in_the_configuration_and_a_flag_replaces_one() {
    let place = place();
    let (address, served) = server(200);
    let config = format!("[run]\nnotify = \"cat > file.json\"\nnotify_url = \"http://{address}\"\n");
    place.write("rowmill.toml", config);
    place.run_rows(&["-m", "passthrough", "--notify", "cat > flag.json"]).ok();
    assert!(place.exists("flag.json") && !place.exists("file.json"));
    assert_eq!(served.join().unwrap().body["status"], "finished");
    let spec = place.run_rows(&["-m", "passthrough", "--print-spec"]).ok().summary();
    assert_eq!(spec["notify"]["command"], "cat > file.json");
}

#[test]
fn what_cannot_be_used_is_reported_before_anything_is_sent() {
    let place = place();
    for (flags, message) in [
        (["--notify", " "], "`--notify` must not be empty"),
        (
            ["--notify-url", "ftp://ada:sesame@x"],
            "`--notify-url` must be an address with `http://` or `https://`",
        ),
    ] {
        let ended = place.run_rows(&[&["-m", "passthrough"], &flags[..]].concat()).code(2).says(message);
        assert!(!ended.stderr.contains("sesame"), "{}", ended.stderr);
        assert!(!place.exists("out.jsonl"));
    }
    place
        .rowmill(&["batch", "status", "--notify", "true"])
        .code(2)
        .says("--notify and --notify-url require --wait");
}

#[test]
fn the_commands_on_batch_jobs_notify_those_of_the_run_or_of_their_flags() {
    let batches = SimulatedBatches::new().duration(Duration::from_secs(3_600));
    let (simulator, mut place) = scripted(SimulatorScript::new().key(KEY).batches(batches));
    simulator.stop_job_clock();
    place.set("PATH", "/usr/bin:/bin");
    place.write("rows.jsonl", "{\"n\":\"a\"}\n{\"n\":\"b [[400x1]]\"}\n");
    let received = |name: &str| serde_json::from_str::<Value>(&place.read(name)).unwrap();
    let flags = ["-m", MODEL, "--lane", "batch", "--detach", "--notify", "cat > run.json"];
    place.run_rows(&flags).code(5);
    let batch = &received("run.json")["batch"];
    assert_eq!((&batch["jobs"], &batch["jobs_out"], &batch["rows_out"]), (&1.into(), &1.into(), &2.into()));
    assert_eq!(received("run.json")["status"], "submitted");
    simulator.finish_jobs();
    place.rowmill(&["batch", "status", "--wait", "--notify", "cat > status.json"]).ok();
    assert_eq!(
        (&received("status.json")["state"], &received("status.json")["jobs_out"]),
        (&"completed".into(), &0.into())
    );
    place.rowmill(&["batch", "retrieve"]).code(3);
    assert_eq!(
        (&received("run.json")["exit_code"], &received("run.json")["status"]),
        (&3.into(), &"finished".into())
    );
    place.rowmill(&["batch", "retrieve", "--notify", "cat > flag.json"]).code(3);
    assert_eq!(received("flag.json")["exit_code"], 3);
    place.rowmill(&["batch", "retry", "--notify", "cat >> retry.json"]).code(5);
    assert_eq!(received("retry.json")["exit_code"], 5, "one command notifies once");
}

#[test]
fn an_address_with_a_password_is_not_remembered() {
    let batches = SimulatedBatches::new().duration(Duration::from_secs(3_600));
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY).batches(batches));
    simulator.stop_job_clock();
    place.write_rows(1);
    let flags =
        ["-m", MODEL, "--lane", "batch", "--detach", "--notify-url", "http://ada:sesame@127.0.0.1:9/x"];
    place.run_rows(&flags).code(5).says("warning: the notification to `http://127.0.0.1:9/…` failed");
    crate::support::assert_in_no_file(&place.path(".local/state/rowmill/batch"), "sesame");
}
