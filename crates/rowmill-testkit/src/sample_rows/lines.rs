//! Writes sample rows as text.

use std::io::{self, Write};

use jiff::ToSpan as _;
use rowmill_core::json_text::write_string;

use super::row::{DAYS, SampleRow};

const NAMES: [&str; 11] =
    ["id", "split", "score", "price", "flag", "day", "at", "title", "text", "tags", "meta"];

/// How many bytes are collected before they are written.
const BLOCK: usize = 1 << 20;

pub(super) fn write_jsonl(mut out: impl Write, rows: u64, seed: u64) -> io::Result<()> {
    let mut lines = LineBuffer::new();
    let mut block = Vec::with_capacity(BLOCK + 4096);
    for index in 0..rows {
        lines.row.make(seed, index);
        for (name, start) in NAMES.iter().zip(std::iter::once("{\"").chain(std::iter::repeat(",\""))) {
            block.extend_from_slice(start.as_bytes());
            block.extend_from_slice(name.as_bytes());
            block.extend_from_slice(b"\":");
            if !lines.write_json(name, &mut block) {
                block.extend_from_slice(b"null");
            }
        }
        block.extend_from_slice(b"}\n");
        flush(&mut block, &mut out, BLOCK)?;
    }
    flush(&mut block, &mut out, 0)?;
    out.flush()
}

pub(super) fn write_csv(mut out: impl Write, rows: u64, seed: u64) -> io::Result<()> {
    let mut lines = LineBuffer::new();
    let mut block = Vec::with_capacity(BLOCK + 4096);
    block.extend_from_slice(NAMES.join(",").as_bytes());
    block.push(b'\n');
    for index in 0..rows {
        lines.row.make(seed, index);
        for name in NAMES {
            lines.write_cell(name, &mut block);
            block.push(if name == "meta" { b'\n' } else { b',' });
        }
        flush(&mut block, &mut out, BLOCK)?;
    }
    flush(&mut block, &mut out, 0)?;
    out.flush()
}

fn flush(block: &mut Vec<u8>, out: &mut impl Write, from: usize) -> io::Result<()> {
    if block.len() >= from {
        out.write_all(block)?;
        block.clear();
    }
    Ok(())
}

/// A row, and texts that rows share.
struct LineBuffer {
    row: SampleRow,
    /// The text of every day that occurs in rows.
    days: Vec<String>,
}

impl LineBuffer {
    fn new() -> Self {
        let mut day = jiff::civil::date(2020, 1, 1);
        let mut days = Vec::new();
        for _ in 0..DAYS {
            days.push(day.to_string());
            day = day.saturating_add(1.day());
        }
        Self { row: SampleRow::default(), days }
    }

    fn day(&self, day: u16) -> &str {
        self.days.get(usize::from(day)).map_or("", String::as_str)
    }

    /// Appends a value as CSV.
    fn write_cell(&self, name: &str, out: &mut Vec<u8>) {
        let row = &self.row;
        match name {
            "split" => out.extend_from_slice(row.split.as_bytes()),
            "title" => quoted(&row.title, out),
            "text" => quoted(&row.text, out),
            "price" => {
                if let Some(price) = row.price {
                    push_price(price, out);
                }
            }
            "day" => out.extend_from_slice(row.day.map_or("", |day| self.day(day)).as_bytes()),
            "at" => self.push_at(out),
            "tags" | "meta" => {
                let mut json = Vec::new();
                if self.write_json(name, &mut json) {
                    quoted(&String::from_utf8_lossy(&json), out);
                }
            }
            _ => {
                self.write_json(name, out);
            }
        }
    }

    /// Appends a value as JSON; for null returns `false` and appends nothing.
    fn write_json(&self, name: &str, out: &mut Vec<u8>) -> bool {
        let row = &self.row;
        match name {
            "id" => out.extend_from_slice(itoa::Buffer::new().format(row.id).as_bytes()),
            "split" => write_string(row.split, out),
            "score" => match row.score {
                Some(score) => out.extend_from_slice(zmij::Buffer::new().format(score).as_bytes()),
                None => return false,
            },
            "price" => match row.price {
                Some(price) => {
                    out.push(b'"');
                    push_price(price, out);
                    out.push(b'"');
                }
                None => return false,
            },
            "flag" => match row.flag {
                Some(flag) => out.extend_from_slice(if flag { b"true".as_slice() } else { b"false" }),
                None => return false,
            },
            "day" => match row.day {
                Some(day) => write_string(self.day(day), out),
                None => return false,
            },
            "at" => {
                out.push(b'"');
                self.push_at(out);
                out.push(b'"');
            }
            "title" if row.title.is_empty() => return false,
            "title" => write_string(&row.title, out),
            "text" => write_string(&row.text, out),
            "tags" => return self.write_tags(out),
            _ => return self.write_meta(out),
        }
        true
    }

    fn write_tags(&self, out: &mut Vec<u8>) -> bool {
        let Some(tags) = &self.row.tags else { return false };
        out.push(b'[');
        for (at, tag) in tags.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_string(tag, out);
        }
        out.push(b']');
        true
    }

    fn write_meta(&self, out: &mut Vec<u8>) -> bool {
        let Some(meta) = &self.row.meta else { return false };
        out.extend_from_slice(b"{\"lang\":");
        write_string(meta.lang, out);
        out.extend_from_slice(b",\"stars\":");
        match meta.stars {
            Some(stars) => out.extend_from_slice(itoa::Buffer::new().format(stars).as_bytes()),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"source\":");
        match meta.source {
            Some(site) => {
                out.extend_from_slice(b"{\"site\":");
                write_string(site, out);
                out.push(b'}');
            }
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
        true
    }

    fn push_at(&self, out: &mut Vec<u8>) {
        let (day, second, microseconds) = self.row.at;
        out.extend_from_slice(self.day(day).as_bytes());
        for (separator, part) in [(b'T', second / 3600), (b':', second / 60 % 60), (b':', second % 60)] {
            out.push(separator);
            push_digits(part, 2, out);
        }
        if microseconds > 0 {
            out.push(b'.');
            push_digits(microseconds, 6, out);
        }
    }
}

fn push_price(price: i64, out: &mut Vec<u8>) {
    if price < 0 {
        out.push(b'-');
    }
    let price = price.unsigned_abs();
    out.extend_from_slice(itoa::Buffer::new().format(price / 100).as_bytes());
    out.push(b'.');
    push_digits((price % 100) as u32, 2, out);
}

fn push_digits(value: u32, count: u32, out: &mut Vec<u8>) {
    for at in (0..count).rev() {
        out.push(b'0' + (value / 10u32.pow(at) % 10) as u8);
    }
}

/// Appends text as CSV, in quotes if necessary.
fn quoted(text: &str, out: &mut Vec<u8>) {
    if !text.contains([',', '"', '\n', '\r']) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
