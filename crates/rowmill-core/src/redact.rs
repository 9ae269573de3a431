//! Recognizes secrets, and removes them from texts that are kept or shown.
//!
//! This is the only implementation: every text of foreign origin that is kept or shown goes through it.

mod secret_forms;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, MatchKind};
use rowmill_types::{Problem, ProblemCode, Secret};

use secret_forms::secret_forms;

/// Parts of the names of variables, headers and flags that hold secrets.
const SECRET_NAMES: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
    "PRIVATE",
];
/// Words that contain one of these but mean something else.
const HARMLESS_WORDS: &[&str] =
    &["AUTHOR", "KEYBOARD", "KEYMAP", "KEYRING", "KEYWORD", "MONKEY", "TOKENIZER", "SSH_AUTH_SOCK"];
/// Replaces a secret.
const HIDDEN: &str = "***";

/// Whether a variable, header or flag with this name holds a secret.
///
/// ```
/// # use rowmill_core::redact::is_secret_name;
/// assert!(is_secret_name("OPENAI_API_KEY") && is_secret_name("--auth-token") && is_secret_name("dbPassword"));
/// assert!(is_secret_name("CLIENT_SECRET") && is_secret_name("x-api-key") && is_secret_name("AWS_CREDENTIALS"));
/// assert!(!is_secret_name("PATH") && !is_secret_name("GIT_AUTHOR_NAME") && !is_secret_name("KEYBOARD"));
/// ```
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let mut name = name.to_ascii_uppercase();
    for word in HARMLESS_WORDS {
        name = name.replace(word, "");
    }
    SECRET_NAMES.iter().any(|word| name.contains(word))
}

/// Replaces secrets by `***` anywhere in a text.
///
/// A secret is found verbatim, escaped as in JSON text (also within JSON within JSON), in an address, and in base64 at
/// any offset in the encoded bytes. Secrets of fewer than eight bytes are ignored. Clones share the count of
/// replacements, and a secret added to one is known to all.
///
/// ```
/// # use {rowmill_core::redact::Redactor, rowmill_types::Secret};
/// let redactor = Redactor::new([&Secret::new("sk-1/2 3")]).unwrap();
/// assert_eq!(redactor.redact("key sk-1/2 3, ?key=sk-1%2F2%203"), "key ***, ?key=***");
/// assert_eq!(redactor.redact("nothing"), "nothing");
/// redactor.clone().add_secrets([&Secret::new("a-later-token")]).unwrap();
/// assert_eq!(redactor.redact("a-later-token"), "***");
/// assert_eq!(redactor.replaced_count(), 3);
/// ```
#[derive(Default)]
pub struct Redactor {
    /// What was known when this clone was made. It is read without a lock as long as nothing has been added since;
    /// `None` if there is nothing to find.
    search: Option<AhoCorasick>,
    /// The number of additions at that time.
    lessons: u64,
    shared: Arc<SharedPatterns>,
}

/// State shared by all clones.
#[derive(Default)]
struct SharedPatterns {
    /// The number of additions; it changes only while `search` is locked.
    lessons: AtomicU64,
    /// Finds everything that is known.
    search: RwLock<Option<AhoCorasick>>,
    /// All patterns. Locked during an addition, so that no concurrent addition is lost.
    forms: Mutex<BTreeSet<String>>,
    replaced: AtomicU64,
}

impl Clone for Redactor {
    fn clone(&self) -> Self {
        let search = self.shared.search.read().unwrap_or_else(PoisonError::into_inner);
        let lessons = self.shared.lessons.load(Ordering::Acquire);
        Self { search: search.clone(), lessons, shared: Arc::clone(&self.shared) }
    }
}

