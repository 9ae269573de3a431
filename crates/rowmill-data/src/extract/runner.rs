//! Runs extraction so that it cannot harm the run: with a time limit, and preferably in a separate process.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join3;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

use super::MOST_TEXT;
use super::child::{STACK, extract_guarded};

/// The time limit for one document.
const DEADLINE: Duration = Duration::from_secs(60);
/// How much of a child's standard error is kept.
const MOST_TALK: u64 = 64 * 1024;

/// How text is extracted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextExtractor {
    /// On a thread of this process, with a large stack. A malicious document can still use up memory, and one
    /// that exceeds the time limit is abandoned, but its thread continues.
    InProcess,
    /// In a separate process for each document, which is killed if it exceeds the time limit. It is started
    /// with the media type as its last argument, reads the document from standard input and calls
    /// [`run_extract_child`](super::run_extract_child).
    Child {
        /// The program.
        program: PathBuf,
        /// Its arguments, before the media type.
        args: Vec<String>,
    },
}

/// Extracts text from as many documents in parallel as there are cores.
#[derive(Debug)]
pub(crate) struct ExtractionPool {
    extractor: TextExtractor,
    room: Arc<Semaphore>,
}

impl ExtractionPool {
    pub(crate) fn new(extractor: TextExtractor) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self { extractor, room: Arc::new(Semaphore::new(cores)) }
    }

    /// The text of a document. The error is worded to follow the name of the file.
    pub(crate) async fn extract(&self, media_type: &str, bytes: Bytes) -> Result<String, String> {
        let turn = self.room.clone().acquire_owned().await;
        let turn = turn.map_err(|_| "cannot be read: the run has ended".to_owned())?;
        let work = async {
            match &self.extractor {
                TextExtractor::InProcess => in_thread(media_type.to_owned(), bytes, turn).await,
                TextExtractor::Child { program, args } => {
                    let text = in_child(program, args, media_type, &bytes).await;
                    drop(turn);
                    text
                }
            }
        };
        let late = || format!("took longer than {} s to read", DEADLINE.as_secs());
        timeout(DEADLINE, work).await.unwrap_or_else(|_| Err(late()))
    }
}

/// The thread keeps its permit until it ends, so that threads that never end cannot accumulate.
async fn in_thread(media_type: String, bytes: Bytes, turn: OwnedSemaphorePermit) -> Result<String, String> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        let text = extract_guarded(&media_type, &bytes);
        drop((bytes, turn));
        // Nobody waits any more for a text that took too long.
        drop(sender.send(text));
    };
    thread::Builder::new()
        .name("rowmill-extract".into())
        .stack_size(STACK)
        .spawn(work)
        .map_err(|error| format!("cannot be read: cannot start a thread: {error}"))?;
    receiver.await.unwrap_or_else(|_| Err("crashed the thread that read it".into()))
}

async fn in_child(program: &Path, args: &[String], media_type: &str, bytes: &[u8]) -> Result<String, String> {
    let not_started = |error: std::io::Error| {
        format!("cannot be read: the process that extracts text, `{}`, failed: {error}", program.display())
    };
    let mut command = Command::new(program);
    command.args(args).arg(media_type).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // An untrusted document must not get at the user's keys.
    #[cfg(unix)]
    command.env_clear();
    let mut child = command.spawn().map_err(not_started)?;
    let (Some(mut stdin), Some(stdout), Some(mut stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(not_started(std::io::ErrorKind::BrokenPipe.into()));
    };
    let feed = async move {
        // A child that ends early reports why, or has crashed; a broken pipe adds nothing to that.
        drop(stdin.write_all(bytes).await);
    };
    let listen = async move {
        let mut text = Vec::new();
        stdout.take(MOST_TEXT as u64 + 1).read_to_end(&mut text).await.map(|_| text)
    };
    let hear = async move {
        let mut talk = Vec::new();
        let heard = (&mut stderr).take(MOST_TALK).read_to_end(&mut talk).await;
        // The rest must be read too, or the child would wait forever.
        let rest = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        heard.and(rest).map(|_| talk)
    };
    let ((), text, talk) = join3(feed, listen, hear).await;
    let text = text.map_err(not_started)?;
    if text.len() > MOST_TEXT {
        return Err(format!("has more than {} MiB of text", MOST_TEXT >> 20));
    }
    let status = child.wait().await.map_err(not_started)?;
    if status.success() {
        return String::from_utf8(text).map_err(|_| "has a text that is not valid UTF-8".into());
    }
    Err(reason(status, &talk.unwrap_or_default()))
}

/// Why a child failed: its last line, unless the system killed it.
fn reason(status: ExitStatus, talk: &[u8]) -> String {
    let talk = String::from_utf8_lossy(talk);
    let last = talk.lines().rev().find(|line| !line.trim().is_empty());
    match (status.code(), last) {
        (Some(_), Some(line)) => line.trim().to_owned(),
        (Some(code), None) => {
            format!("cannot be read: the process that extracts text ended with code {code}")
        }
        (None, _) => "crashed the process that read it: it is broken, or needs too much memory".into(),
    }
}
