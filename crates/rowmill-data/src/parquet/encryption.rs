//! Detects encrypted columns of files whose footer is not encrypted.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The footer field that describes how columns are encrypted.
const ENCRYPTION: i64 = 8;
/// The maximum nesting of footers.
const DEEPEST: u32 = 32;

/// Whether columns of a file are encrypted although its footer is not. `false` for incomplete files.
pub(super) fn has_encrypted_columns(path: &Path) -> bool {
    footer(path).and_then(|footer| ThriftReader { left: &footer }.has_field(ENCRYPTION)).unwrap_or(false)
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

/// The unread rest of a footer, in Thrift's compact protocol.
struct ThriftReader<'b> {
    left: &'b [u8],
}

impl ThriftReader<'_> {
    /// Whether the struct that starts here has a field; `None` if it cannot be read.
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

    /// The type of the next field, whose number is relative to the previous one; `None` inside at the end.
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
                    // In a list, a boolean is one byte.
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
