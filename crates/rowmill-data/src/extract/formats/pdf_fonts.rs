//! Fonts for Chinese, Japanese and Korean whose character codes PDF itself defines.
//!
//! Such a font only names its encoding, for example `GBK-EUC-H`, and expects the reader to know it. The PDF
//! library knows only encodings that are embedded in the document, so beforehand these fonts get a
//! description of the codes that the document uses with them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GB18030, SHIFT_JIS, UTF_16BE};
use pdf_extract::content::Content;
use pdf_extract::{Dictionary, Document, Object, ObjectId, Stream};

/// The width of half-width text, in thousandths of the height.
const HALF_WIDTH: i64 = 500;

/// An encoding that PDF defines.
#[derive(Debug, Clone, Copy)]
struct CodeForm {
    encoding: &'static Encoding,
    /// The codes: their length in bytes, the first and the last.
    codes: &'static [(usize, u32, u32)],
    /// What is added to a code before it is decoded.
    shift: u32,
}

const GB: CodeForm = CodeForm { encoding: GB18030, codes: &[(1, 0, 0x80), (2, 0x8140, 0xfefe)], shift: 0 };
const BIG: CodeForm = CodeForm { encoding: BIG5, codes: &[(1, 0, 0x80), (2, 0x8140, 0xfefe)], shift: 0 };
const KOREAN: CodeForm = CodeForm { encoding: EUC_KR, codes: &[(1, 0, 0x80), (2, 0x8141, 0xfefe)], shift: 0 };
const JAPANESE: CodeForm = CodeForm {
    encoding: SHIFT_JIS,
    codes: &[(1, 0, 0x80), (1, 0xa0, 0xdf), (2, 0x8140, 0x9ffc), (2, 0xe040, 0xfcfc)],
    shift: 0,
};
const JAPANESE_EUC: CodeForm =
    CodeForm { encoding: EUC_JP, codes: &[(1, 0, 0x80), (2, 0x8ea0, 0x8edf), (2, 0xa1a1, 0xfefe)], shift: 0 };
/// Rows and cells of the Japanese standard, without the bits that distinguish them from ASCII.
const JAPANESE_CELLS: CodeForm = CodeForm { encoding: EUC_JP, codes: &[(2, 0x2121, 0x7e7e)], shift: 0x8080 };
const UNICODE: CodeForm = CodeForm {
    encoding: UTF_16BE,
    codes: &[(2, 0, 0xd7ff), (2, 0xe000, 0xffff), (4, 0xd800_dc00, 0xdbff_dfff)],
    shift: 0,
};

/// Describes the encodings that the fonts of a document only name.
///
/// # Errors
///
/// A font names an unknown encoding.
pub(super) fn describe_encodings(document: &mut Document) -> Result<(), String> {
    let mut fonts = Vec::new();
    for (id, object) in &document.objects {
        let Ok(font) = object.as_dict() else { continue };
        let is_composite = font.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == b"Type0");
        let Ok(name) = font.get(b"Encoding").and_then(Object::as_name) else { continue };
        if !is_composite || name == b"Identity-H" || name == b"Identity-V" {
            continue;
        }
        let name = String::from_utf8_lossy(name).into_owned();
        let form = code_form(&name)
            .ok_or_else(|| format!("has text in the encoding `{name}`, which cannot be read"))?;
        fonts.push((*id, name, form));
    }
    if fonts.is_empty() {
        return Ok(());
    }
    let shown = shown_texts(document);
    let mut described: BTreeMap<String, (ObjectId, ObjectId)> = BTreeMap::new();
    for (id, name, form) in fonts {
        let (encoding, meaning) = match described.get(&name) {
            Some(known) => *known,
            None => {
                let encoding =
                    document.add_object(Stream::new(Dictionary::new(), form.code_map().into_bytes()));
                let meanings = form.meanings(&shown).into_bytes();
                let made = (encoding, document.add_object(Stream::new(Dictionary::new(), meanings)));
                described.insert(name, made);
                made
            }
        };
        describe_font(document, id, (encoding, meaning));
    }
    Ok(())
}

/// The encoding of this name, for either writing direction.
fn code_form(name: &str) -> Option<CodeForm> {
    if matches!(name, "H" | "V") {
        return Some(JAPANESE_CELLS);
    }
    let stem = name.strip_suffix("-H").or_else(|| name.strip_suffix("-V")).unwrap_or(name);
    Some(match stem {
        "GB-EUC" | "GBpc-EUC" | "GBK-EUC" | "GBKp-EUC" | "GBK2K" => GB,
        "B5pc" | "HKscs-B5" | "ETen-B5" | "ETenms-B5" => BIG,
        "KSC-EUC" | "KSCms-UHC" | "KSCms-UHC-HW" | "KSCpc-EUC" => KOREAN,
        "83pv-RKSJ" | "90ms-RKSJ" | "90msp-RKSJ" | "90pv-RKSJ" | "Add-RKSJ" | "Ext-RKSJ" => JAPANESE,
        "EUC" => JAPANESE_EUC,
        _ if stem.starts_with("Uni") && (stem.contains("-UCS2") || stem.contains("-UTF16")) => UNICODE,
        _ => return None,
    })
}

