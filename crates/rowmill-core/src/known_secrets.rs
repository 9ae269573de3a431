//! Finds secrets in configuration: headers, addresses, variables and command lines.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowmill_types::Secret;

use crate::redact::is_secret_name;

/// Headers whose values are not secret.
const HARMLESS_HEADERS: &[&str] = &[
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-type",
    "host",
    "http-referer",
    "origin",
    "referer",
    "user-agent",
    "x-title",
];
/// The minimum length of a run of letters and digits in a path that counts as a key.
const KEY_STRETCH: usize = 12;
/// Replaces a secret.
const HIDDEN: &str = "***";

/// Whether a header or a query field is a plain setting. A protocol version such as `2023-06-01` would otherwise be
/// removed from every result.
fn is_setting(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_plain = HARMLESS_HEADERS.contains(&name.as_str())
        || ["version", "beta", "region"].iter().any(|word| name.contains(word));
    is_plain && !is_secret_name(&name)
}

/// The secrets in a header's value: the whole value, the token after `Bearer` or `Basic`, and the values of cookies.
///
/// ```
/// # use rowmill_core::known_secrets::header_secrets;
/// let found = header_secrets("authorization", "Bearer tok-1");
/// assert_eq!(found.iter().map(|secret| secret.reveal()).collect::<Vec<_>>(), ["Bearer tok-1", "tok-1"]);
/// assert!(header_secrets("content-type", "application/json").is_empty());
/// ```
#[must_use]
pub fn header_secrets(name: &str, value: &str) -> Vec<Secret> {
    let value = value.trim();
    if is_setting(name.trim()) || value.is_empty() {
        return Vec::new();
    }
    let mut found = vec![Secret::new(value)];
    if name.trim().eq_ignore_ascii_case("cookie") {
        let values = value.split(';').filter_map(|cookie| cookie.split_once('='));
        found.extend(values.map(|(_, value)| Secret::new(value.trim())));
    } else if let Some((scheme, token)) = value.split_once(' ').filter(|(scheme, _)| is_word(scheme)) {
        let token = token.trim();
        found.push(Secret::new(token));
        let is_basic = scheme.eq_ignore_ascii_case("basic");
        let decoded = STANDARD.decode(token).ok().filter(|_| is_basic);
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let password = decoded.as_deref().and_then(|pair| pair.split_once(':'));
        found.extend(password.map(|(_, password)| Secret::new(password)));
    }
    found
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The secrets in the addresses of a text: passwords, a user without a password, the header that a client derives from
/// both, parts of paths that look like keys, and the values of queries.
///
/// ```
/// # use rowmill_core::known_secrets::address_secrets;
/// let found = address_secrets("http://ann:pw@host/gateway/k3y5f0r7h3gate/v1?key=abc&api-version=2024-10-21");
/// let found: Vec<_> = found.iter().map(|secret| secret.reveal()).collect();
/// assert_eq!(found, ["pw", "YW5uOnB3", "k3y5f0r7h3gate", "abc"]);
/// ```
#[must_use]
pub fn address_secrets(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    for part in parts(text) {
        found.extend(login_secrets(&part));
        found.extend(path_secrets(&part));
        let fields = part.fields().filter(|(name, _)| !is_setting(name));
        found.extend(fields.flat_map(|(_, value)| as_written_and_decoded(value)));
    }
    found
}

/// The secrets in an environment variable: its value, judging by its name, or the password, the keys in the path and
/// the secret query fields of an address in its value.
///
/// ```
/// # use rowmill_core::known_secrets::variable_secrets;
/// let found = |name, value| variable_secrets(name, value).into_iter().map(|secret| secret.reveal().to_owned()).collect::<Vec<_>>();
/// assert_eq!(found("SHOP_TOKEN", "abc"), ["abc"]);
/// let address = "postgres://ann:pw@host/shop?mode=full&password=p2";
/// assert_eq!(found("DATABASE_URL", address), ["pw", "YW5uOnB3", "p2"]);
/// assert!(found("HOME", "/home/ann").is_empty());
/// ```
#[must_use]
pub fn variable_secrets(name: &str, value: &str) -> Vec<Secret> {
    if is_secret_name(name) {
        return vec![Secret::new(value)];
    }
    let mut found = Vec::new();
    for part in parts(value) {
        found.extend(login_secrets(&part));
        found.extend(path_secrets(&part));
        let fields = part.fields().filter(|(name, _)| is_secret_name(name));
        found.extend(fields.flat_map(|(_, value)| as_written_and_decoded(value)));
    }
    found
}

/// A text with user, password, query and path keys removed from its addresses.
///
/// ```
/// # use rowmill_core::known_secrets::strip_address_secrets;
/// assert_eq!(strip_address_secrets("to `http://ann:pw@host:1/v1?key=abc`: no"), "to `http://host:1/v1`: no");
/// assert_eq!(strip_address_secrets("https://host/sk-1-2-3-4-5/v1"), "https://host/***/v1");
/// assert_eq!(strip_address_secrets("openai.gpt-5?seed=1"), "openai.gpt-5?seed=1");
/// ```
#[must_use]
pub fn strip_address_secrets(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    for part in parts(text) {
        bare.push_str(part.before);
        let words = part.host_and_path.split('/').enumerate();
        let shown = words.map(|(at, word)| if at > 0 && part.is_key(word) { HIDDEN } else { word });
        bare.push_str(&shown.collect::<Vec<_>>().join("/"));
    }
    bare.push_str(parts(text).last().map_or(text, |last| last.after));
    bare
}

/// A parser's message about a value of the wrong type, without the value: users put keys into the wrong field.
///
/// ```
/// # use rowmill_core::known_secrets::strip_value_from_type_error;
/// assert_eq!(strip_value_from_type_error("invalid type: string \"sk-1\", expected a map"), "invalid type: string, expected a map");
/// assert_eq!(strip_value_from_type_error("unknown field `comand`, expected `url`"), "unknown field `comand`, expected `url`");
/// ```
#[must_use]
pub fn strip_value_from_type_error(message: &str) -> String {
    let about_value = ["invalid type: ", "invalid value: "].iter().any(|start| message.starts_with(start));
    let begin = message.find(['"', '`']);
    match (about_value, begin, message.rfind(", expected ")) {
        (true, Some(begin), Some(end)) if begin < end => {
            let (before, after) = (message.get(..begin).unwrap_or_default(), message.get(end..));
            format!("{}{}", before.trim_end(), after.unwrap_or_default())
        }
        _ => message.to_owned(),
    }
}

/// The secrets in the arguments of a program: the values of flags with secret names, headers, and the secrets in
/// addresses.
#[must_use]
pub fn argument_secrets(arguments: &[String]) -> Vec<Secret> {
    let mut found = Vec::new();
    for (word, value) in arguments.iter().zip(values(arguments)) {
        match value {
            ArgumentValue::Plain => found.extend(address_secrets(word)),
            ArgumentValue::Hidden(at) => found.extend(word.get(at..).map(Secret::new)),
            ArgumentValue::Header(at) => {
                let header = word.get(at..).and_then(|header| header.split_once(':'));
                found.extend(header.into_iter().flat_map(|(name, value)| header_secrets(name, value)));
            }
        }
    }
    found
}

/// The arguments of a program with secrets removed.
///
/// ```
/// # use rowmill_core::known_secrets::redacted_arguments;
/// let words = ["--token=abc", "-H", "X-Key: abc", "http://ann:pw@host/"].map(str::to_owned);
/// assert_eq!(redacted_arguments(&words), ["--token=***", "-H", "X-Key: ***", "http://host/"]);
/// ```
#[must_use]
pub fn redacted_arguments(arguments: &[String]) -> Vec<String> {
    let shown = |(word, value): (&String, ArgumentValue)| {
        let hidden_at = match value {
            ArgumentValue::Plain => None,
            ArgumentValue::Hidden(at) => Some((at, HIDDEN.to_owned())),
            ArgumentValue::Header(at) => {
                word.get(at..).and_then(|header| header.split_once(':')).and_then(|(name, value)| {
                    let is_hidden = !header_secrets(name, value).is_empty();
                    is_hidden.then(|| (at + name.len(), format!(": {HIDDEN}")))
                })
            }
        };
        match hidden_at.and_then(|(at, hidden)| Some((word.get(..at)?, hidden))) {
            Some((before, hidden)) => format!("{before}{hidden}"),
            None => strip_address_secrets(word),
        }
    };
    arguments.iter().zip(values(arguments)).map(shown).collect()
}

/// The role of a word in a command line, and where its value begins.
#[derive(Clone, Copy)]
enum ArgumentValue {
    Plain,
    /// The value of a flag or a variable with a secret name.
    Hidden(usize),
    /// A header, as programs that send requests accept them.
    Header(usize),
}

/// Classifies each word.
fn values(arguments: &[String]) -> impl Iterator<Item = ArgumentValue> {
    let mut next = ArgumentValue::Plain;
    arguments.iter().map(move |word| {
        let is_flag = word.starts_with('-');
        let follows = std::mem::replace(&mut next, ArgumentValue::Plain);
        if !is_flag && !matches!(follows, ArgumentValue::Plain) {
            return follows;
        }
        // The `=` of a query belongs to its address.
        let joined = word.split_once('=').filter(|(name, _)| !name.contains("://"));
        let name = joined.map_or(word.as_str(), |(name, _)| name);
        let kind: fn(usize) -> ArgumentValue = match is_flag {
            true if name == "-H" || name.trim_start_matches('-').eq_ignore_ascii_case("header") => {
                ArgumentValue::Header
            }
            _ if is_secret_name(name) && (is_flag || joined.is_some()) => ArgumentValue::Hidden,
            _ => return ArgumentValue::Plain,
        };
        match joined {
            Some((name, _)) => kind(name.len() + 1),
            None => {
                next = kind(0);
                ArgumentValue::Plain
            }
        }
    })
}

/// An address within a text.
struct EmbeddedAddress<'t> {
    /// The text before its user: everything since the previous address, and its scheme.
    before: &'t str,
    user: Option<&'t str>,
    host_and_path: &'t str,
    query: &'t str,
    /// The text that follows it.
    after: &'t str,
}

