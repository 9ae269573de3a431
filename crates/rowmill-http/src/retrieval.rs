//! Asking for a document, and going where the answer points.

use http::Method;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION};
use reqwest::Url;

use crate::{Answer, HttpClient, HttpFailure};

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 10;

/// A document that is asked for, byte for byte as it is kept: without packing for the way.
#[derive(Debug, Clone)]
pub struct Retrieval {
    /// The whole document, or only its headers.
    pub extent: Extent,
    /// Where to begin.
    pub url: Url,
    /// Headers that every server on the way may see.
    pub headers: HeaderMap,
    /// What only one server may see.
    pub credential: Option<Credential>,
    /// How far redirects are followed.
    pub redirects: Redirects,
}

/// How much of a document is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Headers and body.
    Whole,
    /// Headers only.
    Headers,
}

/// How far redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// To wherever they lead.
    Anywhere,
    /// Not to another server; the redirect is then the answer.
    SameServer,
}

/// A credential and the server that it is for: scheme, host and port.
#[derive(Debug, Clone)]
pub struct Credential {
    /// An address of the server.
    pub server: Url,
    /// The value of the `Authorization` header; should be marked sensitive.
    pub value: HeaderValue,
}

/// A document's answer, and the answers on the way to it.
#[derive(Debug)]
pub struct Retrieved {
    /// The last answer.
    pub answer: Answer,
    /// Where it came from.
    pub url: Url,
    /// The headers of the redirects on the way, with the address that sent them.
    pub passed: Vec<(Url, HeaderMap)>,
}

impl HttpClient {
    /// Asks for a document with GET or HEAD, following up to ten redirects. A redirect that
    /// is not followed, or leads nowhere, is the answer.
    ///
    /// # Errors
    ///
    /// No answer's head came, or not in time. Any status is an answer.
    pub async fn retrieve(&self, retrieval: &Retrieval) -> Result<Retrieved, HttpFailure> {
        let mut url = retrieval.url.clone();
        let mut passed = Vec::new();
        loop {
            let answer = self.send_empty(retrieval.method(), &url, retrieval.headers_for(&url)).await?;
            let next = target(&answer, &url).filter(|next| match retrieval.redirects {
                Redirects::Anywhere => true,
                Redirects::SameServer => next.origin() == url.origin(),
            });
            let Some(next) = next.filter(|_| passed.len() < MAX_REDIRECTS) else {
                return Ok(Retrieved { answer, url, passed });
            };
            passed.push((url, answer.headers().clone()));
            url = next;
        }
    }
}

impl Retrieval {
    /// Asks for the whole of a document, wherever it is.
    #[must_use]
    pub fn whole(url: Url) -> Self {
        Self {
            extent: Extent::Whole,
            url,
            headers: HeaderMap::new(),
            credential: None,
            redirects: Redirects::Anywhere,
        }
    }

    fn method(&self) -> Method {
        match self.extent {
            Extent::Whole => Method::GET,
            Extent::Headers => Method::HEAD,
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

/// Where a redirect points, if this is one and it points to something that can be asked.
fn target(answer: &Answer, from: &Url) -> Option<Url> {
    if !matches!(answer.status(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = answer.headers().get(LOCATION)?;
    let target = from.join(std::str::from_utf8(location.as_bytes()).ok()?).ok()?;
    matches!(target.scheme(), "http" | "https").then_some(target)
}