impl Redactor {
    /// A redactor for these secrets.
    ///
    /// # Errors
    ///
    /// There are too many secrets to search for; then no text may be written.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Result<Self, Problem> {
        let ignorant = Self::default();
        ignorant.add_secrets(secrets)?;
        // The clone has the initial secrets without a lock.
        Ok(ignorant.clone())
    }

    /// Adds these secrets, from now on and in all clones.
    ///
    /// # Errors
    ///
    /// There are too many secrets to search for; then these may not be used.
    pub fn add_secrets<'s>(&self, secrets: impl IntoIterator<Item = &'s Secret>) -> Result<(), Problem> {
        let new: Vec<String> = secrets.into_iter().flat_map(|secret| secret_forms(secret.reveal())).collect();
        let mut known = self.shared.forms.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.len();
        known.extend(new);
        if known.len() == before {
            return Ok(());
        }
        let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(known.iter());
        let built = built.map_err(|error| {
            Problem::new(ProblemCode::Internal, "secrets cannot be looked for").cause(error)
        })?;
        let mut search = self.shared.search.write().unwrap_or_else(PoisonError::into_inner);
        *search = Some(built);
        self.shared.lessons.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// The number of secrets replaced so far.
    #[must_use]
    pub fn replaced_count(&self) -> u64 {
        self.shared.replaced.load(Ordering::Relaxed)
    }

    /// The text without secrets; borrowed if it has none.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(search) = self.found_in(text) else { return Cow::Borrowed(text) };
        let mut out = String::with_capacity(text.len());
        self.replace(&search, text, &mut out);
        Cow::Owned(out)
    }

    /// JSON text without secrets, which is valid JSON again: only the contents of strings are replaced, because a
    /// number such as `12345678` may equal a password by chance.
    #[must_use]
    pub fn redact_json<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(search) = self.found_in(text) else { return Cow::Borrowed(text) };
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, string)) = rest.split_once('"') {
            out.push_str(before);
            out.push('"');
            let (inside, after) = string.split_at(end_of_string(string));
            self.replace(&search, inside, &mut out);
            rest = after.strip_prefix('"').unwrap_or(after);
            out.push('"');
        }
        out.push_str(rest);
        // A secret that ends in a backslash may have removed half of an escape.
        if serde_json::from_str::<serde::de::IgnoredAny>(&out).is_ok() {
            return Cow::Owned(out);
        }
        let mut value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        self.redact_value(&mut value);
        Cow::Owned(value.to_string())
    }

    fn redact_value(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => *text = self.redact(text).into_owned(),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            serde_json::Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.redact_value(field));
            }
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
        }
    }

    /// One JSON text as bytes, without secrets.
    #[must_use]
    pub fn redact_json_line(&self, line: Vec<u8>) -> Vec<u8> {
        match std::str::from_utf8(&line).map(|text| self.redact_json(text)) {
            Ok(Cow::Owned(hidden)) => hidden.into_bytes(),
            Ok(Cow::Borrowed(_)) | Err(_) => line,
        }
    }

    /// The current search, if it finds anything in the text.
    fn found_in(&self, text: &str) -> Option<Cow<'_, AhoCorasick>> {
        let search = if self.shared.lessons.load(Ordering::Acquire) == self.lessons {
            Cow::Borrowed(self.search.as_ref()?)
        } else {
            let newest = self.shared.search.read().unwrap_or_else(PoisonError::into_inner);
            Cow::Owned(newest.clone()?)
        };
        search.is_match(text).then_some(search)
    }

    fn replace(&self, search: &AhoCorasick, text: &str, out: &mut String) {
        search.replace_all_with(text, out, |_, _, out| {
            self.shared.replaced.fetch_add(1, Ordering::Relaxed);
            out.push_str(HIDDEN);
            true
        });
    }
}

/// The end of a JSON string whose opening quote was removed already.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    let is_end = |byte: u8| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    };
    text.bytes().position(is_end).unwrap_or(text.len())
}

