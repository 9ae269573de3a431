//! Real files for tests: PDF, PNG, DOCX, each as small as it can be.

#![expect(clippy::unwrap_used, reason = "writing into memory cannot fail")]

use std::fmt::Write as _;
use std::io::Write as _;

/// A PDF with one page per text, lines written in Helvetica.
#[must_use]
pub fn pdf(pages: &[&str]) -> Vec<u8> {
    let kids: Vec<_> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    for (page, text) in pages.iter().enumerate() {
        let contents = 5 + 2 * page;
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {contents} 0 R \
             /Resources << /Font << /F1 3 0 R >> >> >>"
        ));
        let mut stream = String::from("BT /F1 12 Tf 72 770 Td 16 TL ");
        for line in text.lines() {
            write!(stream, "({line}) Tj T* ").unwrap();
        }
        stream.push_str("ET");
        objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
    }
    pdf_of(&objects)
}

/// A PDF file of objects, the first of which is the catalogue, with a cross-reference table.
#[must_use]
pub fn pdf_of(objects: &[String]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(file.len());
        write!(file, "{} 0 obj\n{object}\nendobj\n", index + 1).unwrap();
    }
    let table = file.len();
    write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    for place in places {
        writeln!(file, "{place:010} 00000 n ").unwrap();
    }
    write!(file, "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1)
        .unwrap();
    file
}

/// A grey PNG of one pixel; each shade gives a different file.
#[must_use]
pub fn png(shade: u8) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |kind: &[u8; 4], data: &[u8]| {
        file.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        file.extend(kind);
        file.extend(data);
        let mut sum = flate2::Crc::new();
        sum.update(kind);
        sum.update(data);
        file.extend(sum.sum().to_be_bytes());
    };
    chunk(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&[0, shade]).unwrap();
    chunk(b"IDAT", &packed.finish().unwrap());
    chunk(b"IEND", &[]);
    file
}

/// A DOCX with this content of its body.
#[must_use]
pub fn docx(body: &str) -> Vec<u8> {
    let document = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\
         <w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\">\
         <w:body>{body}</w:body></w:document>"
    );
    archive(&[("[Content_Types].xml", "<Types/>"), ("_rels/.rels", "<x/>"), ("word/document.xml", &document)])
}

/// A ZIP archive of texts.
#[must_use]
pub fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in parts {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// A paragraph of a DOCX.
#[must_use]
pub fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}
