//! Processes that die, hang or are dropped leave nothing behind.

use std::time::Duration;

use rowmill_core::ports::ToolHost;
use serde_json::json;

use crate::python::support::{Folder, Meeting, folder, gone};

const CODE: &str = r#"
import os, signal, socket, subprocess, sys
count = 0

def arrive(port):
    return socket.create_connection(("127.0.0.1", port))

def counted():
    global count
    count += 1
    return count

def exits():
    print("about to leave", file=sys.stderr)
    os._exit(7)

def crashes():
    os.kill(os.getpid(), signal.SIGSEGV)

def hangs(port: int):
    with arrive(port):
        signal.pause()

kept = []

def leaves_a_child(port: int):
    connection = arrive(port)
    kept.append(connection)
    subprocess.Popen(["sleep", "1000"], pass_fds=[connection.fileno()])
    return "started"

def hangs_with_a_child(port: int):
    leaves_a_child(port)
    signal.pause()

def leaves_a_session(port: int):
    connection = arrive(port)
    kept.append(connection)
    subprocess.Popen(["sleep", "1000"], pass_fds=[connection.fileno()], start_new_session=True)
    return "started"

def hangs_with_a_session(port: int):
    leaves_a_session(port)
    signal.pause()

def tells():
    raise RuntimeError("the key is " + os.environ["PLANTED_API_KEY"])

def goes():
    print("my key:", os.environ["PLANTED_API_KEY"], file=sys.stderr)
    os._exit(1)
"#;

fn all() -> Folder {
    let children = ["leaves_a_child", "hangs_with_a_child", "leaves_a_session", "hangs_with_a_session"];
    folder(CODE, &[&["counted", "exits", "crashes", "hangs"][..], &children].concat())
}

#[tokio::test]
async fn a_process_that_dies_in_a_call_may_have_done_its_work_and_is_replaced() {
    let folder = all();
    let host = folder.start().await;
    assert_eq!(host.text(1, "counted", json!({})).await, "1");
    assert_eq!(host.text(2, "counted", json!({})).await, "1");
    let failure = host.failure(1, "exits", json!({})).await;
    assert!(failure.may_have_run);
    assert_eq!(
        failure.message,
        "the Python process exited (exit status: 7); its last output: about to leave"
    );
    assert_eq!(host.text(1, "counted", json!({})).await, "1", "a fresh process");
    assert_eq!(host.text(2, "counted", json!({})).await, "2", "another row is not disturbed");
    let failure = host.failure(1, "crashes", json!({})).await;
    assert!(failure.may_have_run && failure.message.contains("SIGSEGV"), "{}", failure.message);
    assert_eq!(host.text(1, "counted", json!({})).await, "1");
    host.close().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_ended_with_everything_that_it_started() {
    let mut folder = all();
    folder.settings.timeout = Some(Duration::from_secs(2));
    let host = folder.start().await;
    let meeting = Meeting::new().await;
    let call = host.failure(1, "hangs_with_a_child", json!({"port": meeting.port}));
    let (failure, connection) = tokio::join!(call, meeting.arrival());
    assert!(failure.may_have_run);
    assert_eq!(failure.message, "no answer within 2 s");
    gone(connection).await;
    host.close().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_ended_and_the_row_may_go_on() {
    let folder = all();
    let host = folder.start().await;
    let meeting = Meeting::new().await;
    let mut call = Box::pin(host.call(1, "hangs", json!({"port": meeting.port})));
    let connection = tokio::select! {
        _ = &mut call => panic!("it hangs"),
        connection = meeting.arrival() => connection,
    };
    drop(call);
    gone(connection).await;
    assert_eq!(host.text(1, "counted", json!({})).await, "1");
    host.close().await;
}

#[tokio::test]
async fn nothing_is_left_after_the_run_not_even_what_functions_started() {
    let folder = all();
    let host = folder.start().await;
    let meeting = Meeting::new().await;
    let mut connections = Vec::new();
    for row in [1, 2] {
        let call = host.text(row, "leaves_a_child", json!({"port": meeting.port}));
        connections.push(tokio::join!(call, meeting.arrival()).1);
    }
    ToolHost::release_row(&host.tools, 2).await;
    // A call that nobody polls any more, and that nobody has dropped either.
    let mut call = Box::pin(host.call(3, "hangs_with_a_child", json!({"port": meeting.port})));
    connections.push(tokio::select! {
        _ = &mut call => panic!("it hangs"),
        connection = meeting.arrival() => connection,
    });
    host.close().await;
    for connection in connections {
        gone(connection).await;
    }
    drop(call);
    let failure = host.failure(1, "counted", json!({})).await;
    assert_eq!((failure.message.as_str(), failure.may_have_run), ("the run has ended", false));
}

#[tokio::test]
async fn what_functions_started_in_a_session_of_its_own_ends_with_their_process() {
    let mut folder = all();
    folder.settings.timeout = Some(Duration::from_secs(2));
    let host = folder.start().await;
    let meeting = Meeting::new().await;
    // One whose call takes too long, and one whose process is killed at the end of the run.
    let call = host.failure(1, "hangs_with_a_session", json!({"port": meeting.port}));
    let (failure, connection) = tokio::join!(call, meeting.arrival());
    assert_eq!(failure.message, "no answer within 2 s");
    gone(connection).await;
    let call = host.text(1, "leaves_a_session", json!({"port": meeting.port}));
    let connection = tokio::join!(call, meeting.arrival()).1;
    host.close().await;
    gone(connection).await;
}

#[tokio::test]
async fn dropping_the_host_ends_its_processes_too() {
    let folder = all();
    let host = folder.start().await;
    let meeting = Meeting::new().await;
    let call = host.text(1, "leaves_a_child", json!({"port": meeting.port}));
    let connection = tokio::join!(call, meeting.arrival()).1;
    drop(host);
    gone(connection).await;
}

#[tokio::test]
async fn secrets_of_the_environment_are_in_no_message() {
    // The variable is set by a module, because a test must not change its own environment.
    let planted = format!("import os\nos.environ['PLANTED_API_KEY'] = 'sk-planted-value'\n{CODE}");
    let folder = folder(&planted, &["tells", "goes"]);
    let host = folder.start().await;
    assert_eq!(host.error(1, "tells", json!({})).await, "RuntimeError: the key is ***");
    let failure = host.failure(1, "goes", json!({})).await;
    assert!(failure.message.ends_with("its last output: my key: ***"), "{}", failure.message);
    host.close().await;
}

#[tokio::test]
async fn calls_of_one_row_take_turns_in_one_process() {
    let folder = all();
    let host = folder.start().await;
    let calls = (0..20).map(|_| host.text(1, "counted", json!({})));
    let counts = futures_util::future::join_all(calls).await;
    assert_eq!(counts, (1..=20).map(|count| count.to_string()).collect::<Vec<_>>());
    host.close().await;
}

#[tokio::test]
async fn a_variable_that_is_kept_back_does_not_reach_functions() {
    let code = "import os\ndef names():\n    return ' '.join(os.environ)\n";
    let mut folder = folder(code, &["names"]);
    let names = async |folder: &Folder| {
        let host = folder.start().await;
        let names = host.text(1, "names", json!({})).await;
        host.close().await;
        names
    };
    assert!(names(&folder).await.split(' ').any(|name| name == "PATH"));
    folder.settings.without = vec!["PATH".to_owned()];
    assert!(!names(&folder).await.split(' ').any(|name| name == "PATH"));
}
