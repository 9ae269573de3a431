//! Requests documents and follows redirects.

use http::Method;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION};
use reqwest::Url;

use crate::{HttpAnswer, HttpClient, HttpFailure, RequestTarget};

/// The maximum number of redirects.
const MAX_REDIRECTS: usize = 10;

/// A request for a document, byte for byte as it is stored: without transfer compression.
#[derive(Debug, Clone)]
pub struct HttpDocumentRequest {
    /// The whole document, or only its headers.
    pub extent: ResponseExtent,
    /// The address to start from.
    pub url: Url,
    /// Headers that every server on the way may see.
    pub headers: HeaderMap,
    /// A credential for a single server.
    pub credential: Option<OriginCredential>,
    /// Which redirects are followed.
    pub redirects: RedirectPolicy,
}

/// The extent of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseExtent {
    /// Headers and body.
    Whole,
    /// Headers only.
    Headers,
}

/// Which redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectPolicy {
    /// All redirects.
    Anywhere,
    /// None to another server; the redirect is then the response.
    SameServer,
}

/// A credential and the server that it is for: scheme, host and port.
#[derive(Debug, Clone)]
pub struct OriginCredential {
    /// An address of the server.
    pub server: Url,
    /// The value of the `Authorization` header; should be marked sensitive.
    pub value: HeaderValue,
}

/// The response for a document, and the redirects before it.
#[derive(Debug)]
pub struct HttpDocumentResponse {
    /// The final response.
    pub answer: HttpAnswer,
    /// Its address.
    pub url: Url,
    /// The headers of the redirects, with the addresses that sent them.
    pub passed: Vec<(Url, HeaderMap)>,
}

impl HttpClient {
    /// Requests a document with GET or HEAD, following up to ten redirects. A redirect that is not followed, or leads
    /// nowhere, is the response.
    ///
    /// # Errors
    ///
    /// The head of the response did not arrive, or not in time. Any status counts as a response.
    pub async fn retrieve(
        &self,
        retrieval: &HttpDocumentRequest,
    ) -> Result<HttpDocumentResponse, HttpFailure> {
        let mut url = retrieval.url.clone();
        let mut passed = Vec::new();
        loop {
            let answer = self.send_empty(retrieval.method(), &url, retrieval.headers_for(&url)).await?;
            let next = target(&answer, &url).filter(|next| match retrieval.redirects {
                RedirectPolicy::Anywhere => true,
                RedirectPolicy::SameServer => next.origin() == url.origin(),
            });
            let Some(next) = next.filter(|_| passed.len() < MAX_REDIRECTS) else {
                return Ok(HttpDocumentResponse { answer, url, passed });
            };
            passed.push((url, answer.headers().clone()));
            url = next;
        }
    }
}

impl HttpClient {
    /// Requests what is at a target with GET, byte for byte as it is stored, following up to ten redirects. Only the
    /// target's own server gets its headers.
    ///
    /// # Errors
    ///
    /// The head of the response did not arrive, or not in time. Any status counts as a response.
    pub async fn retrieve_target(&self, start: &RequestTarget) -> Result<HttpAnswer, HttpFailure> {
        let mut url = start.url().clone();
        for _ in 0..=MAX_REDIRECTS {
            let is_own = url.origin() == start.url().origin();
            let mut headers = if is_own { start.headers().clone() } else { HeaderMap::new() };
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            let answer = self.send_empty(Method::GET, &url, headers).await?;
            let Some(next) = target(&answer, &url) else { return Ok(answer) };
            url = next;
        }
        Err(HttpFailure::Broken(format!("more than {MAX_REDIRECTS} redirects")))
    }
}

impl HttpDocumentRequest {
    /// Requests a complete document, following all redirects.
    #[must_use]
    pub fn whole_document(url: Url) -> Self {
        Self {
            extent: ResponseExtent::Whole,
            url,
            headers: HeaderMap::new(),
            credential: None,
            redirects: RedirectPolicy::Anywhere,
        }
    }

    fn method(&self) -> Method {
        match self.extent {
            ResponseExtent::Whole => Method::GET,
            ResponseExtent::Headers => Method::HEAD,
        }
    }

    fn headers_for(&self, url: &Url) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(credential) = &self.credential
            && credential.server.origin() == url.origin()
        {
            headers.insert(AUTHORIZATION, credential.value.clone());
        }
        headers
    }
}

/// The target of a redirect, if the response is one and its target can be requested.
fn target(answer: &HttpAnswer, from: &Url) -> Option<Url> {
    if !matches!(answer.status(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = answer.headers().get(LOCATION)?;
    let target = from.join(std::str::from_utf8(location.as_bytes()).ok()?).ok()?;
    matches!(target.scheme(), "http" | "https").then_some(target)
}
