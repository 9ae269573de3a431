//! Percent-encoding in addresses.

/// Text without percent-encoding; unchanged if the result would not be text.
pub(crate) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        rest = match (first, digit(0), digit(1)) {
            // Two digits make less than 256.
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                after.get(2..).unwrap_or_default()
            }
            _ => {
                bytes.push(*first);
                after
            }
        };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
