//! The proxies set in the environment, in the notation that most programs use.

use reqwest::{ClientBuilder, NoProxy, Proxy};
use rowmill_types::Secret;

/// Addresses of proxies. They may contain passwords.
#[derive(Debug, Clone, Default)]
pub struct ProxySettings {
    http: Option<Secret>,
    https: Option<Secret>,
    all: Option<Secret>,
    /// The hosts that are reached without a proxy.
    none: Option<String>,
}

impl ProxySettings {
    /// Takes them from variables.
    #[must_use]
    pub fn from_variables(environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&str; 2]| {
            names.into_iter().find_map(|name| environment(name).filter(|value| !value.is_empty()))
        };
        // If a web server starts the program (CGI), its clients can set `HTTP_PROXY`.
        let is_asked_by_others = environment("REQUEST_METHOD").is_some();
        Self {
            http: first(["HTTP_PROXY", "http_proxy"]).filter(|_| !is_asked_by_others).map(Secret::new),
            https: first(["HTTPS_PROXY", "https_proxy"]).map(Secret::new),
            all: first(["ALL_PROXY", "all_proxy"]).map(Secret::new),
            none: first(["NO_PROXY", "no_proxy"]),
        }
    }

    /// Whether a proxy is set.
    pub(crate) fn is_set(&self) -> bool {
        [&self.http, &self.https, &self.all].into_iter().any(Option::is_some)
    }

    /// A client that uses these proxies, and no others that the process may know of. An address that cannot be
    /// one of a proxy is passed over.
    pub fn apply_to(&self, client: ClientBuilder) -> ClientBuilder {
        let address = |proxy: &Option<Secret>| proxy.as_ref().map(|proxy| proxy.reveal().to_owned());
        let named = [
            address(&self.http).and_then(|proxy| Proxy::http(proxy).ok()),
            address(&self.https).and_then(|proxy| Proxy::https(proxy).ok()),
            address(&self.all).and_then(|proxy| Proxy::all(proxy).ok()),
        ];
        let none = || self.none.as_deref().and_then(NoProxy::from_string);
        let proxies = named.into_iter().flatten().map(|proxy| proxy.no_proxy(none()));
        proxies.fold(client.no_proxy(), ClientBuilder::proxy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_those_of_the_variables_and_are_not_shown() {
        let of = |variables: &[(&str, &str)]| {
            ProxySettings::from_variables(&|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(!of(&[]).is_set() && !of(&[("HTTP_PROXY", ""), ("NO_PROXY", "*")]).is_set());
        assert!(of(&[("all_proxy", "socks5://h:1")]).is_set());
        let secret = of(&[("HTTPS_PROXY", "http://me:planted@h:1")]);
        assert!(secret.is_set() && !format!("{secret:?}").contains("planted"));
        assert!(!of(&[("HTTP_PROXY", "http://h:1"), ("REQUEST_METHOD", "GET")]).is_set());
    }
}