impl<'t> EmbeddedAddress<'t> {
    fn fields(&self) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.query.split('&').map(|field| field.split_once('=').unwrap_or(("", field)))
    }

    /// Whether a path segment looks like a key, as gateways use them: it starts like one, or has a long run of letters
    /// and digits, unlike the names of versions and deployments.
    fn is_key(&self, word: &str) -> bool {
        let is_web = ["http://", "https://"].iter().any(|scheme| self.before.ends_with(scheme));
        let is_long = |stretch: &str| {
            stretch.len() >= KEY_STRETCH
                && stretch.bytes().any(|byte| byte.is_ascii_digit())
                && stretch.bytes().any(|byte| byte.is_ascii_alphabetic())
        };
        let begins = word.starts_with("sk-") && word.len() >= KEY_STRETCH;
        is_web && (begins || word.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_long))
    }
}

/// Every address of a text.
fn parts(text: &str) -> impl Iterator<Item = EmbeddedAddress<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let scheme_end = rest.find("://")? + "://".len();
        let (before, address) = rest.split_at(scheme_end);
        let is_end = |letter: char| letter.is_whitespace() || "\"'`<>)]}".contains(letter);
        let authority_end = address.find(['/', '?', '#']).unwrap_or(address.len());
        // A password may contain any character except those that end the authority.
        let login = address.get(..authority_end).and_then(|authority| authority.rsplit_once('@'));
        let login = login.map(|(user, _)| user).filter(|user| !user.contains(char::is_whitespace));
        let host = login.map_or(address, |user| address.get(user.len() + 1..).unwrap_or_default());
        let (address, after) = host.split_at(host.find(is_end).unwrap_or(host.len()));
        let (address, _) = address.split_once('#').unwrap_or((address, ""));
        let (host_and_path, query) = address.split_once('?').unwrap_or((address, ""));
        rest = after;
        Some(EmbeddedAddress { before, user: login, host_and_path, query, after })
    })
}

