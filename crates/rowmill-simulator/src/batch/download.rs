//! Answers of the batch APIs, and how files are sent.

use std::io::Read;
use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::stored_bytes::StoredBytes;
use crate::answer_hold::AnswerHold;
use crate::http_request;
use crate::outgoing_answer::OutgoingAnswer;

/// The answer to a request of a batch API.
#[derive(Debug)]
pub(crate) enum BatchAnswer {
    Document(OutgoingAnswer),
    File(BatchDownload),
    /// The connection is closed without an answer.
    Lost,
}

/// A file that is sent.
#[derive(Debug)]
pub(crate) struct BatchDownload {
    pub(crate) bytes: Arc<StoredBytes>,
    pub(crate) damage: DownloadDamage,
}

/// What is done to a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DownloadDamage {
    None,
    /// The connection is closed after half of it.
    Cut,
    /// Half of it is sent, and what becomes of the connection is decided later.
    Half,
    /// Its pieces are sent one by one.
    Slow,
}

/// Pieces of a download that is not slow.
const PIECE: u64 = 1 << 18;
/// The number of pieces of one that is.
const SLOW_PIECES: u64 = 64;

/// Sends a file; returns whether the connection can serve another request.
pub(crate) async fn deliver_download(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    download: &BatchDownload,
    gate: &AnswerHold,
) -> bool {
    let length = download.bytes.length();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: {length}\r\n\r\n"
    );
    let (limit, piece) = match download.damage {
        DownloadDamage::None => (length, PIECE),
        DownloadDamage::Cut | DownloadDamage::Half => (length / 2, PIECE),
        DownloadDamage::Slow => (length, length.div_ceil(SLOW_PIECES).clamp(1, PIECE)),
    };
    let Ok(file) = download.bytes.open() else { return false };
    let mut file = file.into_inner().take(limit);
    if stream.write_all(head.as_bytes()).await.is_err() {
        return false;
    }
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match file.by_ref().take(piece).read_to_end(&mut bytes) {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => return false,
        }
        if download.damage == DownloadDamage::Slow {
            tokio::select! {
                () = gate.wait_for_byte() => {}
                () = http_request::closed(stream, buffer) => return false,
            }
        }
        if stream.write_all(&bytes).await.is_err() {
            return false;
        }
    }
    if download.damage == DownloadDamage::Cut {
        // A client that is already gone needs no orderly shutdown.
        drop(stream.shutdown().await);
        return false;
    }
    true
}
