//! Taking secrets out of texts that are kept.

use std::borrow::Cow;
use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use rowmill_types::{Problem, ProblemCode, Secret};

/// Shorter secrets are left alone: they are in too many innocent texts, and a text in which
/// every `test` is a `***` tells nothing while it tells which word the secret is.
const LEAST: usize = 6;
/// A line of a secret that has several is looked for by itself when it is this long.
const LEAST_LINE: usize = 20;
/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// Replaces secrets by `***`, wherever they stand in a text.
///
/// A secret is found as it is, as JSON text has it (also within JSON within JSON), in an
/// address, and in base64 wherever in the encoded bytes it begins. Secrets of fewer than six
/// bytes are not looked for.
///
/// ```
/// # use {rowmill_core::redact::Redactor, rowmill_types::Secret};
/// let redactor = Redactor::new([&Secret::new("sk-1/2 3")]).unwrap();
/// assert_eq!(redactor.redact("key sk-1/2 3, ?key=sk-1%2F2%203"), "key ***, ?key=***");
/// assert_eq!(redactor.redact("nothing"), "nothing");
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    /// `None` where there is nothing to be found.
    forms: Option<AhoCorasick>,
}

impl Redactor {
    /// Looks for these secrets.
    ///
    /// # Errors
    ///
    /// There are too many of them to be looked for; then none may be written.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Result<Self, Problem> {
        let mut forms: Vec<String> = secrets.into_iter().flat_map(|secret| forms(secret.reveal())).collect();
        forms.sort_unstable();
        forms.dedup();
        if forms.is_empty() {
            return Ok(Self::default());
        }
        let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(forms);
        let forms = built.map_err(|error| {
            Problem::new(ProblemCode::Internal, "secrets cannot be looked for in traces").cause(error)
        })?;
        Ok(Self { forms: Some(forms) })
    }

    /// The text without secrets; the text itself where it has none.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(forms) = self.forms.as_ref().filter(|forms| forms.is_match(text)) else {
            return Cow::Borrowed(text);
        };
        let mut out = String::with_capacity(text.len());
        forms.replace_all_with(text, &mut out, |_, _, out| {
            out.push_str(HIDDEN);
            true
        });
        Cow::Owned(out)
    }
}

/// Tells how many there are and nothing else.
impl fmt::Debug for Redactor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Redactor({} forms)", self.forms.as_ref().map_or(0, AhoCorasick::patterns_len))
    }
}

/// Everything that a secret may look like in a text.
fn forms(secret: &str) -> Vec<String> {
    let secret = secret.trim();
    if secret.len() < LEAST {
        return Vec::new();
    }
    let mut forms = Vec::new();
    let lines = secret.lines().map(str::trim).filter(|line| line.len() >= LEAST_LINE);
    for text in std::iter::once(secret).chain(lines) {
        let once = escaped(text);
        forms.push(once.replace('/', "\\/"));
        forms.push(escaped(&once));
        forms.push(escaped_ascii(&once));
        forms.push(percent(text, &|byte| format!("%{byte:02X}")));
        forms.push(percent(text, &|byte| format!("%{byte:02x}")));
        forms.push(once);
        forms.push(text.to_owned());
    }
    for begins_at in 0..3 {
        forms.extend(base64_core(secret, begins_at, &STANDARD_NO_PAD));
        forms.extend(base64_core(secret, begins_at, &URL_SAFE_NO_PAD));
    }
    forms
}

/// The inside of a JSON string.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    crate::json_text::write_string(text, &mut out);
    out.strip_prefix('"').and_then(|inside| inside.strip_suffix('"')).unwrap_or_default().to_owned()
}

/// The same in ASCII, as some programs write it.
fn escaped_ascii(escaped: &str) -> String {
    let mut units = [0; 2];
    let mut out = String::with_capacity(escaped.len());
    for letter in escaped.chars() {
        if letter.is_ascii() {
            out.push(letter);
        } else {
            letter.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

fn percent(text: &str, encoded: &dyn Fn(u8) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&encoded(byte));
        }
    }
    out
}

/// The letters that stand for the secret in base64, whatever comes before and after it, where
/// `begins_at` bytes of a group of three come before.
fn base64_core(secret: &str, begins_at: usize, engine: &impl base64::Engine) -> Option<String> {
    let mut bytes = vec![0; begins_at];
    bytes.extend_from_slice(secret.as_bytes());
    let encoded = engine.encode(&bytes);
    // A letter holds six bits; those that also hold bits of a neighbour differ from text to text.
    let first = (begins_at * 8).div_ceil(6);
    let end = bytes.len() * 8 / 6;
    encoded.get(first..end).filter(|core| core.len() >= LEAST).map(str::to_owned)
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
        let redactor = redactor(&["pass\"wörd/1", "abcdef"]);
        let json = serde_json::to_string("pass\"wörd/1").unwrap();
        for (text, expected) in [
            ("pass\"wörd/1".to_owned(), "***".to_owned()),
            (json.clone(), "\"***\"".to_owned()),
            (serde_json::to_string(&json).unwrap(), r#""\"***\"""#.to_owned()),
            (r#"pass\"wörd\/1"#.to_owned(), "***".to_owned()),
            (r#"pass\"w\u00f6rd/1"#.to_owned(), "***".to_owned()),
            ("?p=pass%22w%C3%B6rd%2F1&q".to_owned(), "?p=***&q".to_owned()),
            ("xabcdefabcdefy".to_owned(), "x******y".to_owned()),
        ] {
            assert_eq!(redactor.redact(&text), expected, "{text}");
        }
    }

    #[test]
    fn the_longest_secret_is_taken_and_short_ones_are_left_alone() {
        let redactor = redactor(&["secret", "secret-and-more", "tiny", " padded-value\n", ""]);
        assert_eq!(redactor.redact("secret-and-more, secret-and"), "***, ***-and");
        assert_eq!(redactor.redact("tiny padded-value."), "tiny ***.");
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
        assert!(matches!(redactor(&["another"]).redact("text"), Cow::Borrowed("text")));
    }

    proptest! {
        #[test]
        fn no_text_keeps_a_secret(secret in "[!-)+-~]{6,24}", before in ".{0,9}", after in ".{0,9}") {
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
