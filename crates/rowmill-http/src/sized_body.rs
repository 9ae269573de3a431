//! Request bodies that are sent in pieces, so that they need not fit into memory.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

/// A body of a known length that is made while it is sent, for example from a file.
pub struct SizedBody {
    pub(crate) length: u64,
    pub(crate) pieces: SentPieces,
}

impl SizedBody {
    /// A body of `length` bytes. If `pieces` has more or fewer, the request fails.
    #[must_use]
    pub fn new(length: u64, pieces: BoxStream<'static, io::Result<Bytes>>) -> Self {
        let progress = SendProgress(Arc::new(Mutex::new(Instant::now())));
        Self { length, pieces: SentPieces { left: length, pieces, progress } }
    }

    /// The pieces, which end with an error if they do not have the announced length.
    #[must_use]
    pub fn into_pieces(self) -> BoxStream<'static, io::Result<Bytes>> {
        self.pieces.boxed()
    }

    /// When the last piece was taken.
    pub(crate) fn progress(&self) -> SendProgress {
        self.pieces.progress.clone()
    }
}

impl fmt::Debug for SizedBody {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SizedBody").field("length", &self.length).finish_non_exhaustive()
    }
}

/// When the last piece of a body was taken.
#[derive(Debug, Clone)]
pub(crate) struct SendProgress(Arc<Mutex<Instant>>);

impl SendProgress {
    pub(crate) fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// The pieces of a body, which note when they are taken and fail if they do not have the length that was promised.
pub(crate) struct SentPieces {
    left: u64,
    pieces: BoxStream<'static, io::Result<Bytes>>,
    progress: SendProgress,
}

impl Stream for SentPieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = ready!(self.pieces.poll_next_unpin(context));
        self.progress.note();
        Poll::Ready(match piece {
            Some(Ok(piece)) => Some(match self.left.checked_sub(piece.len() as u64) {
                Some(left) => {
                    self.left = left;
                    Ok(piece)
                }
                None => Err(io::Error::other("the body is longer than was announced")),
            }),
            Some(Err(error)) => Some(Err(error)),
            None if self.left > 0 => {
                self.left = 0;
                Some(Err(io::Error::other("the body is shorter than was announced")))
            }
            None => None,
        })
    }
}

/// The body of a request of the direct client.
pub(crate) enum OutgoingBody {
    Whole(Full<Bytes>),
    Pieces(SentPieces),
}

impl OutgoingBody {
    pub(crate) fn whole(body: Bytes) -> Self {
        Self::Whole(Full::new(body))
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut *self {
            Self::Whole(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            Self::Pieces(pieces) => {
                pieces.poll_next_unpin(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Pieces(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Pieces(pieces) => SizeHint::with_exact(pieces.left),
        }
    }
}

/// Waits for the head of a response; `None` if it does not arrive within `limit` of the start, or of the last piece of the
/// body.
pub(crate) async fn head_in_time<T>(
    limit: Duration,
    progress: Option<SendProgress>,
    sending: impl Future<Output = T>,
) -> Option<T> {
    let mut sending = pin!(sending);
    let mut since = Instant::now();
    loop {
        if let Ok(sent) = tokio::time::timeout(limit.saturating_sub(since.elapsed()), &mut sending).await {
            return Some(sent);
        }
        since = progress.as_ref().map(SendProgress::last).filter(|last| *last > since)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_long_upload_is_in_time_as_long_as_it_goes_on() {
        let body = SizedBody::new(0, futures_util::stream::empty().boxed());
        let progress = body.progress();
        let going = async {
            for _ in 0..9 {
                tokio::time::sleep(LIMIT * 9 / 10).await;
                progress.note();
            }
        };
        assert_eq!(head_in_time(LIMIT, Some(body.progress()), going).await, Some(()));
        let start = Instant::now();
        let stalled = async {
            tokio::time::sleep(LIMIT / 2).await;
            progress.note();
            std::future::pending::<()>().await;
        };
        assert_eq!(head_in_time(LIMIT, Some(body.progress()), stalled).await, None);
        assert_eq!(start.elapsed(), LIMIT + LIMIT / 2);
        assert_eq!(head_in_time(Duration::MAX, None, async { 7 }).await, Some(7));
        assert_eq!(head_in_time(LIMIT, None, std::future::pending::<()>()).await, None);
    }
}
