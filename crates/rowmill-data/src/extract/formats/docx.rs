//! Extracts the text of DOCX: an archive with an XML file of paragraphs and tables.

use std::borrow::Cow;
use std::io::{Cursor, Read};

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use zip::ZipArchive;

/// The maximum decompressed size of a part.
const MOST_XML: u64 = 256 * 1024 * 1024;

/// The text of the document and of its footnotes and endnotes. Headings are marked with `#`, list items with
/// `-`; table cells are separated by tabs, one line per table row.
pub(super) fn docx_text(bytes: &[u8]) -> Result<String, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("cannot be read as DOCX: {error}");
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| unreadable(&error))?;
    let is_main = |name: &Cow<'_, str>| name.starts_with("word/document") && name.ends_with(".xml");
    let main = archive.file_names().flatten().filter(is_main).min().map(Cow::into_owned);
    let main = main.ok_or_else(|| unreadable(&"it has no `word/document.xml`"))?;
    let mut body = DocxBody::default();
    for part in [main.as_str(), "word/footnotes.xml", "word/endnotes.xml"] {
        if archive.index_for_name(part).is_none() {
            continue;
        }
        let mut xml = Vec::new();
        archive
            .by_name(part)
            .map_err(|error| unreadable(&error))?
            .take(MOST_XML + 1)
            .read_to_end(&mut xml)
            .map_err(|error| unreadable(&error))?;
        if xml.len() as u64 > MOST_XML {
            return Err(format!("cannot be read as DOCX: `{part}` has more than {} MiB", MOST_XML >> 20));
        }
        let xml = std::str::from_utf8(&xml).map_err(|_| unreadable(&format!("`{part}` is not UTF-8")))?;
        body.read(xml).map_err(|error| unreadable(&format!("`{part}`: {error}")))?;
    }
    Ok(body.out)
}

/// What was read so far. Text boxes can be inside paragraphs, and tables inside cells, so there can be
/// several unfinished ones of each.
#[derive(Debug, Default)]
struct DocxBody {
    out: String,
    paragraphs: Vec<DocxParagraph>,
    /// The finished cells of unfinished table rows.
    rows: Vec<Vec<String>>,
    /// The texts of unfinished cells.
    cells: Vec<String>,
    /// How many open elements deep inside something that is not text of the document.
    skipped: usize,
    /// Whether the current text is text of the document.
    in_text: bool,
}

#[derive(Debug, Default)]
struct DocxParagraph {
    text: String,
    heading: usize,
    is_item: bool,
}