/// The password, or a user without one, and both together as in a `Basic` header.
fn login_secrets(part: &EmbeddedAddress<'_>) -> Vec<Secret> {
    let Some(login) = part.user else { return Vec::new() };
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let mut found = as_written_and_decoded(if password.is_empty() { user } else { password });
    let meant = |text: &str| decoded(text).unwrap_or_else(|| text.to_owned());
    let header = STANDARD.encode(format!("{}:{}", meant(user), meant(password)));
    found.extend(Some(header.trim_end_matches('=')).filter(|bare| *bare != header).map(Secret::new));
    found.push(Secret::new(header));
    found
}

/// Path segments that look like keys.
fn path_secrets(part: &EmbeddedAddress<'_>) -> Vec<Secret> {
    let words = part.host_and_path.split('/').skip(1).filter(|word| part.is_key(word));
    words.flat_map(as_written_and_decoded).collect()
}

/// A part of an address as written, and percent-decoded.
fn as_written_and_decoded(text: &str) -> Vec<Secret> {
    let decoded = decoded(text).filter(|decoded| decoded != text);
    let written = Some(text).filter(|text| !text.is_empty()).map(Secret::new);
    written.into_iter().chain(decoded.map(Secret::new)).collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            bytes.push(u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
#[path = "known_secrets_tests.rs"]
mod tests;
