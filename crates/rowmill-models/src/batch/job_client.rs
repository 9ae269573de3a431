//! The HTTP calls of batch APIs.

use bytes::Bytes;
use rowmill_http::{
    HeaderMap, HeaderName, HeaderValue, HttpAnswer, HttpClient, Method, RequestTarget, SizedBody, Url,
};
use rowmill_types::{CallError, CallFailure};
use serde_json::Value;

use crate::call_error::CallErrorReporter;
use crate::connection::ProviderConnection;
use crate::http_model::ANSWER_LIMIT;
use crate::wire_protocol::UnreadableAnswer;

/// Makes the calls of a batch API: one HTTP call each.
#[derive(Debug)]
pub(super) struct JobClient {
    pub(super) http: HttpClient,
    pub(super) connection: ProviderConnection,
    /// The key and the headers of the configuration.
    headers: HeaderMap,
    /// What all addresses begin with.
    base: Url,
}

/// What a call sends.
#[derive(Debug)]
pub(super) enum CallBody<'a> {
    Empty,
    Json(&'a Value),
}

impl JobClient {
    pub(super) fn new(
        http: &HttpClient,
        connection: &ProviderConnection,
        mut headers: HeaderMap,
        base: Url,
    ) -> Self {
        headers.remove("content-type");
        Self { http: http.clone(), connection: connection.clone(), headers, base }
    }

    /// The address below the base URL; each part is one segment of the path.
    pub(super) fn url<'a>(&self, parts: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    /// The headers of every call, with some more.
    pub(super) fn headers_with(&self, more: &[(&'static str, &str)]) -> Result<HeaderMap, CallError> {
        let mut headers = self.headers.clone();
        for (name, value) in more {
            let value = HeaderValue::from_str(value).map_err(|error| internal(&error.to_string()))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
    }

    /// Makes a call and returns its JSON.
    pub(super) async fn json(
        &self,
        method: Method,
        url: Url,
        body: CallBody<'_>,
    ) -> Result<Value, CallError> {
        let answer = self.send(method, url.clone(), body).await?;
        self.read_json(&url, answer).await
    }

    /// Makes a call whose answer says nothing.
    pub(super) async fn act(&self, method: Method, url: Url, body: CallBody<'_>) -> Result<(), CallError> {
        self.send(method, url, body).await.map(drop)
    }

    async fn send(&self, method: Method, url: Url, body: CallBody<'_>) -> Result<HttpAnswer, CallError> {
        let (headers, body) = match body {
            CallBody::Json(value) => {
                (self.headers_with(&[("content-type", "application/json")])?, value.to_string().into())
            }
            // Some servers refuse a POST that does not say that it has no body.
            CallBody::Empty if method == Method::POST => {
                (self.headers_with(&[("content-length", "0")])?, Bytes::new())
            }
            CallBody::Empty => (self.headers.clone(), Bytes::new()),
        };
        let target = self.target(url, headers)?;
        let answer = self.http.send(method, &target, body).await;
        self.accepted(target.url(), answer).await
    }

    /// Makes a call with JSON and headers of its own.
    pub(super) async fn post_with(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        body: &Value,
    ) -> Result<HttpAnswer, CallError> {
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let target = self.target(url.clone(), headers)?;
        let answer = self.http.send(Method::POST, &target, body.to_string().into()).await;
        self.accepted(url, answer).await
    }

    /// Sends a body in pieces.
    pub(super) async fn send_sized(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: SizedBody,
    ) -> Result<HttpAnswer, CallError> {
        let target = self.target(url.clone(), headers)?;
        let answer = self.http.send_sized(Method::POST, &target, body).await;
        self.accepted(url, answer).await
    }

    /// Requests a file.
    pub(super) async fn file(&self, url: &Url) -> Result<HttpAnswer, CallError> {
        let target = self.target(url.clone(), self.headers_with(&[("accept", "*/*")])?)?;
        let answer = self.http.retrieve_target(&target).await;
        self.accepted(url, answer).await
    }

    /// Deletes something; what is gone already counts as deleted.
    pub(super) async fn delete(&self, url: Url) -> Result<(), CallError> {
        match self.act(Method::DELETE, url, CallBody::Empty).await {
            Err(error) if matches!(error.status, Some(404 | 410)) => Ok(()),
            result => result,
        }
    }

    /// Turns a response without a success status into an error.
    async fn accepted(
        &self,
        url: &Url,
        answer: Result<HttpAnswer, rowmill_http::HttpFailure>,
    ) -> Result<HttpAnswer, CallError> {
        let answer = answer.map_err(|failure| self.reporter(url).transport_error(&failure))?;
        let status = answer.status();
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let headers = answer.headers().clone();
        let body = answer.body(ANSWER_LIMIT).await.unwrap_or_default();
        Err(self.reporter(url).status_error(status, &headers, &body))
    }

    pub(super) async fn read_json(&self, url: &Url, answer: HttpAnswer) -> Result<Value, CallError> {
        let status = answer.status();
        let body = answer.body(ANSWER_LIMIT).await;
        let body = body.map_err(|failure| self.reporter(url).transport_error(&failure))?;
        serde_json::from_slice(&body)
            .map_err(|error| self.reporter(url).unreadable_error(status, error.into(), &body))
    }

    /// The error that an answer lacks something.
    pub(super) fn unread(&self, what: &str, answer: &Value) -> CallError {
        let unread = UnreadableAnswer::Malformed(what.to_owned());
        let body = answer.to_string();
        self.reporter(&self.base).unreadable_error(200, unread, body.as_bytes())
    }

    pub(super) fn reporter(&self, url: &Url) -> CallErrorReporter {
        CallErrorReporter::new(&self.connection, url)
    }

    fn target(&self, url: Url, headers: HeaderMap) -> Result<RequestTarget, CallError> {
        RequestTarget::new(url, headers).map_err(|problem| internal(&problem.message))
    }
}

/// The client itself failed.
pub(super) fn internal(what: &str) -> CallError {
    CallError::new(CallFailure::Internal, what)
}

/// An error about a job or a file: if the provider does not have it, the address and the model may still be right, and if
/// its state does not allow what is asked for, asking again does not help.
pub(super) fn about_one_job(error: CallError) -> CallError {
    match (error.failure, error.status) {
        (CallFailure::UnknownModel | CallFailure::UnknownPath, _) | (CallFailure::Server, Some(409)) => {
            CallError { failure: CallFailure::Refused, ..error }
        }
        _ => error,
    }
}

/// The provider did not get all of a file; it can be sent again.
pub(super) fn cut_upload(received: u64, sent: u64) -> CallError {
    CallError::new(
        CallFailure::Server,
        format!("the provider received {received} of the {sent} bytes of the job's file"),
    )
}
