//! Records the bytes that rowmill sends, so that `wrk` can send the same.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::TaskFailure;
use crate::bench::measure::measure_cost;

const ANSWER: &str = concat!(
    r#"{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","#,
    r#""message":{"role":"assistant","content":"ok"}}],"#,
    r#""usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#
);

/// The requests that `command` sends to a server; it receives the server's address.
///
/// In the returned requests the server's address is replaced by `address`.
pub(super) fn requests(
    command: impl FnOnce(&str) -> Command,
    address: &str,
) -> Result<Vec<String>, TaskFailure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let own = listener.local_addr()?.to_string();
    let taken = Mutex::new(Vec::new());
    let ended = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            for stream in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::Acquire) {
                    break;
                }
                let taken = &taken;
                scope.spawn(move || serve(stream, taken));
            }
        });
        let outcome = measure_cost(&mut command(&format!("http://{own}/v1")));
        ended.store(true, Ordering::Release);
        // Wakes the listener, so that it notices the end.
        drop(TcpStream::connect(&own));
        outcome
    });
    outcome?;
    let taken = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(taken.into_iter().map(|request: String| request.replace(&own, address)).collect())
}

/// Answers calls until the client disconnects.
fn serve(mut stream: TcpStream, taken: &Mutex<Vec<String>>) {
    let mut buffer = Vec::new();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{ANSWER}",
        ANSWER.len()
    );
    loop {
        while let Some(request) = first_request(&mut buffer) {
            taken.lock().unwrap_or_else(PoisonError::into_inner).push(request);
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
        let mut chunk = [0; 16 * 1024];
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(length) => buffer.extend_from_slice(chunk.get(..length).unwrap_or_default()),
        }
    }
}

/// Removes a complete request from the start of the buffer, if there is one.
fn first_request(buffer: &mut Vec<u8>) -> Option<String> {
    let end = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(buffer.get(..end)?).to_lowercase();
    let length: usize =
        head.lines().find_map(|line| line.strip_prefix("content-length:"))?.trim().parse().ok()?;
    let whole = end + length;
    let request = String::from_utf8_lossy(buffer.get(..whole)?).into_owned();
    buffer.drain(..whole);
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_off_one_by_one_and_a_part_waits() {
        let one = "POST /v1 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
        let mut buffer = format!("{one}{one}POST /v1 HTTP/1.1\r\ncontent-length: 3\r\n\r\nab").into_bytes();
        assert_eq!(first_request(&mut buffer).as_deref(), Some(one));
        assert_eq!(first_request(&mut buffer).as_deref(), Some(one));
        assert_eq!(first_request(&mut buffer), None);
        assert!(buffer.ends_with(b"ab"));
    }
}
