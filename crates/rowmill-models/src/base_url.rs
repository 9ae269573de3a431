//! Where calls go: the base URL of a provider, completed where its path was left out.

use rowmill_core::known_secrets::bare_addresses;
use rowmill_http::Url;
use rowmill_types::{Problem, ProblemCode};

use crate::connection::{Environment, value};
use crate::provider::{Protocol, Provider};

/// An address that calls go to.
#[derive(Debug)]
pub(crate) struct BaseUrl {
    pub(crate) url: Url,
    /// The variable or field that named it, where its path was left out and is filled in.
    completed: Option<String>,
}

impl BaseUrl {
    /// The address, and what a person should know of it.
    pub(crate) fn into_parts(self) -> (Url, Option<String>) {
        let shown = self.shown();
        let notice = self.completed.map(|place| format!("{place} has no path; calls go to `{shown}`"));
        (self.url, notice)
    }

    /// The address without what may be secret in it.
    pub(crate) fn shown(&self) -> String {
        bare_addresses(self.url.as_str())
    }
}

/// The base URL: environment, else configuration, else default.
pub(crate) fn base_url(
    provider: &Provider,
    environment: Environment<'_>,
) -> Result<Option<BaseUrl>, Problem> {
    if provider.protocol() == Protocol::Builtin {
        return Ok(None);
    }
    let variables = provider.base_url_variables();
    let set = variables.iter().find_map(|name| Some((value(environment, name)?, format!("`{name}`"))));
    let configured = || {
        let place = format!("`base_url` of `[providers.{}]`", provider.name());
        provider.config.base_url.clone().map(|text| (text, place))
    };
    let default = || provider.default_base_url().map(|text| (text.to_owned(), "the default".to_owned()));
    let Some((text, place)) = set.or_else(configured).or_else(default) else {
        let first = variables.first().map_or("", String::as_str);
        return Err(Problem::new(
            ProblemCode::InvalidConfig,
            format!("`{}` has no default base URL and `{first}` is not set", provider.name()),
        )
        .hint(format!("set `{first}` to the server's base URL")));
    };
    let url =
        Url::parse(text.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(mut url) = url else {
        let shown = shown_text(&text);
        return Err(Problem::new(ProblemCode::InvalidConfig, format!("{place} is not a URL: `{shown}`"))
            .hint("write the complete URL, e.g. `http://localhost:8000/v1`"));
    };
    if url.path() != "/" {
        return Ok(Some(BaseUrl { url, completed: None }));
    }
    if provider.quirks().api_key_header {
        // An Azure endpoint is the bare resource; its v1 API lies below it.
        url.set_path("/openai/v1");
        return Ok(Some(BaseUrl { url, completed: None }));
    }
    let completed = left_out(provider, &url).map(|path| {
        url.set_path(&path);
        place
    });
    Ok(Some(BaseUrl { url, completed }))
}

/// A text that should be an address, without what may be secret in it even where the scheme is missing.
fn shown_text(text: &str) -> String {
    let bare = bare_addresses(text);
    let bare = bare.split('?').next().unwrap_or_default();
    bare.rsplit('@').next().unwrap_or_default().to_owned()
}

/// The path that was left out of an address without one. People write the address of a server as
/// its own tools want it, and servers that speak as OpenAI does have their API below `/v1`; a
/// provider that has it elsewhere is known by its host. The other protocols put their version
/// before each path themselves.
fn left_out(provider: &Provider, url: &Url) -> Option<String> {
    if !matches!(provider.protocol(), Protocol::Chat | Protocol::Responses) {
        return None;
    }
    let own = provider.default_base_url().and_then(|text| Url::parse(text).ok());
    let own = own.filter(|own| own.host_str() == url.host_str() && own.path() != "/");
    Some(own.map_or_else(|| "/v1".to_owned(), |own| own.path().to_owned()))
}
