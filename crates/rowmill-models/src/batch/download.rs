//! Downloads results into a file, which has its name only once it is complete.

use std::io;
use std::path::{Path, PathBuf};

use rowmill_http::{HttpAnswer, Url, header};
use rowmill_types::{CallError, CallFailure, private_file_options};
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, BufWriter};

use super::job_client::{JobClient, about_one_job, internal};

/// Responses come in small pieces, and every write to a file is passed to another thread.
const BUFFER: usize = 256 * 1024;

/// Downloads all sources one after the other into the file `to`, with each line on its own.
pub(super) async fn download_all(client: &JobClient, sources: &[Url], to: &Path) -> Result<(), CallError> {
    let mut part = PartFile::create(to).await?;
    for url in sources {
        let answer = client.file(url).await.map_err(about_one_job)?;
        part.append(client, url, answer).await?;
    }
    part.complete(to).await
}

/// A file that is being written. It is deleted unless it is completed.
#[derive(Debug)]
struct PartFile {
    path: PathBuf,
    file: BufWriter<File>,
    /// The last byte that was written.
    last: Option<u8>,
}

impl PartFile {
    async fn create(to: &Path) -> Result<Self, CallError> {
        let mut name = to.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let path = to.with_file_name(name);
        let mut options = private_file_options();
        options.write(true).create(true).truncate(true);
        let opened = tokio::fs::OpenOptions::from(options).open(&path).await;
        let file = opened.map_err(|error| unwritable(&path, &error))?;
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Self { path, file, last: None })
    }

    /// Appends the body of a response, and refuses one that was cut.
    async fn append(
        &mut self,
        client: &JobClient,
        url: &Url,
        mut answer: HttpAnswer,
    ) -> Result<(), CallError> {
        let announced = answer.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let announced = announced.and_then(|text| text.parse::<u64>().ok());
        let marks_end = answer.marks_end();
        if !matches!(self.last, None | Some(b'\n')) {
            self.write(b"\n").await?;
        }
        let mut received = 0;
        while let Some(piece) =
            answer.chunk().await.map_err(|failure| client.reporter(url).transport_error(&failure))?
        {
            received += piece.len() as u64;
            self.write(&piece).await?;
        }
        let cut = match announced {
            Some(announced) if announced != received => format!("{received} of {announced} bytes arrived"),
            None if !marks_end && received > 0 && self.last != Some(b'\n') => {
                format!("{received} bytes arrived, which end inside of a line")
            }
            _ => return Ok(()),
        };
        let what = format!("the download of results was cut: {cut}");
        Err(CallError::new(CallFailure::ConnectionBroken, what))
    }

    async fn write(&mut self, piece: &[u8]) -> Result<(), CallError> {
        self.file.write_all(piece).await.map_err(|error| unwritable(&self.path, &error))?;
        self.last = piece.last().copied().or(self.last);
        Ok(())
    }

    async fn complete(mut self, to: &Path) -> Result<(), CallError> {
        let failed = |error: io::Error| unwritable(to, &error);
        self.file.flush().await.map_err(failed)?;
        self.file.get_ref().sync_all().await.map_err(failed)?;
        tokio::fs::rename(&self.path, to).await.map_err(failed)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // Once it is completed, it no longer has this name.
        drop(std::fs::remove_file(&self.path));
    }
}

fn unwritable(path: &Path, error: &io::Error) -> CallError {
    internal(&format!("cannot write `{}`: {error}", path.display()))
}
