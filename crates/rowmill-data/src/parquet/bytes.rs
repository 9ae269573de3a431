//! Bytes as JSON text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowmill_core::json_text::write_string;

/// A value that should be text is not valid UTF-8.
#[derive(Debug)]
pub(super) struct NotText;

/// Appends what must be text.
pub(super) fn write_text(bytes: &[u8], out: &mut String) -> Result<(), NotText> {
    write_string(simdutf8::basic::from_utf8(bytes).map_err(|_| NotText)?, out);
    Ok(())
}

/// Appends bytes that may be text: as text where they are UTF-8, otherwise as Base64.
pub(super) fn write_bytes(bytes: &[u8], out: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => write_string(text, out),
        Err(_) => {
            out.push('"');
            STANDARD.encode_string(bytes, out);
            out.push('"');
        }
    }
}

/// Appends the sixteen bytes of a UUID.
pub(super) fn write_uuid(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS.get(usize::from(value)).copied().unwrap_or(b'0'));
    out.push('"');
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push(digit(byte >> 4));
        out.push(digit(byte & 15));
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_where_they_can_be() {
        let mut out = String::new();
        write_bytes(b"caf\xc3\xa9 \"", &mut out);
        write_bytes(b"caf\xe9", &mut out);
        write_uuid(&std::array::from_fn::<u8, 16, _>(|at| at as u8 * 17), &mut out);
        assert_eq!(out, r#""café \"""Y2Fm6Q==""00112233-4455-6677-8899-aabbccddeeff""#);
        assert!(write_text(b"caf\xe9", &mut out).is_err());
    }
}
