//! Every tool host that needs no program other than a shell satisfies the contract of the port, as checked by
//! the testkit's suite.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rowmill_core::ports::ToolHost;
use rowmill_testkit::conformance::{AfterRelease, CountingTool, ToolCase, ToolFacts, check_tool_host};
use rowmill_tools::{
    CombinedToolHost, HostToolNames, ShellHost, SkillHost, StubHost, StubTool, ToolRecorder,
};
use serde_json::json;
use tempfile::TempDir;

/// Counts the processes that hold a connection to this test.
struct Meeting {
    port: u16,
    here: Arc<AtomicUsize>,
}

impl Meeting {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let here = Arc::new(AtomicUsize::new(0));
        let count = here.clone();
        // Both threads end with the test.
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (mut connection, count) = (connection.unwrap(), count.clone());
                count.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    // A killed process may reset its connections, which means the same.
                    drop(connection.read_to_end(&mut Vec::new()));
                    count.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, here }
    }

    fn count(&self) -> usize {
        self.here.load(Ordering::SeqCst)
    }
}

fn environment(name: &str) -> Option<String> {
    (name == "PATH").then(|| "/usr/local/bin:/usr/bin:/bin".to_owned())
}

fn shell(folder: &Path) -> ShellHost {
    ShellHost::new(folder.into(), Duration::from_secs(60), &environment).unwrap()
}

fn execute(tool: &str, command: &str) -> ToolCase {
    ToolCase::new(tool, &json!({"command": command}))
}

/// The facts about a shell whose tool has this name.
fn facts_of_shell<'a>(tool: &'a str, meeting: &'a Meeting) -> ToolFacts<'a> {
    let hangs = format!("exec 3<>/dev/tcp/127.0.0.1/{}; sleep 1000 & wait", meeting.port);
    ToolFacts {
        fails: Some(execute(tool, "exit 3")),
        echoes: Some(Box::new(move |number| {
            (execute(tool, &format!("echo n{number}.")), format!("n{number}."))
        })),
        hangs: Some(execute(tool, &hangs)),
        under_way: Some(Box::new(|| meeting.count())),
        ..ToolFacts::of(execute(tool, "true"))
    }
}

fn stubs(folder: &TempDir) -> StubHost {
    let read = |name: &str, lines: &str| {
        let path = folder.path().join(format!("{name}.jsonl"));
        fs::write(&path, lines).unwrap();
        StubTool::read(name, path.to_str().unwrap()).unwrap()
    };
    let count = read("count", "{\"result\": 1}\n{\"result\": 2}\n{\"result\": 3}\n");
    let echo: String = (0..100)
        .map(|number| format!("{{\"arguments\": {{\"n\": {number}}}, \"result\": \"n{number}.\"}}\n"))
        .collect();
    let fail = read("fail", "{\"result\": \"no\", \"is_error\": true}\n");
    StubHost::new(vec![count, read("echo", &echo), fail, StubTool::read("sun", "text:sunny").unwrap()])
}

fn facts_of_stubs<'a>() -> ToolFacts<'a> {
    let nothing = json!({});
    ToolFacts {
        fails: Some(ToolCase::new("fail", &nothing)),
        counts: Some(CountingTool {
            case: ToolCase::new("count", &nothing),
            after_release: AfterRelease::Forgotten,
        }),
        echoes: Some(Box::new(|number| {
            (ToolCase::new("echo", &json!({"n": number})), format!("n{number}."))
        })),
        ..ToolFacts::of(ToolCase::new("sun", &nothing))
    }
}

#[tokio::test]
async fn the_shell_keeps_the_contract_of_tool_hosts() {
    let (folder, meeting) = (TempDir::new().unwrap(), Meeting::new());
    let shell = shell(folder.path());
    assert_eq!(check_tool_host(&shell, &facts_of_shell("execute", &meeting)).await, Vec::<String>::new());
    assert_eq!(meeting.count(), 0, "nothing is left");
}

#[tokio::test]
async fn answers_in_place_of_tools_keep_the_contract_of_tool_hosts() {
    let folder = TempDir::new().unwrap();
    assert_eq!(check_tool_host(&stubs(&folder), &facts_of_stubs()).await, Vec::<String>::new());
    let recorder = ToolRecorder::new(Arc::new(stubs(&folder)), folder.path().join("made"), HashMap::new());
    assert_eq!(check_tool_host(&recorder.unwrap(), &facts_of_stubs()).await, Vec::<String>::new());
}

#[tokio::test]
async fn skills_keep_the_contract_of_tool_hosts() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("mail")).unwrap();
    fs::write(folder.path().join("mail/SKILL.md"), "---\nname: mail\ndescription: Letters\n---\nDear\n")
        .unwrap();
    for number in 0..100 {
        fs::write(folder.path().join(format!("mail/{number}.txt")), format!("n{number}.")).unwrap();
    }
    let skills = SkillHost::read(&[folder.path().into()]).unwrap();
    let read = |arguments| ToolCase::new("read_skill", &arguments);
    let facts = ToolFacts {
        fails: Some(read(json!({"name": "mail", "file": "../secret"}))),
        echoes: Some(Box::new(move |number| {
            (read(json!({"name": "mail", "file": format!("{number}.txt")})), format!("n{number}."))
        })),
        ..ToolFacts::of(read(json!({"name": "mail"})))
    };
    assert_eq!(check_tool_host(&skills, &facts).await, Vec::<String>::new());
}

#[tokio::test]
async fn several_hosts_as_one_keep_the_contract_of_tool_hosts() {
    let (folder, meeting) = (TempDir::new().unwrap(), Meeting::new());
    let exact = |name: &str| HostToolNames::Exact(name.to_owned());
    let renamed = HostToolNames::As { name: "writer/execute".into(), tool: "execute".into() };
    let of_stubs = ["count", "echo", "fail", "sun"].map(exact).into();
    let hosts: Vec<(Vec<HostToolNames>, Arc<dyn ToolHost>)> =
        vec![(vec![renamed], Arc::new(shell(folder.path()))), (of_stubs, Arc::new(stubs(&folder)))];
    let facts = ToolFacts { counts: facts_of_stubs().counts, ..facts_of_shell("writer/execute", &meeting) };
    assert_eq!(check_tool_host(&CombinedToolHost::new(hosts), &facts).await, Vec::<String>::new());
    assert_eq!(meeting.count(), 0, "nothing is left");
}
