//! How messages show a server: without values of variables and without credentials.

use reqwest::Url;
use rowmill_core::known_secrets::{address_secrets, argument_secrets, header_secrets, redacted_arguments};
use rowmill_core::redact::Redactor;
use rowmill_types::{Problem, Secret};

use crate::mcp::server::{McpServerSettings, McpTransport};
use crate::mcp::tokens::address_without_secrets;

/// The replacement for hidden text.
const HIDDEN: &str = "***";

/// Makes messages about a server safe to show.
#[derive(Debug)]
pub(super) struct MessageRedactor {
    /// Redacts the values that this server was given.
    own: Redactor,
    /// Redacts the secrets of the run, which a server may know too, and its tokens.
    run: Redactor,
    /// The ways in which the URL may be written, and how each is shown.
    address: Vec<(String, String)>,
    /// The command line or the address.
    pub(super) location: String,
}

impl MessageRedactor {
    /// `run` redacts the secrets of the run.
    ///
    /// # Errors
    ///
    /// There are too many values to search for.
    pub(super) fn new(server: &McpServerSettings, run: Redactor) -> Result<Self, Problem> {
        let own = Redactor::new(&hidden(server))?;
        let (place, address) = match &server.transport {
            McpTransport::Stdio { command, args, .. } => (command_line(command, args, server), Vec::new()),
            McpTransport::Http { url, .. } => {
                let (written, place) = address(url);
                let place = server.without_variables(&place);
                let bare = address_without_secrets(url);
                let bare = (bare.clone(), server.without_variables(&bare));
                // The bare form is part of the others, so it comes last.
                let forms = written.into_iter().map(|form| (form, place.clone())).chain([bare]);
                (place.clone(), forms.filter(|(form, shown)| form != shown).collect())
            }
        };
        let place = run.redact(&place).into_owned();
        Ok(Self { own, run, address, location: place })
    }

    /// The same problem without anything that must not be shown.
    pub(super) fn redact_problem(&self, problem: Problem) -> Problem {
        Problem {
            message: problem.message.map_text(|text| self.redact(text)),
            cause: problem.cause.map(|cause| cause.map_text(|text| self.redact(text))),
            ..problem
        }
    }

    /// The text without anything that must not be shown.
    pub(super) fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (form, shown) in &self.address {
            text = text.replace(form, shown);
        }
        // Whole secrets first: a token may contain the id of its client, and must not be left without it.
        self.own.redact(&self.run.redact(&text)).into_owned()
    }
}

impl McpServerSettings {
    /// The URL of a server where the user is to sign in.
    pub(super) fn address_to_sign_in(&self, url: &str) -> String {
        self.without_variables(&address_without_secrets(url))
    }

    /// A URL whose path contains no values of variables. If all of it came from a variable, it is treated
    /// like any other text.
    fn without_variables(&self, address: &str) -> String {
        let host = address.find("://").map_or(0, |scheme| scheme + "://".len());
        let path = address.get(host..).and_then(|rest| rest.find('/')).map_or(address.len(), |at| host + at);
        let (origin, path) = address.split_at(path);
        let mut path = path.to_owned();
        for value in self.from_variables.iter().map(Secret::reveal).filter(|value| value.len() > 1) {
            path = path.replace(value, HIDDEN);
        }
        format!("{origin}{path}")
    }
}

/// All values that a server was given and that no message shows. Short values such as `1` or `true` are
/// settings, and are not searched for.
fn hidden(server: &McpServerSettings) -> Vec<Secret> {
    let mut hidden = server.from_variables.clone();
    match &server.transport {
        McpTransport::Stdio { args, env, .. } => {
            hidden.extend(env.values().cloned());
            hidden.extend(argument_secrets(args));
        }
        McpTransport::Http { headers, auth, url } => {
            hidden.extend(headers.iter().flat_map(|(name, value)| header_secrets(name, value.reveal())));
            hidden.extend(
                auth.iter()
                    .flat_map(|auth| [Secret::new(auth.client_id.as_str()), auth.client_secret.clone()]),
            );
            hidden.extend(address_secrets(url));
        }
    }
    hidden
}

/// A command line without secret arguments and values of variables.
fn command_line(command: &str, args: &[String], server: &McpServerSettings) -> String {
    let mut line = command.to_owned();
    for mut word in redacted_arguments(args) {
        for value in server.from_variables.iter().map(Secret::reveal).filter(|value| !value.is_empty()) {
            word = word.replace(value, HIDDEN);
        }
        line.push(' ');
        line.push_str(&word);
    }
    line
}