impl CodeForm {
    /// The codes in the form of an embedded encoding, each mapped to itself.
    ///
    /// The library takes half of the bytes of a range limit for the length of a code, and only one range per
    /// block; both are written so that it reads them correctly.
    fn code_map(self) -> String {
        let mut text = String::new();
        for (width, first, last) in self.codes {
            let digits = 4 * width;
            put(&mut text, format_args!("1 begincodespacerange\n<{first:0digits$x}> <{last:0digits$x}>\n"));
            put(
                &mut text,
                format_args!("endcodespacerange\n1 begincidrange\n<{first:08x}> <{last:08x}> 0\n"),
            );
            text.push_str("endcidrange\n");
        }
        text
    }

    /// The meanings of the codes in these texts, in the form of an embedded encoding.
    fn meanings(self, texts: &[Vec<u8>]) -> String {
        let mut meanings: BTreeMap<u32, String> = BTreeMap::new();
        for text in texts {
            for (width, code) in self.codes_of(text) {
                meanings.entry(code).or_insert_with(|| self.decoded(width, code));
            }
        }
        meanings.retain(|_, meaning| !meaning.is_empty());
        let mut text = format!("{} beginbfchar\n", meanings.len());
        for (code, meaning) in meanings {
            put(&mut text, format_args!("<{code:08x}> <"));
            meaning.encode_utf16().for_each(|unit| put(&mut text, format_args!("{unit:04x}")));
            text.push_str(">\n");
        }
        text.push_str("endbfchar\n");
        text
    }

    /// The codes of a text, with their length in bytes. The first invalid code ends them.
    fn codes_of(self, text: &[u8]) -> Vec<(usize, u32)> {
        let mut codes = Vec::new();
        let mut left = text;
        while !left.is_empty() {
            let code = |width: usize| {
                let bytes = left.get(..width)?;
                let code = bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
                let is_one = |form: &&(usize, u32, u32)| form.0 == width && (form.1..=form.2).contains(&code);
                self.codes.iter().find(is_one).map(|_| (width, code))
            };
            let Some((width, code)) = (1..=4).find_map(code) else { break };
            codes.push((width, code));
            left = left.get(width..).unwrap_or_default();
        }
        codes
    }

    /// The text of a code; empty if it has none.
    fn decoded(self, width: usize, code: u32) -> String {
        let bytes = (code + self.shift).to_be_bytes();
        let bytes = bytes.get(4 - width..).unwrap_or_default();
        let text = self.encoding.decode_without_bom_handling_and_without_replacement(bytes);
        text.map(|text| text.into_owned()).unwrap_or_default()
    }
}

/// Every text that the pages of a document show, including that of reused drawings.
fn shown_texts(document: &Document) -> Vec<Vec<u8>> {
    let pages = document.get_pages().into_values().filter_map(|page| document.get_page_content(page).ok());
    let is_form = |stream: &&Stream| {
        stream.dict.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == b"Form")
    };
    let streams = document.objects.values().filter_map(|object| object.as_stream().ok());
    let forms = streams.filter(is_form).filter_map(|stream| stream.get_plain_content().ok());
    let mut texts = Vec::new();
    for content in pages.chain(forms) {
        let Ok(content) = Content::decode(&content) else { continue };
        for operand in content.operations.iter().flat_map(|operation| &operation.operands) {
            match operand {
                Object::String(text, _) => texts.push(text.clone()),
                Object::Array(parts) => {
                    texts.extend(parts.iter().filter_map(|part| Some(part.as_str().ok()?.to_vec())))
                }
                _ => {}
            }
        }
    }
    texts
}

/// Sets the encoding of a font, and the meanings of its codes unless it has them. Its widths belong to other
/// codes, so all but the narrow letters get the default width.
fn describe_font(document: &mut Document, id: ObjectId, (encoding, meaning): (ObjectId, ObjectId)) {
    let Ok(font) = document.get_object_mut(id).and_then(Object::as_dict_mut) else { return };
    font.set("Encoding", Object::Reference(encoding));
    if !font.has(b"ToUnicode") {
        font.set("ToUnicode", Object::Reference(meaning));
    }
    let part =
        font.get(b"DescendantFonts").and_then(Object::as_array).ok().and_then(|parts| parts.first().cloned());
    let parts_id = font.get(b"DescendantFonts").and_then(Object::as_reference).ok();
    let part = part.or_else(|| document.get_object(parts_id?).ok()?.as_array().ok()?.first().cloned());
    let Some(Object::Reference(part)) = part else { return };
    let Ok(part) = document.get_object_mut(part).and_then(Object::as_dict_mut) else { return };
    let narrow = vec![Object::Integer(HALF_WIDTH); 0x5f];
    part.set("W", Object::Array(vec![Object::Integer(0x20), Object::Array(narrow)]));
    if !part.has(b"FontDescriptor") {
        part.set("FontDescriptor", Dictionary::new());
    }
}

/// Writing into a string cannot fail.
fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    let written = text.write_fmt(what);
    debug_assert!(written.is_ok(), "strings take everything");
}
