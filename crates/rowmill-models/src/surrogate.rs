//! Lone halves of surrogate pairs, which some servers write and Rust text cannot contain.

/// The replacement for half a pair.
const REPLACEMENT: &[u8] = br"\ufffd";

/// `body` with every lone half of a surrogate pair replaced, or `None` if there is none. An answer that was
/// paid for is not lost because of one letter.
pub(crate) fn replace_half_surrogates(body: &[u8]) -> Option<Vec<u8>> {
    let mut mended = Vec::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(start) = body.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\\')) {
        let start = at + start;
        match (unit(body, start), unit(body, start + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at = start + 12,
            (Some(0xd800..=0xdfff), _) => {
                mended.extend_from_slice(body.get(kept..start).unwrap_or_default());
                mended.extend_from_slice(REPLACEMENT);
                at = start + 6;
                kept = at;
            }
            // Any other escape: the character after the backslash does not start another one.
            _ => at = start + 2,
        }
    }
    if kept == 0 {
        return None;
    }
    mended.extend_from_slice(body.get(kept..).unwrap_or_default());
    Some(mended)
}

/// The code unit of an escape such as `\ud83d` at `start`.
fn unit(body: &[u8], start: usize) -> Option<u32> {
    let digits = body.get(start..start + 6)?.strip_prefix(br"\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::replace_half_surrogates;

    #[test]
    fn halves_are_replaced_and_everything_else_stays() {
        for (body, expected) in [
            (r#"{"a":"x\ud83d"}"#, Some(r#"{"a":"x\ufffd"}"#)),
            (
                r#""\uDE00 \ud83d\ude00 \ud83d\ud83d\ude00""#,
                Some(r#""\ufffd \ud83d\ude00 \ufffd\ud83d\ude00""#),
            ),
            (r#""\ud83d\n""#, Some(r#""\ufffd\n""#)),
            (r#""\ud83d\ude00""#, None),
            (r#""\\ud83d""#, None),
            (r#""plain \u00e9 \""#, None),
            (r#""\ud8"#, None),
        ] {
            let mended =
                replace_half_surrogates(body.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(mended.as_deref(), expected, "{body}");
        }
    }
}
