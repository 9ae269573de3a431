//! The one place that reads the environment.

use std::borrow::Cow;
use std::sync::OnceLock;

use rowmill_core::known_secrets::variable_secrets;
use rowmill_core::redact::Redactor;
use rowmill_data::FetchSettings;
use rowmill_types::Secret;

/// The value of an environment variable; one that is not valid text counts as unset.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The same for providers: where `HF_TOKEN` is not set, signing in with the hub's own client
/// serves as well.
#[must_use]
pub fn provider_environment(name: &str) -> Option<String> {
    let set = environment(name).filter(|value| !value.trim().is_empty());
    set.or_else(|| {
        let hub = (name == "HF_TOKEN").then(|| FetchSettings::from_environment(&environment).hub)?;
        hub.token.map(|token| token.reveal().to_owned())
    })
}

/// What variables hold that is secret, going by their names and by what they look like: a tool may
/// print what it finds in the environment.
pub(crate) fn secrets() -> Vec<Secret> {
    let texts = std::env::vars_os().filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value)));
    let texts = texts.filter_map(|(name, value)| Some((name, value.into_string().ok()?)));
    texts.flat_map(|(name, value)| variable_secrets(&name, &value)).collect()
}

/// A text as it may be shown: without what variables of the environment hold that is secret, which people
/// put into paths, names of placeholders and other places that are repeated to them.
#[must_use]
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    static KNOWN: OnceLock<Option<Redactor>> = OnceLock::new();
    match KNOWN.get_or_init(|| Redactor::new(&secrets()).ok()) {
        Some(redactor) => redactor.redact(text),
        None => Cow::Borrowed("what cannot be searched for secrets is not shown"),
    }
}
