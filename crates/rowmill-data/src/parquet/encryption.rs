//! Whether the footer of a file that can be read says that columns are encrypted.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The field of the footer that says how columns are encrypted.
const ENCRYPTION: i64 = 8;
/// Footers are not nested deeper.
const DEEPEST: u32 = 32;

/// Whether columns of a file are encrypted although its footer is not. Of a file that is not
/// whole, nothing is known.
pub(super) fn has_encrypted_columns(path: &Path) -> bool {
    footer(path).and_then(|footer| Thrift { left: &footer }.has_field(ENCRYPTION)).unwrap_or(false)
}

fn footer(path: &Path) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let size = file.seek(SeekFrom::End(0)).ok()?;
    file.seek(SeekFrom::Start(size.checked_sub(8)?)).ok()?;
    let mut length = [0; 4];
    file.read_exact(&mut length).ok()?;
    let length = u64::from(u32::from_le_bytes(length));
    file.seek(SeekFrom::Start((size - 8).checked_sub(length)?)).ok()?;
    let mut footer = Vec::new();
    file.take(length).read_to_end(&mut footer).ok()?;
    Some(footer)
}

/// What is left of a footer, in the compact form of Thrift.
struct Thrift<'b> {
    left: &'b [u8],
}

impl Thrift<'_> {
    /// Whether the structure that begins here has a field; `None` where it cannot be read.
    fn has_field(mut self, wanted: i64) -> Option<bool> {
        let mut field = 0;
        while let Some(kind) = self.next_field(&mut field)? {
            if field == wanted {
                return Some(true);
            }
            self.skip(kind, 0)?;
        }
        Some(false)
    }

    /// The kind of the next field, whose number follows on the one before; `None` inside at the end.
    fn next_field(&mut self, field: &mut i64) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        *field = match i64::from(head >> 4) {
            0 => {
                let number = self.number()?;
                i64::try_from(number >> 1).ok()? ^ -i64::try_from(number & 1).ok()?
            }
            step => *field + step,
        };
        Some(Some(head & 15))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match kind {
            1 | 2 => {}
            3 => self.skip_bytes(1)?,
            4..=6 => {
                self.number()?;
            }
            7 => self.skip_bytes(8)?,
            8 => {
                let length = self.number()?;
                self.skip_bytes(usize::try_from(length).ok()?)?;
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = match u64::from(head >> 4) {
                    15 => self.number()?,
                    count => count,
                };
                let kind = head & 15;
                for _ in 0..count {
                    // In a list, a truth is a byte of its own.
                    if kind <= 2 { self.skip_bytes(1)? } else { self.skip(kind, depth + 1)? }
                }
            }
            12 => {
                let mut field = 0;
                while let Some(kind) = self.next_field(&mut field)? {
                    self.skip(kind, depth + 1)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, left) = self.left.split_first()?;
        self.left = left;
        Some(*first)
    }

    fn skip_bytes(&mut self, count: usize) -> Option<()> {
        self.left = self.left.get(count..)?;
        Some(())
    }
}
