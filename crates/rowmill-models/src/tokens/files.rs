//! Estimates the tokens of files before a call.

use memchr::memmem;
use rowmill_types::Attachment;

use super::TokenCounter;
use super::image::dimensions;
use crate::files::{FileForm, is_wave};

/// How a family of models counts files other than text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileTokenRule {
    /// How images are counted.
    images: ImageTokenRule,
    /// The tokens of a PDF page, its text and its image together.
    page: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImageTokenRule {
    /// OpenAI: a base number of tokens, and a number for each tile of 512 pixels, after the picture is scaled
    /// to fit 2048 pixels and its short side to 768.
    Tiles(u64, u64),
    /// OpenAI's small models: patches of 32 pixels, at most 1536, times this many hundredths.
    Patches(u64),
    /// Anthropic: the area divided by 750, after the long side is scaled to at most this many pixels; at most
    /// this many tokens.
    Area(u64, u64),
    /// Gemini before 3: 258, or 258 for each tile of 768 pixels of a larger picture.
    GeminiTiles,
    /// The same number for every picture.
    Constant(u64),
}

impl FileTokenRule {
    /// The assumption for an unknown model.
    pub(super) const UNKNOWN: Self = Self { images: ImageTokenRule::Constant(PICTURE), page: 1500 };
}

/// The tokens of a picture of unknown size for an unknown model.
const PICTURE: u64 = 1000;

/// The assumed bytes of a PDF page, if nothing better is known.
const PAGE_BYTES: u64 = 50_000;

/// Tokens per second of audio: Gemini's 32, the highest documented number.
const SOUND_SECOND: u64 = 32;
/// Bytes per second of compressed audio, at about 128 kilobits per second.
const SOUND_BYTES: u64 = 16_000;

/// By the start of a model's name, according to the vendors' guides; the first match counts.
const VISIONS: &[(&str, FileTokenRule)] = &[
    ("gpt-4o-mini", FileTokenRule { images: ImageTokenRule::Tiles(2833, 5667), page: 6000 }),
    ("gpt-4.1-mini", FileTokenRule { images: ImageTokenRule::Patches(162), page: 1500 }),
    ("gpt-4.1-nano", FileTokenRule { images: ImageTokenRule::Patches(246), page: 2000 }),
    ("gpt-5-mini", FileTokenRule { images: ImageTokenRule::Patches(162), page: 1500 }),
    ("gpt-5-nano", FileTokenRule { images: ImageTokenRule::Patches(246), page: 2000 }),
    ("o4-mini", FileTokenRule { images: ImageTokenRule::Patches(172), page: 1500 }),
    ("gpt-5", FileTokenRule { images: ImageTokenRule::Tiles(70, 140), page: 1500 }),
    ("gpt-4", FileTokenRule { images: ImageTokenRule::Tiles(85, 170), page: 1500 }),
    ("o1", FileTokenRule { images: ImageTokenRule::Tiles(75, 150), page: 1500 }),
    ("o3", FileTokenRule { images: ImageTokenRule::Tiles(75, 150), page: 1500 }),
    ("claude-opus-4-7", FileTokenRule { images: ImageTokenRule::Area(2576, 4784), page: 3000 }),
    ("claude-opus-4-8", FileTokenRule { images: ImageTokenRule::Area(2576, 4784), page: 3000 }),
    ("claude-opus-5", FileTokenRule { images: ImageTokenRule::Area(2576, 4784), page: 3000 }),
    ("claude-sonnet-5", FileTokenRule { images: ImageTokenRule::Area(2576, 4784), page: 3000 }),
    ("claude", FileTokenRule { images: ImageTokenRule::Area(1568, 1600), page: 3000 }),
    ("gemini-1", FileTokenRule { images: ImageTokenRule::Constant(258), page: 258 }),
    ("gemini-2", FileTokenRule { images: ImageTokenRule::GeminiTiles, page: 258 }),
    ("gemini", FileTokenRule { images: ImageTokenRule::Constant(1120), page: 560 }),
];

/// How a model with this name, without its vendor, counts files other than text.
pub(super) fn file_token_rule(name: &str) -> FileTokenRule {
    let known = VISIONS.iter().find(|(start, _)| name.starts_with(start));
    known.map_or(FileTokenRule::UNKNOWN, |(_, vision)| *vision)
}

/// The tokens of a file.
pub(super) fn file_tokens(counter: &TokenCounter, vision: FileTokenRule, file: &Attachment) -> u64 {
    if let Some(text) = file.text() {
        return counter.count(text) + counter.count(&file.name) + 4;
    }
    let bytes = file.bytes.as_ref();
    match FileForm::from_media_type(&file.media_type) {
        FileForm::Image => vision.images.tokens(dimensions(bytes)),
        FileForm::Audio => seconds(&file.media_type, bytes).saturating_mul(SOUND_SECOND),
        // A file of unknown kind is counted as if it had pages.
        FileForm::Pdf | FileForm::Text | FileForm::Other => pages(bytes).saturating_mul(vision.page),
    }
}

