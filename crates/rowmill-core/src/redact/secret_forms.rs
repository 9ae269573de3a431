//! The forms in which secrets appear in texts.

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Settings that may be used in place of a secret.
const HARMLESS_VALUES: &[&str] =
    &["anonymous", "disabled", "optional", "required", "undefined", "keychain", "changeme", "password"];
/// Shorter secrets are ignored: they occur in too many innocent texts, and a text in which every `test` becomes `***`
/// is useless and at the same time reveals the secret.
const LEAST: usize = 8;
/// A line of a multi-line secret is searched for separately if it has at least this length.
const LEAST_LINE: usize = 20;

/// All forms in which a secret may appear in a text.
pub(super) fn secret_forms(secret: &str) -> Vec<String> {
    let secret = secret.trim();
    if secret.len() < LEAST || HARMLESS_VALUES.contains(&secret.to_ascii_lowercase().as_str()) {
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

/// The base64 characters of the secret, whatever precedes and follows it, if `begins_at` bytes of a group of three
/// precede it.
fn base64_core(secret: &str, begins_at: usize, engine: &impl base64::Engine) -> Option<String> {
    let mut bytes = vec![0; begins_at];
    bytes.extend_from_slice(secret.as_bytes());
    let encoded = engine.encode(&bytes);
    // A base64 character holds six bits; those that also hold bits of a neighbour vary.
    let first = (begins_at * 8).div_ceil(6);
    let end = bytes.len() * 8 / 6;
    encoded.get(first..end).filter(|core| core.len() >= LEAST).map(str::to_owned)
}
