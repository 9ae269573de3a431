//! Request bodies that are sent in pieces, so that they need not fit into memory.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

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
