//! Sends a prepared body and waits for the head of the response.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rowmill_types::{Problem, ProblemCode};

use crate::answer::{HttpAnswer, HttpAnswerBody};
use crate::connector::TimeoutConnector;
use crate::failure::HttpFailure;
use crate::proxies::ProxySettings;
use crate::sized_body::{OutgoingBody, SendProgress, SizedBody, head_in_time};
use crate::timeouts::HttpTimeouts;

/// How long an unused connection is kept open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
const AGENT: &str = concat!("rowmill/", env!("CARGO_PKG_VERSION"));

/// hyper's pooled client.
type DirectClient = Client<TimeoutConnector<HttpsConnector<HttpConnector>>, OutgoingBody>;

/// An HTTP client with a pool of connections. Cheap to clone; clones share the pool.
///
/// Certificates are loaded with the first request, so a run without requests does not pay for them.
#[derive(Debug, Clone)]
pub struct HttpClient {
    pools: Arc<ConnectionPools>,
}

#[derive(Debug)]
struct ConnectionPools {
    proxies: ProxySettings,
    timeouts: HttpTimeouts,
    direct: OnceLock<Result<DirectClient, HttpFailure>>,
    general: OnceLock<Result<reqwest::Client, HttpFailure>>,
    /// For documents through a proxy: follows no redirects and decompresses nothing.
    plain: OnceLock<Result<reqwest::Client, HttpFailure>>,
}

/// An address and the headers of every request to it, prepared once per run.
#[derive(Debug, Clone)]
pub struct RequestTarget {
    url: reqwest::Url,
    uri: http::Uri,
    headers: HeaderMap,
}

impl RequestTarget {
    /// Prepares an address. Header values with credentials should be marked sensitive.
    ///
    /// # Errors
    ///
    /// The address cannot be requested.
    pub fn new(url: reqwest::Url, mut headers: HeaderMap) -> Result<Self, Problem> {
        let uri = url.as_str().parse().map_err(|error| {
            Problem::new(ProblemCode::InvalidConfig, format!("`{url}` is not a valid URL")).cause(error)
        })?;
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        Ok(Self { url, uri, headers })
    }

