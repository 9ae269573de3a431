//! Bytes as JSON text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowmill_core::json_text::write_string_bytes;

/// Appends bytes that may be text: as text if they are UTF-8, otherwise as Base64.
pub(super) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    if simdutf8::basic::from_utf8(bytes).is_ok() {
        write_string_bytes(bytes, out);
        return;
    }
    out.push(b'"');
    let start = out.len();
    out.resize(start + base64::encoded_len(bytes.len(), true).unwrap_or(0), 0);
    // The buffer is always large enough.
    let written = STANDARD.encode_slice(bytes, out.get_mut(start..).unwrap_or_default());
    out.truncate(start + written.unwrap_or(0));
    out.push(b'"');
}

/// Appends the sixteen bytes of a UUID.
pub(super) fn write_uuid(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
    out.push(b'"');
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.push(digit(byte >> 4));
        out.push(digit(byte & 15));
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_where_they_can_be() {
        let mut out = Vec::new();
        write_bytes(b"caf\xc3\xa9 \"", &mut out);
        write_bytes(b"caf\xe9", &mut out);
        write_uuid(&std::array::from_fn::<u8, 16, _>(|at| at as u8 * 17), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, r#""café \"""Y2Fm6Q==""00112233-4455-6677-8899-aabbccddeeff""#);
    }
}
