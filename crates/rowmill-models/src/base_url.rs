//! The base URL of a provider, with its path filled in if the user left it out.

use rowmill_core::known_secrets::strip_address_secrets;
use rowmill_http::Url;
use rowmill_types::{Problem, ProblemCode};

use crate::connection::{VariableLookup, non_empty_variable};
use crate::provider::{Provider, ProviderProtocol};

/// A base URL.
#[derive(Debug)]
pub(crate) struct BaseUrl {
    pub(crate) url: Url,
    /// The variable or field that it came from, if its path was left out and is filled in.
    completed: Option<String>,
}

impl BaseUrl {
    /// The URL, and a notice for the user if its path was filled in.
    pub(crate) fn into_parts(self) -> (Url, Option<String>) {
        let shown = self.redacted();
        let notice = self.completed.map(|place| format!("{place} has no path; calls go to `{shown}`"));
        (self.url, notice)
    }

    /// The URL without anything in it that may be secret.
    pub(crate) fn redacted(&self) -> String {
        strip_address_secrets(self.url.as_str())
    }
}

/// The base URL: from the environment, else from the configuration, else the default.
pub(crate) fn resolve_base_url(
    provider: &Provider,
    environment: VariableLookup<'_>,
) -> Result<Option<BaseUrl>, Problem> {
    if provider.protocol() == ProviderProtocol::Builtin {
        return Ok(None);
    }
    let variables = provider.base_url_variables();
    let set =
        variables.iter().find_map(|name| Some((non_empty_variable(environment, name)?, format!("`{name}`"))));
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
        // An Azure endpoint is given as the bare resource; its v1 API is below it.
        url.set_path("/openai/v1");
        return Ok(Some(BaseUrl { url, completed: None }));
    }
    let completed = left_out(provider, &url).map(|path| {
        url.set_path(&path);
        place
    });
    Ok(Some(BaseUrl { url, completed }))
}

/// A text that should be a URL, without anything that may be secret in it, even if the scheme is missing.
fn shown_text(text: &str) -> String {
    let bare = strip_address_secrets(text);
    let bare = bare.split('?').next().unwrap_or_default();
    bare.rsplit('@').next().unwrap_or_default().to_owned()
}

/// The path to add to a URL that has none. Users often give only the address of a server, and servers with an
/// OpenAI-compatible API have it below `/v1`; a provider that has it under another path is recognized by its
/// host. The other protocols put their version before each path themselves.
fn left_out(provider: &Provider, url: &Url) -> Option<String> {
    if !matches!(provider.protocol(), ProviderProtocol::Chat | ProviderProtocol::Responses) {
        return None;
    }
    let own = provider.default_base_url().and_then(|text| Url::parse(text).ok());
    let own = own.filter(|own| own.host_str() == url.host_str() && own.path() != "/");
    Some(own.map_or_else(|| "/v1".to_owned(), |own| own.path().to_owned()))
}