    /// The address.
    #[must_use]
    pub fn url(&self) -> &reqwest::Url {
        &self.url
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

impl HttpClient {
    /// Creates a client. `environment` looks up the standard proxy variables.
    #[must_use]
    pub fn new(environment: &dyn Fn(&str) -> Option<String>) -> Self {
        Self::with_pools(ProxySettings::from_variables(environment), HttpTimeouts::default())
    }

    /// The same client with other timeouts, and with connections of its own.
    #[must_use]
    pub fn with_timeouts(self, timeouts: HttpTimeouts) -> Self {
        Self::with_pools(self.pools.proxies.clone(), timeouts)
    }

    /// The timeouts.
    #[must_use]
    pub fn timeouts(&self) -> HttpTimeouts {
        self.pools.timeouts
    }

    fn with_pools(proxies: ProxySettings, timeouts: HttpTimeouts) -> Self {
        let (direct, general, plain) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { pools: Arc::new(ConnectionPools { proxies, timeouts, direct, general, plain }) }
    }

    /// Sends `body` with POST. `extra` is an additional header of this request.
    ///
    /// # Errors
    ///
    /// The head of the response did not arrive, or not in time. Any status counts as a response.
    pub async fn post(
        &self,
        target: &RequestTarget,
        extra: Option<(HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Result<HttpAnswer, HttpFailure> {
        let mut headers = target.headers.clone();
        if let Some((name, value)) = extra {
            headers.insert(name, value);
        }
        self.dispatch(Method::POST, target, headers, body).await
    }

    /// Sends `body`, which may be empty, with any method.
    ///
    /// # Errors
    ///
    /// The head of the response did not arrive, or not in time. Any status counts as a response.
    pub async fn send(
        &self,
        method: Method,
        target: &RequestTarget,
        body: Bytes,
    ) -> Result<HttpAnswer, HttpFailure> {
        self.dispatch(method, target, target.headers.clone(), body).await
    }

    /// Sends a body in pieces, so that it need not fit into memory. The wait for the response begins when the last piece
    /// was taken.
    ///
    /// # Errors
    ///
    /// The head of the response did not arrive, or not in time, or the body does not have the announced length. Any
    /// status counts as a response.
    pub async fn send_sized(
        &self,
        method: Method,
        target: &RequestTarget,
        body: SizedBody,
    ) -> Result<HttpAnswer, HttpFailure> {
        let mut headers = target.headers.clone();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.length));
        let progress = body.progress();
        if self.pools.proxies.is_set() {
            let body = reqwest::Body::wrap_stream(body.pieces);
            let request = self.general()?.request(method, target.url.clone()).headers(headers).body(body);
            return self.general_answer(request, Some(progress)).await;
        }
        let mut request = http::Request::new(OutgoingBody::Pieces(body.pieces));
        *request.method_mut() = method;
        *request.uri_mut() = target.uri.clone();
        *request.headers_mut() = headers;
        self.direct_answer(request, Some(progress)).await
    }

    async fn dispatch(
        &self,
        method: Method,
        target: &RequestTarget,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpAnswer, HttpFailure> {
        if self.pools.proxies.is_set() {
            let request = self.general()?.request(method, target.url.clone()).headers(headers).body(body);
            return self.general_answer(request, None).await;
        }
        let mut request = http::Request::new(OutgoingBody::whole(body));
        *request.method_mut() = method;
        *request.uri_mut() = target.uri.clone();
        *request.headers_mut() = headers;
        self.direct_answer(request, None).await
    }

    /// Sends a request without a body; redirects are not followed and nothing is decompressed.
    pub(crate) async fn send_empty(
        &self,
        method: http::Method,
        url: &reqwest::Url,
        mut headers: HeaderMap,
    ) -> Result<HttpAnswer, HttpFailure> {
        if self.pools.proxies.is_set() {
            let request = self.plain()?.request(method, url.clone()).headers(headers);
            return self.general_answer(request, None).await;
        }
        let unusable = |error| HttpFailure::Connect(format!("invalid URL: {error}"));
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        let mut request = http::Request::new(OutgoingBody::whole(Bytes::new()));
        *request.method_mut() = method;
        *request.uri_mut() = url.as_str().parse().map_err(unusable)?;
        *request.headers_mut() = headers;
        self.direct_answer(request, None).await
    }

    async fn direct_answer(
        &self,
        request: http::Request<OutgoingBody>,
        progress: Option<SendProgress>,
    ) -> Result<HttpAnswer, HttpFailure> {
        let timeouts = self.pools.timeouts;
        match head_in_time(timeouts.first_byte, progress, self.direct()?.request(request)).await {
            Some(response) => Ok(HttpAnswer { inner: HttpAnswerBody::Direct(response?), timeouts }),
            None => Err(timeouts.first_byte_timeout_failure()),
        }
    }

    /// Requests a document with GET, following redirects.
    ///
    /// # Errors
    ///
    /// The head of the response did not arrive, or not in time. Any status counts as a response.
    pub async fn get(&self, url: reqwest::Url) -> Result<HttpAnswer, HttpFailure> {
        self.general_answer(self.general()?.get(url), None).await
    }

    async fn general_answer(
        &self,
        request: reqwest::RequestBuilder,
        progress: Option<SendProgress>,
    ) -> Result<HttpAnswer, HttpFailure> {
        let timeouts = self.pools.timeouts;
        match head_in_time(timeouts.first_byte, progress, request.send()).await {
            Some(Ok(response)) => Ok(HttpAnswer { inner: HttpAnswerBody::Proxied(response), timeouts }),
            Some(Err(error)) if error.is_connect() && error.is_timeout() => {
                Err(timeouts.connect_timeout_failure())
            }
            Some(Err(error)) => Err(error.into()),
            None => Err(timeouts.first_byte_timeout_failure()),
        }
    }

    fn direct(&self) -> Result<&DirectClient, HttpFailure> {
        self.pools.direct.get_or_init(|| direct_client(self.pools.timeouts)).as_ref().map_err(Clone::clone)
    }

    fn general(&self) -> Result<&reqwest::Client, HttpFailure> {
        let make = || built(self.pools.general_client()?);
        self.pools.general.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    fn plain(&self) -> Result<&reqwest::Client, HttpFailure> {
        let none = reqwest::redirect::Policy::none;
        let make = || built(self.pools.general_client()?.redirect(none()).no_gzip());
        self.pools.plain.get_or_init(make).as_ref().map_err(Clone::clone)
    }
}

impl ConnectionPools {
    fn general_client(&self) -> Result<reqwest::ClientBuilder, HttpFailure> {
        let mut tls = tls_config()?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(AGENT)
            .connect_timeout(self.timeouts.connect)
            .pool_max_idle_per_host(usize::MAX)
            .retry(reqwest::retry::never());
        Ok(self.proxies.apply_to(client))
    }
}

fn built(client: reqwest::ClientBuilder) -> Result<reqwest::Client, HttpFailure> {
    client.build().map_err(|error| cannot_set_up(&error))
}

fn direct_client(timeouts: HttpTimeouts) -> Result<DirectClient, HttpFailure> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    // The limit is divided among the addresses of a name, so that an unreachable one leaves time for the next. With the
    // additional tenth, a name with one address always hits the limit on the whole of connecting first.
    connector.set_connect_timeout(Some(timeouts.connect + timeouts.connect / 10));
    connector.set_keepalive(Some(Duration::from_secs(30)));
    connector.enforce_http(false);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls_config()?)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(usize::MAX)
        .build(TimeoutConnector { connector, timeouts }))
}

/// The TLS configuration. The cryptography provider is given explicitly, because a default would apply to the whole
/// process.
///
/// # Errors
///
/// The certificates of this machine cannot be used.
pub fn tls_config() -> Result<rustls::ClientConfig, HttpFailure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(ConfigBuilderExt::try_with_platform_verifier);
    Ok(config.map_err(|error| cannot_set_up(&error))?.with_no_client_auth())
}

fn cannot_set_up(error: &dyn fmt::Display) -> HttpFailure {
    HttpFailure::Connect(format!("cannot set up the HTTP client: {error}"))
}
