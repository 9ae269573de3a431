//! A response and its body, from either client.

use bytes::{Bytes, BytesMut};
use http::Version;
use http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::{HttpFailure, HttpTimeouts};

/// A response whose head has arrived.
#[derive(Debug)]
pub struct HttpAnswer {
    pub(crate) inner: HttpAnswerBody,
    pub(crate) timeouts: HttpTimeouts,
}

#[derive(Debug)]
pub(crate) enum HttpAnswerBody {
    Direct(http::Response<Incoming>),
    Proxied(reqwest::Response),
}

impl HttpAnswer {
    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        match &self.inner {
            HttpAnswerBody::Direct(response) => response.status().as_u16(),
            HttpAnswerBody::Proxied(response) => response.status().as_u16(),
        }
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        match &self.inner {
            HttpAnswerBody::Direct(response) => response.headers(),
            HttpAnswerBody::Proxied(response) => response.headers(),
        }
    }

    /// Whether the end of the body is marked, so that a body which breaks off is an error. Otherwise, the body ends when
    /// the connection does.
    #[must_use]
    pub fn marks_end(&self) -> bool {
        let version = match &self.inner {
            HttpAnswerBody::Direct(response) => response.version(),
            HttpAnswerBody::Proxied(response) => response.version(),
        };
        let headers = self.headers();
        version >= Version::HTTP_2
            || headers.contains_key(CONTENT_LENGTH)
            || headers.contains_key(TRANSFER_ENCODING)
    }

    /// The next piece of the body, `None` at its end.
    ///
    /// # Errors
    ///
    /// The connection broke before the end of the body, or nothing arrived for too long.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpFailure> {
        let timeouts = self.timeouts;
        tokio::time::timeout(timeouts.idle, self.next())
            .await
            .unwrap_or_else(|_| Err(timeouts.idle_timeout_failure()))
    }

    async fn next(&mut self) -> Result<Option<Bytes>, HttpFailure> {
        let response = match &mut self.inner {
            HttpAnswerBody::Proxied(response) => return Ok(response.chunk().await?),
            HttpAnswerBody::Direct(response) => response,
        };
        while let Some(frame) = response.body_mut().frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The whole body; an error once it exceeds `limit` bytes.
    ///
    /// # Errors
    ///
    /// The connection broke before the end of the body, nothing arrived for too long, or the body is larger than
    /// `limit`.
    pub async fn body(mut self, limit: usize) -> Result<Bytes, HttpFailure> {
        let too_large = || HttpFailure::Broken(format!("the answer is larger than {limit} bytes"));
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else {
            return if first.len() > limit { Err(too_large()) } else { Ok(first) };
        };
        let mut whole = BytesMut::with_capacity((first.len() + second.len()) * 2);
        whole.extend_from_slice(&first);
        whole.extend_from_slice(&second);
        while let Some(more) = self.chunk().await? {
            whole.extend_from_slice(&more);
            if whole.len() > limit {
                return Err(too_large());
            }
        }
        Ok(whole.freeze())
    }
}
