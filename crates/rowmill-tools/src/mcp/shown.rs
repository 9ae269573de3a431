//! What messages show of a server: never what came from a variable or is a credential.

use reqwest::Url;
use rowmill_core::known_secrets::{address_secrets, argument_secrets, header_secrets, shown_arguments};
use rowmill_core::redact::Redactor;
use rowmill_types::{Problem, Secret};

use super::server::{McpServer, Transport};

/// What stands in the place of what is not shown.
const HIDDEN: &str = "***";

/// Makes messages about a server fit to be shown.
#[derive(Debug)]
pub(super) struct Shown {
    /// Knows what this server was given.
    own: Redactor,
    /// Knows the secrets of the run, which a server may know too, and the tokens that it got.
    run: Redactor,
    /// How the address may be written, and how it is shown.
    address: Option<([String; 3], String)>,
    /// The command line or the address.
    pub(super) place: String,
}

impl Shown {
    /// `run` knows the secrets of the run.
    ///
    /// # Errors
    ///
    /// There are too many of them to be looked for.
    pub(super) fn new(server: &McpServer, run: Redactor) -> Result<Self, Problem> {
        let own = Redactor::new(&hidden(server))?;
        let (place, address) = match &server.transport {
            Transport::Stdio { command, args, .. } => (command_line(command, args, server), None),
            Transport::Http { url, .. } => {
                let (written, shown) = address(url);
                (shown.clone(), Some((written, shown)))
            }
        };
        Ok(Self { own, run, address, place })
    }

    /// The text without anything that must not be shown.
    pub(super) fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if let Some((written, shown)) = &self.address {
            for form in written.iter().filter(|form| *form != shown) {
                text = text.replace(form, shown);
            }
        }
        // First whole secrets: a token may hold the id of its client, and must not be left without it.
        self.own.redact(&self.run.redact(&text)).into_owned()
    }
}

/// Everything that a server was given and that no message shows. Short values such as `1` or `true`
/// are settings, and are not looked for.
fn hidden(server: &McpServer) -> Vec<Secret> {
    let mut hidden = server.from_variables.clone();
    match &server.transport {
        Transport::Stdio { args, env, .. } => {
            hidden.extend(env.values().cloned());
            hidden.extend(argument_secrets(args));
        }
        Transport::Http { headers, auth, url } => {
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

/// A command line without what is secret in its arguments, and without what came from a variable.
fn command_line(command: &str, args: &[String], server: &McpServer) -> String {
    let mut line = command.to_owned();
    for mut word in shown_arguments(args) {
        for value in server.from_variables.iter().map(Secret::reveal).filter(|value| !value.is_empty()) {
            word = word.replace(value, HIDDEN);
        }
        line.push(' ');
        line.push_str(&word);
    }
    line
}

/// How an address may be written by us and by libraries, and how it is shown: without user, password
/// and query.
fn address(url: &str) -> ([String; 3], String) {
    let Ok(whole) = Url::parse(url) else { return ([url, url, url].map(str::to_owned), url.to_owned()) };
    let mut shown = whole.clone();
    // Addresses with a host, which these are, take both.
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

    fn network(url: &str) -> McpServer {
        let headers = BTreeMap::from([
            ("Authorization".to_owned(), Secret::new("Bearer tok-12345678")),
            ("X-Debug".to_owned(), Secret::new("true")),
        ]);
        McpServer::new("s", Transport::Http { url: url.to_owned(), headers, auth: None })
    }

    #[test]
    fn credentials_are_hidden_and_settings_are_not() {
        let shown =
            Shown::new(&network("http://host/mcp"), Redactor::new([&Secret::new("key-of-the-run")]).unwrap())
                .unwrap();
        assert_eq!(shown.place, "http://host/mcp");
        assert_eq!(shown.clean("true: tok-12345678, key-of-the-run"), "true: ***, ***");
    }

    #[test]
    fn an_address_is_shown_without_user_password_and_query() {
        let url = "https://ann:pw@host/mcp?k=abc&long=0123456789";
        let shown = Shown::new(&network(url), Redactor::default()).unwrap();
        assert_eq!(shown.place, "https://host/mcp?***");
        let text = format!("error sending request for url ({url}): 0123456789");
        assert_eq!(shown.clean(&text), "error sending request for url (https://host/mcp?***): ***");
    }

    #[test]
    fn a_command_line_is_shown_without_secret_flags_and_values_of_variables() {
        let args = ["-y", "server", "--api-key", "short", "--token=t", "AUTH=x", "--db", "host1/db"];
        let args = args.map(str::to_owned).to_vec();
        let transport = Transport::Stdio { command: "npx".to_owned(), args, env: BTreeMap::new(), cwd: None };
        let mut server = McpServer::new("s", transport);
        server.from_variables = vec![Secret::new("host1")];
        let shown = Shown::new(&server, Redactor::default()).unwrap();
        assert_eq!(shown.place, "npx -y server --api-key *** --token=*** AUTH=*** --db ***/db");
    }
}
