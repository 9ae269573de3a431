//! Parses forms that are on disk, so that a large file is never in memory.

use std::io::Read;

use memchr::memmem;

use super::store::disk_failure;
use super::stored_bytes::StoredBytes;
use crate::protocol::RequestRefusal;
use crate::upload_form::{broken, parameter};

/// A form on disk.
#[derive(Debug, Default)]
pub(crate) struct FormOnDisk {
    fields: Vec<(String, String)>,
    /// The name of its file, and where its bytes are.
    pub(crate) file: Option<(String, u64, u64)>,
}

/// The head of a part has no more bytes.
const PART_HEAD: u64 = 8 * 1024;
/// A value of a field has no more bytes.
const VALUE: u64 = 64 * 1024;
const PIECE: usize = 1 << 20;

impl FormOnDisk {
    /// Parses a form with this content type.
    pub(crate) fn read(bytes: &StoredBytes, content_type: &str) -> Result<Self, RequestRefusal> {
        let Some((_, boundary)) = content_type.split_once("multipart/form-data; boundary=") else {
            return Err(RequestRefusal::invalid("the body must be multipart/form-data"));
        };
        let line = format!("--{}", boundary.trim_matches('"'));
        let next = format!("\r\n{line}");
        let found = find_all(bytes, next.as_bytes()).map_err(disk_failure)?;
        if slice(bytes, 0, line.len() as u64)? != line.as_bytes() {
            return Err(broken());
        }
        let mut form = Self::default();
        // The first boundary has no line break before it.
        let mut start = line.len() as u64;
        for end in found {
            form.take(bytes, start + 2, end)?;
            start = end + next.len() as u64;
        }
        if slice(bytes, start, 2)? == b"--" { Ok(form) } else { Err(broken()) }
    }

    fn take(&mut self, bytes: &StoredBytes, start: u64, end: u64) -> Result<(), RequestRefusal> {
        let part = slice(bytes, start, PART_HEAD.min(end.saturating_sub(start)))?;
        let length = memmem::find(&part, b"\r\n\r\n").ok_or_else(broken)?;
        let head = String::from_utf8_lossy(part.get(..length).unwrap_or_default()).into_owned();
        let name = parameter(&head, "name").ok_or_else(broken)?;
        let content = start + length as u64 + 4;
        let size = end.saturating_sub(content);
        match parameter(&head, "filename") {
            Some(file) => self.file = Some((file, content, size)),
            None => {
                let value = slice(bytes, content, size.min(VALUE))?;
                self.fields.push((name, String::from_utf8_lossy(&value).into_owned()));
            }
        }
        Ok(())
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }
}

fn slice(bytes: &StoredBytes, start: u64, length: u64) -> Result<Vec<u8>, RequestRefusal> {
    use std::io::{Seek, SeekFrom};
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = bytes.open()?.into_inner();
        file.seek(SeekFrom::Start(start))?;
        let mut part = Vec::new();
        file.take(length).read_to_end(&mut part)?;
        Ok(part)
    };
    read().map_err(disk_failure)
}

/// All places of `needle`.
fn find_all(bytes: &StoredBytes, needle: &[u8]) -> std::io::Result<Vec<u64>> {
    let mut reader = bytes.open()?;
    let finder = memmem::Finder::new(needle);
    let (mut found, mut window, mut passed) = (Vec::new(), Vec::new(), 0_u64);
    loop {
        let read = reader.by_ref().take(PIECE as u64).read_to_end(&mut window)?;
        if read == 0 {
            return Ok(found);
        }
        found.extend(finder.find_iter(&window).map(|at| passed + at as u64));
        // A place may begin in this piece and end in the next one.
        let kept = (needle.len() - 1).min(window.len());
        passed += (window.len() - kept) as u64;
        window.drain(..window.len() - kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_larger_than_a_piece_is_found_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        for size in [0, 10, PIECE - 150, PIECE - 100, PIECE - 90, PIECE, 3 * PIECE + 7] {
            let content = "x\r\n".repeat(size / 3);
            let form = format!(
                "--b\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n\r\n{content}\r\n--b--\r\n"
            );
            let path = folder.path().join(size.to_string());
            std::fs::write(&path, &form).unwrap();
            let stored = StoredBytes::whole(path).unwrap();
            let found = FormOnDisk::read(&stored, "multipart/form-data; boundary=b").unwrap();
            assert_eq!(found.field("purpose"), Some("batch"));
            let (name, start, length) = found.file.unwrap();
            assert_eq!((name.as_str(), length), ("a.jsonl", content.len() as u64));
            assert_eq!(stored.part(start, length).read().unwrap(), content.as_bytes());
        }
    }
}