impl ImageTokenRule {
    fn tokens(self, size: Option<(u32, u32)>) -> u64 {
        let Some((width, height)) = size.map(|(width, height)| (u64::from(width), u64::from(height))) else {
            return match self {
                Self::Constant(tokens) => tokens,
                // The count of a picture of the largest size that the model looks at.
                Self::Area(_, most) => most,
                other => other.tokens(Some((1024, 1024))),
            };
        };
        match self {
            Self::Constant(tokens) => tokens,
            Self::Tiles(base, each) => {
                let (width, height) = shrunk_to_short(shrunk_to_long((width, height), 2048), 768);
                base + each * width.div_ceil(512) * height.div_ceil(512)
            }
            Self::Patches(hundredths) => {
                let patches = width.div_ceil(32).saturating_mul(height.div_ceil(32)).min(1536);
                (patches * hundredths).div_ceil(100)
            }
            Self::Area(side, most) => {
                let (width, height) = shrunk_to_long((width, height), side);
                (width * height).div_ceil(750).clamp(1, most)
            }
            Self::GeminiTiles if width <= 384 && height <= 384 => 258,
            Self::GeminiTiles => 258 * width.div_ceil(768).saturating_mul(height.div_ceil(768)),
        }
    }
}

/// The size of a picture once its long side has at most `most` pixels.
fn shrunk_to_long((width, height): (u64, u64), most: u64) -> (u64, u64) {
    let long = width.max(height).max(1);
    if long <= most { (width, height) } else { (scaled(width, most, long), scaled(height, most, long)) }
}

/// The size of a picture once its short side has at most `most` pixels.
fn shrunk_to_short((width, height): (u64, u64), most: u64) -> (u64, u64) {
    let short = width.min(height).max(1);
    if short <= most { (width, height) } else { (scaled(width, most, short), scaled(height, most, short)) }
}

fn scaled(side: u64, to: u64, from: u64) -> u64 {
    (side * to / from).max(1)
}

/// The pages of a PDF: its page objects, or else the count in its page tree, or else an estimate from its
/// size.
fn pages(pdf: &[u8]) -> u64 {
    let mut found: u64 = 0;
    for at in memmem::find_iter(pdf, b"/Type") {
        let rest = pdf.get(at + 5..).unwrap_or_default().trim_ascii_start();
        let is_page = rest.strip_prefix(b"/Page").is_some_and(|after| {
            // `/FetchedPages` is the page tree itself.
            !after.first().is_some_and(u8::is_ascii_alphanumeric)
        });
        found += u64::from(is_page);
    }
    if found > 0 {
        return found;
    }
    let counts = memmem::find_iter(pdf, b"/Count").filter_map(|at| {
        let rest = pdf.get(at + 6..)?.trim_ascii_start();
        let digits = rest.split(|byte| !byte.is_ascii_digit()).next()?;
        std::str::from_utf8(digits).ok()?.parse::<u64>().ok()
    });
    let reported = counts.max().filter(|count| (1..100_000).contains(count));
    reported.unwrap_or_else(|| (pdf.len() as u64).div_ceil(PAGE_BYTES).max(1))
}

/// The length of an audio file, in seconds.
fn seconds(media_type: &str, bytes: &[u8]) -> u64 {
    let byte_rate = bytes.get(28..32).and_then(|rate| Some(u32::from_le_bytes(rate.try_into().ok()?)));
    let rate = byte_rate.filter(|rate| is_wave(media_type) && *rate > 0).map_or(SOUND_BYTES, u64::from);
    (bytes.len() as u64).div_ceil(rate).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_counted_as_the_guides_say() {
        for (model, size, tokens) in [
            // OpenAI's own examples.
            ("gpt-4o", (1024, 1024), 765),
            ("gpt-4o", (2048, 4096), 1105),
            ("gpt-5", (1024, 1024), 70 + 140 * 4),
            ("gpt-4.1-mini", (1024, 1024), 1659),
            // Anthropic's: 200 by 200 pixels are about 54 tokens, a megapixel about 1334.
            ("claude-sonnet-4-5", (200, 200), 54),
            ("claude-sonnet-4-5", (1000, 1000), 1334),
            ("claude-sonnet-4-5", (8000, 8000), 1600),
            ("claude-opus-4-7", (8000, 8000), 4784),
            // Gemini's: 258 up to 384 pixels, else by tiles.
            ("gemini-2.5-flash", (384, 384), 258),
            ("gemini-2.5-flash", (960, 540), 516),
            ("gemini-3-pro", (100, 100), 1120),
            ("some-model", (100, 100), PICTURE),
        ] {
            assert_eq!(file_token_rule(model).images.tokens(Some(size)), tokens, "{model} {size:?}");
        }
        assert_eq!(file_token_rule("gpt-4o").images.tokens(None), 765);
        assert_eq!(file_token_rule("claude-x").images.tokens(None), 1600);
    }

    #[test]
    fn pages_are_counted_or_guessed() {
        for (pdf, expected) in [
            (&b"%PDF-1.4 /Type /Pages /Count 2 <</Type/Page/X 1>> << /Type /Page >>"[..], 2),
            (b"%PDF-1.7 objects are packed away /Count 17 /Count 5", 17),
            (b"%PDF-1.7 nothing is told", 1),
            (&[b'x'; 120_000], 3),
        ] {
            assert_eq!(pages(pdf), expected);
        }
    }

    #[test]
    fn a_sound_is_as_long_as_its_header_says() {
        let mut wave = vec![0; 80_044];
        wave[28..32].copy_from_slice(&8000_u32.to_le_bytes());
        assert_eq!(seconds("audio/x-wav", &wave), 11);
        assert_eq!(seconds("audio/mpeg", &wave), 6);
        assert_eq!(seconds("audio/wav", b"short"), 1);
    }
}
