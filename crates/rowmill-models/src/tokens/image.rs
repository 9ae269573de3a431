//! The size of a picture, read from its first bytes.

/// Width and height in pixels of a PNG, GIF, JPEG or WebP.
pub(super) fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    let found = png(bytes).or_else(|| gif(bytes)).or_else(|| jpeg(bytes)).or_else(|| webp(bytes));
    found.filter(|(width, height)| *width > 0 && *height > 0)
}

fn big(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn big_short(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn small_short(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    Some((big(bytes, 16)?, big(bytes, 20)?))
}

fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    bytes.strip_prefix(b"GIF8")?;
    Some((small_short(bytes, 6)?, small_short(bytes, 8)?))
}

/// The size is in the first frame header; segments before it are skipped.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    bytes.strip_prefix(b"\xff\xd8")?;
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        match *bytes.get(at + 1)? {
            // Fill bytes, and markers without a segment.
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            // Frame headers; 0xc4, 0xc8 and 0xcc are other segments.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((big_short(bytes, at + 7)?, big_short(bytes, at + 5)?));
            }
            _ => at += 2 + big_short(bytes, at + 2)? as usize,
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    bytes.strip_prefix(b"RIFF")?;
    let triple = |at: usize| {
        let [low, middle, high] = bytes.get(at..at + 3)?.try_into().ok()?;
        Some(u32::from_le_bytes([low, middle, high, 0]))
    };
    match bytes.get(8..16)? {
        b"WEBPVP8X" => Some((triple(24)? + 1, triple(27)? + 1)),
        b"WEBPVP8 " => Some((small_short(bytes, 26)? & 0x3fff, small_short(bytes, 28)? & 0x3fff)),
        b"WEBPVP8L" => {
            let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_size_is_read_from_every_format() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0";
        let gif = b"GIF89a\x80\x02\xe0\x01\xf7\0\0";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc4\0\x03x\xff\xc2\0\x11\x08\x01\xe0\x02\x80\x03";
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01";
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";
        // 639 in the first 14 bits, 479 in the next.
        let lossless =
            [&b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f"[..], &(639_u32 | 479 << 14).to_le_bytes()].concat();
        for picture in [&png[..], gif, jpeg, lossy, extended, &lossless] {
            assert_eq!(dimensions(picture), Some((640, 480)), "{picture:?}");
        }
        for other in [&b""[..], b"%PDF-1.4", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a\0\0\0\0"] {
            assert_eq!(dimensions(other), None, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(start in 0usize..4, rest in proptest::collection::vec(any::<u8>(), 0..80)) {
            let starts: [&[u8]; 4] = [b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8", b"RIFF\0\0\0\0WEBPVP8X"];
            dimensions(&[starts[start], &rest].concat());
        }
    }
}