impl DocxBody {
    fn read(&mut self, xml: &str) -> Result<(), quick_xml::Error> {
        let mut reader = Reader::from_str(xml);
        loop {
            match reader.read_event()? {
                Event::Start(tag) if self.skipped > 0 || is_skipped(&tag) => self.skipped += 1,
                Event::End(_) if self.skipped > 0 => self.skipped -= 1,
                Event::Eof => return Ok(()),
                _ if self.skipped > 0 => {}
                Event::Start(tag) => self.start(&tag),
                Event::Empty(tag) if !is_skipped(&tag) => {
                    self.start(&tag);
                    self.end(tag.local_name().as_ref());
                }
                Event::End(tag) => self.end(tag.local_name().as_ref()),
                Event::Text(text) if self.in_text => self.push(&text.xml10_content()),
                Event::CData(text) if self.in_text => self.push(&text.xml10_content()),
                Event::GeneralRef(name) if self.in_text => {
                    if let Some(character) = name.resolve_char_ref()? {
                        self.push(character.encode_utf8(&mut [0; 4]));
                    } else if let Some(text) = resolve_predefined_entity(&name) {
                        self.push(text);
                    }
                }
                _ => {}
            }
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>) {
        match tag.local_name().as_ref() {
            "p" => self.paragraphs.push(DocxParagraph::default()),
            "t" => self.in_text = true,
            "tab" => self.push("\t"),
            "br" | "cr" => self.push("\n"),
            "noBreakHyphen" => self.push("-"),
            "tr" => self.rows.push(Vec::new()),
            "tc" => self.cells.push(String::new()),
            "numPr" => {
                if let Some(paragraph) = self.paragraphs.last_mut() {
                    paragraph.is_item = true;
                }
            }
            "pStyle" => {
                if let Some(paragraph) = self.paragraphs.last_mut() {
                    paragraph.heading = heading_level(tag);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "t" => self.in_text = false,
            "p" => {
                if let Some(paragraph) = self.paragraphs.pop() {
                    self.finish(&paragraph);
                }
            }
            "tc" => {
                if let Some(cell) = self.cells.pop() {
                    match self.rows.last_mut() {
                        Some(row) => row.push(cell),
                        None => self.emit(&cell),
                    }
                }
            }
            "tr" => {
                if let Some(row) = self.rows.pop() {
                    self.emit(&row.join("\t"));
                }
            }
            "tbl" => self.emit(""),
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        if let Some(paragraph) = self.paragraphs.last_mut() {
            paragraph.text.push_str(text);
        }
    }

    fn finish(&mut self, paragraph: &DocxParagraph) {
        let text = &paragraph.text;
        if text.trim().is_empty() {
            self.emit("");
        } else if paragraph.heading > 0 {
            self.emit("");
            self.emit(&format!("{} {text}", "#".repeat(paragraph.heading)));
            self.emit("");
        } else if paragraph.is_item {
            self.emit(&format!("- {text}"));
        } else {
            self.emit(text);
        }
    }

    /// Adds a line to the innermost cell, or to the text if there is no cell.
    fn emit(&mut self, line: &str) {
        match self.cells.last_mut() {
            Some(cell) => {
                for word in line.split_whitespace() {
                    if !cell.is_empty() {
                        cell.push(' ');
                    }
                    cell.push_str(word);
                }
            }
            None => {
                self.out.push_str(line);
                self.out.push('\n');
            }
        }
    }
}

/// Elements whose text is not in the document or is a duplicate, and tab stops.
fn is_skipped(tag: &BytesStart<'_>) -> bool {
    matches!(tag.local_name().as_ref(), "Fallback" | "moveFrom" | "tabs")
}

/// The level of a heading, from the name of its style; 0 for anything else.
fn heading_level(tag: &BytesStart<'_>) -> usize {
    let style = tag.attributes().flatten().find(|attribute| attribute.key.local_name().as_ref() == "val");
    let Some(style) = style.map(|style| style.value.to_ascii_lowercase()) else { return 0 };
    if style == "title" {
        return 1;
    }
    let level = style.strip_prefix("heading").and_then(|level| level.trim().parse().ok());
    level.filter(|level| (1..=9).contains(level)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(xml: &str) -> String {
        let mut body = DocxBody::default();
        body.read(xml).unwrap();
        crate::extract::tidy(&body.out)
    }

    #[test]
    fn paragraphs_breaks_and_entities_are_kept() {
        let text = read(
            "<w:document><w:body><w:p><w:pPr><w:tabs><w:tab w:val='left'/></w:tabs></w:pPr><w:r><w:t>a &amp; b&#233;</w:t>\
             <w:tab/><w:t xml:space='preserve'> c</w:t><w:br/><w:t>d</w:t></w:r></w:p>\n  <w:p/><w:p><w:r>\
             <w:t>e</w:t><w:instrText>PAGE</w:instrText><w:delText>gone</w:delText></w:r></w:p></w:body></w:document>",
        );
        assert_eq!(text, "a & bé\t c\nd\n\ne");
    }

    #[test]
    fn headings_lists_and_tables_are_marked() {
        let text = read(
            "<d><p><pPr><pStyle val='Heading2'/></pPr><r><t>Prices</t></r></p>\
             <p><pPr><numPr/></pPr><r><t>one</t></r></p>\
             <tbl><tr><tc><p><r><t>a</t></r></p><p><r><t>b</t></r></p></tc><tc><p><r><t>1</t></r></p></tc></tr>\
             <tr><tc><tbl><tr><tc><p><r><t>in</t></r></p></tc><tc><p><r><t>ner</t></r></p></tc></tr></tbl></tc>\
             <tc/></tr></tbl><p><r><t>end</t></r></p></d>",
        );
        assert_eq!(text, "## Prices\n\n- one\na b\t1\nin ner\n\nend");
    }

    #[test]
    fn what_stands_twice_is_read_once() {
        let text = read(
            "<d><p><r><AlternateContent><Choice><txbxContent><p><r><t>box</t></r></p></txbxContent></Choice>\
             <Fallback><p><r><t>box</t></r></p></Fallback></AlternateContent><t>around</t></r></p>\
             <moveFrom><r><t>old</t></r></moveFrom></d>",
        );
        assert_eq!(text, "box\naround");
    }

    #[test]
    fn broken_xml_is_an_error() {
        assert!(DocxBody::default().read("<d><p><r><t>a</t></r></x></d>").is_err());
    }
}
