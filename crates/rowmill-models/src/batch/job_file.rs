//! The file of a job, as the body of a request.

use std::io;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, BoxStream, StreamExt};
use rowmill_core::ports::JobFile;
use rowmill_http::SizedBody;
use rowmill_types::CallError;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::job_client::internal;

/// How much is read at once.
const PIECE: usize = 256 * 1024;

/// The file of a job between two texts.
pub(super) async fn framed_body(job: &JobFile, head: Vec<u8>, tail: Vec<u8>) -> Result<SizedBody, CallError> {
    let length = (head.len() + tail.len()) as u64 + job.bytes;
    let file = open(job).await?;
    Ok(SizedBody::new(length, framed(head, file_pieces(file), tail)))
}

/// The requests of a job as the elements of an array, between two texts. Each line becomes an element: line breaks
/// become commas, except for the last, and so the length stays the same.
pub(super) async fn array_body(job: &JobFile, head: Vec<u8>, tail: Vec<u8>) -> Result<SizedBody, CallError> {
    let length = (head.len() + tail.len()) as u64 + job.bytes;
    let file = open(job).await?;
    let last = job.bytes.saturating_sub(1);
    let mut start = 0;
    let elements = file_pieces(file).map(move |piece| {
        let mut piece = BytesMut::from(piece?);
        for (at, byte) in piece.iter_mut().enumerate() {
            if *byte == b'\n' && start + (at as u64) < last {
                *byte = b',';
            }
        }
        start += piece.len() as u64;
        Ok(piece.freeze())
    });
    Ok(SizedBody::new(length, framed(head, elements.boxed(), tail)))
}

type Pieces = BoxStream<'static, io::Result<Bytes>>;

fn framed(head: Vec<u8>, middle: Pieces, tail: Vec<u8>) -> Pieces {
    let piece = |text: Vec<u8>| stream::iter((!text.is_empty()).then(|| Ok(Bytes::from(text))));
    piece(head).chain(middle).chain(piece(tail)).boxed()
}

/// Opens the file, which must have the length that the job says.
async fn open(job: &JobFile) -> Result<File, CallError> {
    let unreadable = |error: io::Error| internal(&format!("cannot read `{}`: {error}", job.path.display()));
    let file = File::open(&job.path).await.map_err(unreadable)?;
    let length = file.metadata().await.map_err(unreadable)?.len();
    if length != job.bytes {
        let (path, bytes) = (job.path.display(), job.bytes);
        return Err(internal(&format!("`{path}` has {length} bytes instead of {bytes}")));
    }
    Ok(file)
}

fn file_pieces(file: File) -> Pieces {
    stream::try_unfold(file, |mut file| async move {
        let mut piece = BytesMut::with_capacity(PIECE);
        let read = file.read_buf(&mut piece).await?;
        Ok((read > 0).then(|| (piece.freeze(), file)))
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job with lines of these lengths.
    fn job(folder: &std::path::Path, lengths: &[usize]) -> (JobFile, Vec<String>) {
        let lines: Vec<String> =
            lengths.iter().map(|length| format!("\"{}\"", "x".repeat(*length))).collect();
        let content = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let path = folder.join("job.jsonl");
        std::fs::write(&path, &content).unwrap();
        let (requests, bytes) = (lines.len() as u64, content.len() as u64);
        (JobFile { key: "k".to_owned(), path, requests, bytes }, lines)
    }

    async fn collected(pieces: Pieces) -> String {
        let pieces: Vec<io::Result<Bytes>> = pieces.collect().await;
        let bytes: Vec<Bytes> = pieces.into_iter().collect::<io::Result<_>>().unwrap();
        String::from_utf8(bytes.concat()).unwrap()
    }

    #[tokio::test]
    async fn lines_become_elements_wherever_the_file_is_cut_into_pieces() {
        let folder = tempfile::tempdir().unwrap();
        for lengths in [&[1][..], &[1, 2, 3], &[PIECE - 3, 1, PIECE - 6, 7, 2 * PIECE, 0], &[PIECE - 4, 9]] {
            let (job, lines) = job(folder.path(), lengths);
            let body = array_body(&job, b"[".to_vec(), b"]".to_vec()).await.unwrap();
            let expected = format!("[{}\n]", lines.join(","));
            assert_eq!(collected(body.into_pieces()).await, expected, "{lengths:?}");
            let body = framed_body(&job, b"<".to_vec(), b">".to_vec()).await.unwrap();
            let expected = format!("<{}\n>", lines.join("\n"));
            assert_eq!(collected(body.into_pieces()).await, expected, "{lengths:?}");
        }
    }
}
