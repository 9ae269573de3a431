//! A response and its body, from either client.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::{HttpFailure, Timeouts};

/// A response whose head has arrived.
#[derive(Debug)]
pub struct Answer {
    pub(crate) inner: Inner,
    pub(crate) timeouts: Timeouts,
}

#[derive(Debug)]
pub(crate) enum Inner {
    Direct(http::Response<Incoming>),
    Proxied(reqwest::Response),
}

impl Answer {
    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        match &self.inner {
            Inner::Direct(response) => response.status().as_u16(),
            Inner::Proxied(response) => response.status().as_u16(),
        }
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        match &self.inner {
            Inner::Direct(response) => response.headers(),
            Inner::Proxied(response) => response.headers(),
        }
    }

    /// The next piece of the body, `None` at its end.
    ///
    /// # Errors
    ///
    /// The connection broke before the end of the body, or nothing arrived for too long.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpFailure> {
        let timeouts = self.timeouts;
        tokio::time::timeout(timeouts.idle, self.next()).await.unwrap_or_else(|_| Err(timeouts.stalled()))
    }

    async fn next(&mut self) -> Result<Option<Bytes>, HttpFailure> {
        let response = match &mut self.inner {
            Inner::Proxied(response) => return Ok(response.chunk().await?),
            Inner::Direct(response) => response,
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