/// Shows the number of secrets and nothing else.
impl fmt::Debug for Redactor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let newest = self.shared.search.read().unwrap_or_else(PoisonError::into_inner);
        write!(out, "Redactor({} forms)", newest.as_ref().map_or(0, AhoCorasick::patterns_len))
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    use super::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        let secrets: Vec<Secret> = secrets.iter().map(|secret| Secret::new(*secret)).collect();
        Redactor::new(&secrets).unwrap()
    }

    #[test]
    fn a_secret_is_found_in_every_form() {
        let redactor = redactor(&["pass\"wörd/1", "abcdefgh"]);
        let json = serde_json::to_string("pass\"wörd/1").unwrap();
        for (text, expected) in [
            ("pass\"wörd/1".to_owned(), "***".to_owned()),
            (json.clone(), "\"***\"".to_owned()),
            (serde_json::to_string(&json).unwrap(), r#""\"***\"""#.to_owned()),
            (r#"pass\"wörd\/1"#.to_owned(), "***".to_owned()),
            (r#"pass\"w\u00f6rd/1"#.to_owned(), "***".to_owned()),
            ("?p=pass%22w%C3%B6rd%2F1&q".to_owned(), "?p=***&q".to_owned()),
            ("xabcdefghabcdefghy".to_owned(), "x******y".to_owned()),
        ] {
            assert_eq!(redactor.redact(&text), expected, "{text}");
        }
    }

    #[test]
    fn the_longest_secret_is_taken_and_short_ones_are_left_alone() {
        let redactor =
            redactor(&["secret-a", "secret-and-more", "tiny", "1234567", "required", " padded-value\n", ""]);
        assert_eq!(redactor.redact("secret-and-more, secret-and"), "***, ***nd");
        assert_eq!(redactor.redact("tiny 1234567 required padded-value."), "tiny 1234567 required ***.");
        assert_eq!(redactor.replaced_count(), 3);
        assert_eq!(format!("{redactor:?}").matches("secret").count(), 0);
    }

    #[test]
    fn a_line_of_a_secret_with_several_lines_is_a_secret() {
        let key = "-----BEGIN-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIBAQ\n-----END-----";
        let redacted = redactor(&[key]);
        assert_eq!(redacted.redact("a MIIEvQIBADANBgkqhkiG9w0BAQ b"), "a *** b");
        assert_eq!(redacted.redact(key), "***");
    }

    #[test]
    fn without_secrets_the_text_is_not_copied() {
        assert!(matches!(Redactor::default().redact("text"), Cow::Borrowed("text")));
        assert!(matches!(redactor(&["another one"]).redact("text"), Cow::Borrowed("text")));
    }

    #[test]
    fn what_one_clone_learns_all_of_them_know_from_then_on() {
        let redactor = redactor(&["known-from-the-start"]);
        let (earlier, learner) = (redactor.clone(), redactor.clone());
        assert_eq!(earlier.redact("learned-later"), "learned-later");
        learner.add_secrets([&Secret::new("learned-later"), &Secret::new("short")]).unwrap();
        for clone in [&redactor, &earlier, &learner, &learner.clone()] {
            assert_eq!(clone.redact("learned-later, known-from-the-start, short"), "***, ***, short");
            assert_eq!(clone.redact_json(r#"["learned-later"]"#), r#"["***"]"#);
            assert!(matches!(clone.redact("text"), Cow::Borrowed("text")));
        }
        assert_eq!(redactor.replaced_count(), 12);
        learner.add_secrets([&Secret::new("learned-later")]).unwrap();
        assert_eq!(learner.shared.lessons.load(Ordering::Relaxed), 2, "nothing was new the last time");
    }

    #[test]
    fn what_several_threads_learn_at_once_is_all_known() {
        let redactor = Redactor::default();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let clone = redactor.clone();
                scope.spawn(move || clone.add_secrets([&Secret::new(format!("secret-{number}-x"))]).unwrap());
            }
        });
        for number in 0..8 {
            assert_eq!(redactor.redact(&format!("secret-{number}-x")), "***");
        }
    }

    #[test]
    fn names_that_contain_a_word_for_a_secret_are_secret_and_others_are_not() {
        for name in
            ["OPENAI_API_KEY", "HF_TOKEN", "DBPASSWORD", "X-Auth", "Cookie", "my_credentials", "apikey"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["PATH", "HOME", "GIT_AUTHOR_EMAIL", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "LANG"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn json_stays_json_and_numbers_are_no_secrets() {
        let redactor = redactor(&["12345678", "pass\"word\\"]);
        for (text, expected) in [
            (r#"{"n":12345678,"t":"a 12345678"}"#, r#"{"n":12345678,"t":"a ***"}"#),
            (r#"["pass\"word\\", "\"12345678\""]"#, r#"["***", "\"***\""]"#),
            (r#""nothing here""#, r#""nothing here""#),
        ] {
            assert_eq!(redactor.redact_json(text), expected, "{text}");
        }
        let odd = super::tests::redactor(&["abcdefgh\\"]);
        assert_eq!(
            odd.redact_json(r#"{"n":1,"t":"abcdefgh\\x\"abcdefgh\"y"}"#),
            r#"{"n":1,"t":"***x\"abcdefgh\"y"}"#
        );
    }

    proptest! {
        #[test]
        fn no_text_keeps_a_secret(secret in "[!-)+-~]{9,24}", before in ".{0,9}", after in ".{0,9}") {
            let redactor = redactor(&[&secret]);
            let text = format!("{before}{secret}{after}");
            prop_assert!(!redactor.redact(&text).contains(&secret));
        }

        #[test]
        fn base64_of_a_text_with_a_secret_is_no_way_round(
            secret in "[a-zA-Z0-9_-]{12,32}", before in "[ -~]{0,9}", after in "[ -~]{0,9}",
        ) {
            let redactor = redactor(&[&secret]);
            for encoded in [STANDARD.encode(format!("{before}{secret}{after}")), URL_SAFE.encode(format!("{before}{secret}{after}"))] {
                let kept = redactor.redact(&encoded).into_owned();
                prop_assert!(kept.contains(HIDDEN), "{encoded} is kept as {kept}");
            }
        }
    }
}
