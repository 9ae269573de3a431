//! Who is notified of the end of a run.

use rowmill_http::Url;
use rowmill_types::settings::{NOTIFY, NOTIFY_URL};
use rowmill_types::{Problem, ProblemCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who is notified of the end of a run. Both are notified at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyOptions {
    /// A shell command, which gets a JSON object on its standard input.
    pub command: Option<String>,
    /// An address, to which the same JSON object is sent with POST.
    pub url: Option<String>,
}

impl NotifyOptions {
    /// Whether nobody is notified.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These, and for those that are missing the ones of `others`.
    #[must_use]
    pub fn or(self, others: &Self) -> Self {
        Self {
            command: self.command.or_else(|| others.command.clone()),
            url: self.url.or_else(|| others.url.clone()),
        }
    }

    /// Checks that both can be used.
    ///
    /// # Errors
    ///
    /// The command is empty, or the address is not one of a web server.
    pub fn check(&self) -> Result<(), Problem> {
        if self.command.as_ref().is_some_and(|command| command.trim().is_empty()) {
            let message = format!("{NOTIFY} must not be empty");
            return Err(Problem::new(ProblemCode::Usage, message)
                .hint("name a command, such as `notify-send rowmill`, or omit it"));
        }
        match &self.url {
            Some(url) => parse_address(url).map(drop),
            None => Ok(()),
        }
    }

    /// Whether the address contains a user name or a password.
    pub(crate) fn has_credential(&self) -> bool {
        let url = self.url.as_deref().and_then(|url| parse_address(url).ok());
        url.is_some_and(|url| !url.username().is_empty() || url.password().is_some())
    }
}

/// Reads an address. It may be secret as a whole, so no message repeats it.
pub(super) fn parse_address(text: &str) -> Result<Url, Problem> {
    let parsed =
        Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    parsed.ok_or_else(|| {
        let message = format!("{NOTIFY_URL} must be an address with `http://` or `https://`");
        Problem::new(ProblemCode::Usage, message).hint("use one such as `https://example.org/hooks/42`")
    })
}

/// The server of an address. User name, password, path and query may be secret: the path of a webhook is its key.
pub(super) fn shown_address(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let rest = if url.path().len() > 1 || url.query().is_some() { "/…" } else { "" };
    format!("{}://{}{port}{rest}", url.scheme(), url.host_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_of_an_address_is_shown() {
        for (address, shown) in [
            ("https://hooks.example.org/services/T0/B1/key?token=abc", "https://hooks.example.org/…"),
            ("http://ada:secret@127.0.0.1:8080", "http://127.0.0.1:8080"),
        ] {
            assert_eq!(shown_address(&parse_address(address).unwrap()), shown);
        }
    }

    #[test]
    fn what_cannot_be_used_is_rejected_without_being_repeated() {
        let check = |command: Option<&str>, url: Option<&str>| {
            let options = NotifyOptions { command: command.map(Into::into), url: url.map(Into::into) };
            options.check().map_err(|problem| problem.message.to_string())
        };
        assert!(check(None, None).is_ok() && check(Some("true"), Some("https://example.org")).is_ok());
        assert!(check(Some(" "), None).is_err());
        for wrong in ["example.org", "ftp://ada:secret@example.org/x", "https://", "/hooks"] {
            let message = check(None, Some(wrong)).unwrap_err();
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
