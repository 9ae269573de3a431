//! Requests to the hub.

use rowmill_http::{
    HeaderMap, HeaderValue, HttpAnswer, HttpDocumentRequest, OriginCredential, RedirectPolicy,
    ResponseExtent, Url,
};
use rowmill_types::{Problem, ProblemCode};
use serde_json::Value;

use super::refusal::{RequestSubject, refusal_problem};
use crate::download::{ExpectedFile, FileDigest, fetch_answer};
use crate::fetch::Fetcher;
use crate::hub_address::HubAddress;

/// The maximum size of a document of the hub: a page of a file listing.
const MAX_DOCUMENT: usize = 64 * 1024 * 1024;

/// The hub, for requests about one address.
#[derive(Debug, Clone)]
pub(super) struct HubClient<'a> {
    pub(super) fetcher: &'a Fetcher<'a>,
    pub(super) address: &'a HubAddress,
    endpoint: Url,
    credential: Option<OriginCredential>,
}

/// A document of the hub.
#[derive(Debug)]
pub(super) struct HubDocument {
    pub(super) value: Value,
    /// The address of the next page.
    pub(super) next: Option<Url>,
}

/// What the hub reports about a file before it is downloaded.
#[derive(Debug, Default)]
pub(super) struct FileHead {
    /// The commit to which the revision currently points.
    pub(super) commit: Option<String>,
    pub(super) expected: ExpectedFile,
}

impl<'a> HubClient<'a> {
    pub(super) fn new(fetcher: &'a Fetcher<'a>, address: &'a HubAddress) -> Result<Self, Problem> {
        let text = &fetcher.settings.hub.endpoint;
        let endpoint = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some(endpoint) = endpoint else {
            let shown = crate::redacted_source(text);
            let message = format!("`HF_ENDPOINT` is not a URL: `{shown}`");
            return Err(Problem::new(ProblemCode::InvalidConfig, message)
                .hint("write it as `https://huggingface.co`, or unset it"));
        };
        let credential = match &fetcher.settings.hub.token {
            None => None,
            Some(token) => {
                let mut value =
                    HeaderValue::from_str(&format!("Bearer {}", token.reveal())).map_err(|_| {
                        Problem::new(
                            ProblemCode::InvalidConfig,
                            "the hub token has characters that are not valid in a token",
                        )
                        .hint("correct `HF_TOKEN`, or sign in again with the hub's own client")
                    })?;
                value.set_sensitive(true);
                Some(OriginCredential { server: endpoint.clone(), value })
            }
        };
        Ok(Self { fetcher, address, endpoint, credential })
    }

    /// The hub's address, which is part of what identifies its files.
    pub(super) fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// The credential, which is sent only to the hub's own server.
    pub(super) fn credential(&self) -> Option<OriginCredential> {
        self.credential.clone()
    }

    /// The address of an API request about the repository.
    pub(super) fn api_url(&self, parts: &[&str]) -> Url {
        let kind = self.address.kind.prefix().unwrap_or("models");
        self.extended(
            ["api", kind].into_iter().chain(self.address.repository.split('/')).chain(parts.iter().copied()),
        )
    }

    /// The address of a file of the repository.
    pub(super) fn file_url(&self, revision: &str, path: &str) -> Url {
        let repository = self.address.kind.prefix().into_iter().chain(self.address.repository.split('/'));
        self.extended(repository.chain(["resolve", revision]).chain(path.split('/')))
    }

    /// The web page of the repository.
    pub(super) fn page_url(&self) -> Url {
        self.extended(self.address.kind.prefix().into_iter().chain(self.address.repository.split('/')))
    }

    fn extended<'p>(&self, parts: impl Iterator<Item = &'p str>) -> Url {
        let mut url = self.endpoint.clone();
        // Addresses with a host, such as this one, have path segments.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    /// Requests a document.
    pub(super) async fn document(
        &self,
        url: Url,
        subject: RequestSubject<'_>,
    ) -> Result<HubDocument, Problem> {
        let retrieval = HttpDocumentRequest {
            credential: self.credential(),
            ..HttpDocumentRequest::whole_document(url.clone())
        };
        let name = self.address.to_string();
        let found = fetch_answer(self.fetcher, &retrieval, &name).await?;
        if found.answer.status() != 200 {
            return Err(refusal_problem(self, found.answer, subject).await);
        }
        let next = next_page(found.answer.headers(), &found.url);
        let body = found.answer.body(MAX_DOCUMENT).await.map_err(|failure| {
            let message = format!("incomplete response from the hub for `{name}`");
            Problem::new(ProblemCode::FetchFailed, message).cause(failure).hint("run the same command again")
        })?;
        let value = serde_json::from_slice(&body).map_err(|error| {
            let message = format!("`{}` does not respond like the hub", crate::redacted_source(url.as_str()));
            Problem::new(ProblemCode::FetchFailed, message).cause(error).hint("check `HF_ENDPOINT`")
        })?;
        Ok(HubDocument { value, next })
    }

    /// Requests the metadata of a file, without downloading it.
    pub(super) async fn head(&self, url: &Url, subject: RequestSubject<'_>) -> Result<FileHead, Problem> {
        let retrieval = HttpDocumentRequest {
            extent: ResponseExtent::Headers,
            redirects: RedirectPolicy::SameServer,
            credential: self.credential(),
            ..HttpDocumentRequest::whole_document(url.clone())
        };
        let found = fetch_answer(self.fetcher, &retrieval, &self.address.to_string()).await?;
        let mut head = FileHead::default();
        for (_, headers) in &found.passed {
            head.take(headers);
        }
        head.take(found.answer.headers());
        match found.answer.status() {
            200 => head.take_own(&found.answer),
            // Large files are stored on other servers, and the hub has already described them.
            300..=399 if found.answer.headers().contains_key("location") => {}
            // Some mirrors only answer GET.
            405 | 501 => {}
            _ => return Err(refusal_problem(self, found.answer, subject).await),
        }
        Ok(head)
    }
}

impl FileHead {
    /// Takes over the information in the hub's own headers.
    fn take(&mut self, headers: &HeaderMap) {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(commit) = text("x-repo-commit") {
            self.commit = Some(commit.to_owned());
        }
        if let Some(size) = text("x-linked-size").and_then(|size| size.parse().ok()) {
            self.expected.size = Some(size);
        }
        if let Some(digest) = text("x-linked-etag").and_then(FileDigest::from_entity_tag) {
            self.expected.digest = Some(digest);
        }
    }

    /// Takes over the information in the headers of the file itself, if the hub sends it: from other servers,
    /// an entity tag may look like a digest without being one.
    fn take_own(&mut self, answer: &HttpAnswer) {
        let text = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        if self.expected.size.is_none() {
            self.expected.size = text("content-length").and_then(|size| size.parse().ok());
        }
        if self.expected.digest.is_none() && self.commit.is_some() {
            self.expected.digest = text("etag").and_then(FileDigest::from_entity_tag);
        }
    }
}

/// The address in `<…>; rel="next"`.
fn next_page(headers: &HeaderMap, from: &Url) -> Option<Url> {
    let links = headers.get("link")?.to_str().ok()?;
    let next = links.split(',').find(|link| {
        link.split(';').skip(1).any(|part| matches!(part.trim(), "rel=\"next\"" | "rel=next"))
    })?;
    let address = next.split(';').next()?.trim().strip_prefix('<')?.strip_suffix('>')?;
    from.join(address).ok()
}
