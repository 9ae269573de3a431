//! Parses forms with a file, `multipart/form-data`.

use memchr::memmem;

use crate::protocol::RequestRefusal;
use crate::recorder::RecordedRequest;

/// A received form.
#[derive(Debug, Default)]
pub(crate) struct UploadForm<'a> {
    fields: Vec<(String, String)>,
    pub(crate) file: Option<UploadFormFile<'a>>,
}

/// The file of a form.
#[derive(Debug)]
pub(crate) struct UploadFormFile<'a> {
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) bytes: &'a [u8],
}

impl<'a> UploadForm<'a> {
    /// Parses the form of a request.
    pub(crate) fn read(request: &'a RecordedRequest) -> Result<Self, RequestRefusal> {
        let content_type = request.header("content-type").unwrap_or_default();
        let Some((_, boundary)) = content_type.split_once("multipart/form-data; boundary=") else {
            return Err(RequestRefusal::invalid("the body must be multipart/form-data"));
        };
        let line = format!("--{}", boundary.trim_matches('"'));
        let mut form = Self::default();
        // Every part but the first starts after a line break, which belongs to the boundary.
        let mut rest = request.body.strip_prefix(line.as_bytes()).ok_or_else(broken)?;
        let next = format!("\r\n{line}");
        while let Some(after) = rest.strip_prefix(b"\r\n") {
            let end = memmem::find(after, next.as_bytes()).ok_or_else(broken)?;
            let (part, tail) = after.split_at(end);
            form.take(part)?;
            rest = tail.get(next.len()..).unwrap_or_default();
        }
        if rest.starts_with(b"--") { Ok(form) } else { Err(broken()) }
    }

    fn take(&mut self, part: &'a [u8]) -> Result<(), RequestRefusal> {
        let end = memmem::find(part, b"\r\n\r\n").ok_or_else(broken)?;
        let (head, bytes) = (part.get(..end).unwrap_or_default(), part.get(end + 4..).unwrap_or_default());
        let head = String::from_utf8_lossy(head);
        let name = parameter(&head, "name").ok_or_else(broken)?;
        match parameter(&head, "filename") {
            Some(file) => {
                let lines = head.lines().map(str::to_ascii_lowercase);
                let mut kind =
                    lines.filter_map(|line| Some(line.strip_prefix("content-type:")?.trim().to_owned()));
                let media_type = kind.next_back().unwrap_or_else(|| "application/octet-stream".to_owned());
                self.file = Some(UploadFormFile { name: file, media_type, bytes });
            }
            None => self.fields.push((name, String::from_utf8_lossy(bytes).into_owned())),
        }
        Ok(())
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }
}

/// The value of a parameter in a part's headers.
pub(crate) fn parameter(head: &str, name: &str) -> Option<String> {
    let start = format!("; {name}=\"");
    let (_, after) = head.split_once(&start)?;
    let (value, _) = after.split_once('"')?;
    Some(value.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n"))
}

/// The rejection of a form that cannot be parsed.
pub(crate) fn broken() -> RequestRefusal {
    RequestRefusal::invalid("the form is invalid")
}