/// The ways in which rowmill and libraries may write a URL, and how it is shown: without user, password and
/// query.
fn address(url: &str) -> ([String; 3], String) {
    let Ok(whole) = Url::parse(url) else { return ([url, url, url].map(str::to_owned), url.to_owned()) };
    let mut shown = whole.clone();
    // URLs with a host, as these are, accept both calls.
    shown.set_username("").ok();
    shown.set_password(None).ok();
    let written = [url.to_owned(), whole.to_string(), shown.to_string()];
    if whole == shown && whole.query().is_none() {
        return (written, url.to_owned());
    }
    shown.set_query(None);
    let query = if whole.query().is_some() { "?***" } else { "" };
    (written, format!("{shown}{query}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn network(url: &str) -> McpServerSettings {
        let headers = BTreeMap::from([
            ("Authorization".to_owned(), Secret::new("Bearer tok-12345678")),
            ("X-Debug".to_owned(), Secret::new("true")),
        ]);
        McpServerSettings::new("s", McpTransport::Http { url: url.to_owned(), headers, auth: None })
    }

    #[test]
    fn credentials_are_hidden_and_settings_are_not() {
        let shown = MessageRedactor::new(
            &network("http://host/mcp"),
            Redactor::new([&Secret::new("key-of-the-run")]).unwrap(),
        )
        .unwrap();
        assert_eq!(shown.location, "http://host/mcp");
        assert_eq!(shown.redact("true: tok-12345678, key-of-the-run"), "true: ***, ***");
    }

    #[test]
    fn an_address_is_shown_without_user_password_and_query() {
        let url = "https://ann:pw@host/mcp?k=abc&long=0123456789";
        let shown = MessageRedactor::new(&network(url), Redactor::default()).unwrap();
        assert_eq!(shown.location, "https://host/mcp?***");
        let text = format!("error sending request for url ({url}): 0123456789");
        assert_eq!(shown.redact(&text), "error sending request for url (https://host/mcp?***): ***");
    }

    #[test]
    fn a_path_is_shown_without_values_of_variables_and_a_whole_address_as_a_place() {
        for (url, variable, place) in [
            ("https://host/s/x7q/mcp", "x7q", "https://host/s/***/mcp"),
            ("https://host/s/x7q/mcp?k=v", "x7q", "https://host/s/***/mcp?***"),
            ("https://host.test/mcp", "https://host.test/mcp", "https://host.test/mcp"),
            ("https://host.test/mcp", "host.test", "https://host.test/mcp"),
        ] {
            let mut server = network(url);
            server.from_variables = vec![Secret::new(variable)];
            let shown = MessageRedactor::new(&server, Redactor::default()).unwrap();
            assert_eq!(shown.location, place);
            let bare = place.trim_end_matches("?***");
            assert_eq!(server.address_to_sign_in(url), bare);
        }
        let mut server = network("https://host/s/x7q/mcp?k=v");
        server.from_variables = vec![Secret::new("x7q")];
        let shown = MessageRedactor::new(&server, Redactor::default()).unwrap();
        assert_eq!(shown.redact("(https://host/s/x7q/mcp/)"), "(https://host/s/***/mcp/)", "it was sent on");
        let run = Redactor::new([&Secret::new("key-of-the-run")]).unwrap();
        let shown = MessageRedactor::new(&network("https://host/key-of-the-run/mcp"), run).unwrap();
        assert_eq!(shown.location, "https://host/***/mcp", "a variable of the run is known by its name");
    }

    #[test]
    fn a_command_line_is_shown_without_secret_flags_and_values_of_variables() {
        let args = ["-y", "server", "--api-key", "short", "--token=t", "AUTH=x", "--db", "host1/db"];
        let args = args.map(str::to_owned).to_vec();
        let transport =
            McpTransport::Stdio { command: "npx".to_owned(), args, env: BTreeMap::new(), cwd: None };
        let mut server = McpServerSettings::new("s", transport);
        server.from_variables = vec![Secret::new("host1")];
        let shown = MessageRedactor::new(&server, Redactor::default()).unwrap();
        assert_eq!(shown.location, "npx -y server --api-key *** --token=*** AUTH=*** --db ***/db");
    }
}
