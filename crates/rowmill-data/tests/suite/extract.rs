//! Text is extracted from real documents, and no document can harm the run.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rowmill_data::{AttachmentSpec, TextExtractor, attachment_loader, extract_text, run_extract_child};
use rowmill_testkit::sample_files as made;
use rowmill_types::{AttachmentRules, Row};

use crate::printed::printed_by;

const PDF: &str = "application/pdf";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const HTML: &str = "text/html";

fn sample_docx() -> Vec<u8> {
    let cell = |text: &str| format!("<w:tc>{}</w:tc>", made::paragraph(text));
    let heading =
        "<w:p><w:pPr><w:pStyle w:val=\"Heading1\"/></w:pPr><w:r><w:t>Offer &amp; terms</w:t></w:r></w:p>";
    let table = format!("<w:tbl><w:tr>{}{}</w:tr></w:tbl>", cell("Price"), cell("12 €"));
    made::docx(&format!("{heading}{}{table}", made::paragraph("Dear all,")))
}

#[test]
fn the_text_of_all_pages_is_found() {
    let pdf = made::pdf(&["Invoice 17\nTotal: 12 EUR", "Second page"]);
    assert_eq!(extract_text(PDF, &pdf).unwrap(), "Invoice 17\nTotal: 12 EUR\n\nSecond page");
}

#[test]
fn the_text_of_a_letter_is_found() {
    assert_eq!(extract_text(DOCX, &sample_docx()).unwrap(), "# Offer & terms\n\nDear all,\nPrice\t12 €");
}

#[test]
fn the_text_of_a_page_is_found() {
    let page = b"<html><script>no()</script><h1>Offer</h1><p>Only <a href='x'>today</a>";
    assert_eq!(extract_text(HTML, page).unwrap(), "# Offer\n\nOnly today");
}

#[test]
fn a_document_without_text_is_an_error_and_no_empty_text() {
    let no_text = "has no text; send it as a file, to a model that accepts such files";
    for (kind, bytes) in [
        (PDF, made::pdf(&["", ""])),
        (DOCX, made::docx(&made::paragraph(" "))),
        (HTML, b"<p> &nbsp;</p><script>x</script>".to_vec()),
    ] {
        assert_eq!(extract_text(kind, &bytes).unwrap_err(), no_text, "{kind}");
    }
}

#[test]
fn broken_documents_and_other_kinds_are_errors() {
    let pdf = made::pdf(&["x"]);
    for (kind, bytes, begin) in [
        (PDF, &b"no pdf at all"[..], "cannot be read as PDF: "),
        (PDF, &pdf[..100], "cannot be read as PDF: "),
        (DOCX, b"PK\x03\x04 cut", "cannot be read as DOCX: "),
        (DOCX, &made::archive(&[("a.txt", "x")]), "cannot be read as DOCX: it has no `word/document.xml`"),
        (
            DOCX,
            &made::archive(&[("word/document.xml", "<a><b></a>")]),
            "cannot be read as DOCX: `word/document.xml`: ",
        ),
        ("image/png", &made::png(1), "is image/png, from which no text can be extracted"),
    ] {
        let error = extract_text(kind, bytes).unwrap_err();
        assert!(error.starts_with(begin), "{error}");
    }
}

/// Pseudorandom numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

/// The document with some bytes changed, or truncated.
fn damaged(document: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = document.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len());
        match dice.below(4) {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes[at] = b"0129<>/[]() \n\0\xff"[dice.below(15)],
            2 => drop(bytes.remove(at)),
            _ => bytes.insert(at, b"0129<>/[]() \n\0\xff"[dice.below(15)]),
        }
    }
    if dice.below(8) == 0 {
        bytes.truncate(dice.below(bytes.len()) + 1);
    }
    bytes
}

#[test]
fn damaged_documents_end_neither_the_process_nor_never() {
    quiet_panics_of("damaged");
    let documents = [
        (PDF, made::pdf(&["Invoice 17\nTotal: 12 EUR", "Second page"])),
        (DOCX, sample_docx()),
        (
            HTML,
            b"<html><h1>Offer</h1><table><tr><td>a<td>b</table><ul><li>x<li>y</ul><p>&euro; <b>b</p>"
                .to_vec(),
        ),
    ];
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        for (kind, document) in &documents {
            for _ in 0..300 {
                let bytes = damaged(document, &mut dice);
                let text = std::panic::catch_unwind(|| extract_text(kind, &bytes));
                sender.send(text.is_ok_and(|text| text.is_ok())).unwrap();
            }
        }
    };
    let worker = thread::Builder::new().name("damaged".into()).stack_size(256 << 20).spawn(work).unwrap();
    let mut good = 0;
    for number in 0..900 {
        let read = receiver.recv_timeout(Duration::from_secs(60));
        good += usize::from(read.unwrap_or_else(|error| panic!("document {number}: {error}")));
    }
    worker.join().unwrap();
    assert!((100..900).contains(&good), "some damage does not matter and some does: {good}");
}

/// Keeps expected panics out of the output.
fn quiet_panics_of(name: &'static str) {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if thread::current().name() != Some(name) {
            others(panic);
        }
    }));
}

/// The result of attaching a document with an extractor.
async fn extracted(extractor: TextExtractor, name: &str, bytes: &[u8]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), bytes).unwrap();
    let spec = AttachmentSpec {
        fields: vec!["file".into()],
        documents: false,
        extract: Some(extractor),
        archive: None,
        base: folder.path().into(),
        rules: AttachmentRules { kinds: Vec::new(), max_total: 1 << 30, max_count: 9 },
        http: None,
    };
    let row = Row::parse(1, format!("{{\"file\":\"{name}\"}}")).unwrap();
    let path = format!("`{}` ", folder.path().join(name).display());
    match attachment_loader(spec).load(&row).await {
        Ok(files) => Ok(files[0].text().unwrap().to_owned()),
        Err(error) => Err(error.message.strip_prefix(&path).unwrap().to_owned()),
    }
}

#[tokio::test]
async fn a_thread_extracts_text_and_survives_panics() {
    let pdf = made::pdf(&["In a thread"]);
    assert_eq!(extracted(TextExtractor::InProcess, "a.pdf", &pdf).await.unwrap(), "In a thread");
    quiet_panics_of("rowmill-extract");
    let text = String::from_utf8(pdf).unwrap().replace("/MediaBox [0 0 595 842]", "/MediaBix [0 0 595 842]");
    let error = extracted(TextExtractor::InProcess, "a.pdf", text.as_bytes()).await.unwrap_err();
    assert_eq!(error, "is broken, or has an unknown format");
}

/// This test program as the child: it runs the test below, with its output redirected.
#[cfg(unix)]
fn child() -> TextExtractor {
    let program = std::env::current_exe().unwrap().display().to_string();
    let script =
        "KIND=\"$1\" exec \"$0\" --exact extract::the_child --ignored --nocapture --quiet 3>&1 >/dev/null";
    shell(&[script, &program])
}

#[cfg(unix)]
fn shell(args: &[&str]) -> TextExtractor {
    let args = ["-c"].iter().chain(args).map(|arg| (*arg).to_owned()).collect();
    TextExtractor::Child { program: "/bin/sh".into(), args }
}

#[cfg(unix)]
#[test]
#[ignore = "this is what child processes do"]
#[expect(clippy::exit, reason = "a child ends with a code")]
fn the_child() {
    let kind = std::env::var_os("KIND").unwrap().into_string().unwrap();
    let mut output = fs::OpenOptions::new().write(true).open("/dev/fd/3").unwrap();
    if let Err(error) = run_extract_child(&kind, &mut std::io::stdin(), &mut output) {
        eprintln!("{error}");
        std::process::exit(1);
    }
    std::process::exit(0);
}

#[cfg(unix)]
#[tokio::test]
async fn a_child_extracts_text_and_says_what_is_wrong() {
    let lines = vec!["A line of a long document"; 40].join("\n");
    let pages = vec![lines.as_str(); 60];
    let text = extracted(child(), "a.pdf", &made::pdf(&pages)).await.unwrap();
    assert_eq!(text.matches("A line of a long document").count(), 2400);
    assert_eq!(extracted(child(), "b.docx", &sample_docx()).await.unwrap().lines().count(), 4);
    let error = extracted(child(), "a.pdf", &made::pdf(&[""])).await.unwrap_err();
    assert!(error.starts_with("has no text"), "{error}");
    let text = String::from_utf8(made::pdf(&["x"])).unwrap().replace("/MediaBox", "/MediaBix");
    let error = extracted(child(), "a.pdf", text.as_bytes()).await.unwrap_err();
    assert_eq!(error, "is broken, or has an unknown format");
}

#[cfg(unix)]
#[tokio::test]
async fn a_document_that_overflows_the_stack_ends_only_the_child() {
    // A form that draws itself recurses endlessly.
    let form = "/Resources << /XObject << /X 4 0 R >> >>";
    let stream = "<< /Length 5 >>\nstream\n/X Do\nendstream";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 5 0 R {form} >>"),
        stream.replace("<<", &format!("<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] {form}")),
        stream.to_owned(),
    ];
    let error = extracted(child(), "a.pdf", &made::pdf_of(&objects)).await.unwrap_err();
    assert_eq!(error, "crashed the process that read it: it is broken, or needs too much memory");
}

#[cfg(unix)]
#[tokio::test]
async fn children_that_fail_in_other_ways_are_reported() {
    let pdf = made::pdf(&["x"]);
    for (script, expected) in [
        ("echo 'first' >&2; echo 'is wrong' >&2; exit 3", "is wrong"),
        ("exit 7", "cannot be read: the process that extracts text ended with code 7"),
        ("kill -9 $$", "crashed the process that read it: it is broken, or needs too much memory"),
        ("printf '\\377'", "has a text that is not valid UTF-8"),
        ("head -c 70000000 /dev/zero", "has more than 64 MiB of text"),
    ] {
        assert_eq!(extracted(shell(&[script]), "a.pdf", &pdf).await.unwrap_err(), expected, "{script}");
    }
    let nowhere = TextExtractor::Child { program: Path::new("/nowhere/rowmill").into(), args: Vec::new() };
    let error = extracted(nowhere, "a.pdf", &pdf).await.unwrap_err();
    assert!(
        error.starts_with("cannot be read: the process that extracts text, `/nowhere/rowmill`, failed: ")
    );
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_child_that_never_ends_is_ended() {
    // The clock is simulated: it jumps to the deadline as soon as everything else waits.
    let error = extracted(shell(&["exec sleep 100000"]), "a.pdf", &made::pdf(&["x"])).await.unwrap_err();
    assert_eq!(error, "took longer than 60 s to read");
}

/// A PDF whose font names an encoding that PDF defines, with codes as hexadecimal digits.
fn pdf_in_encoding(encoding: &str, codes: &str) -> Vec<u8> {
    let stream = format!("BT /F1 12 Tf 72 770 Td <{codes}> Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()),
        format!(
            "<< /Type /Font /Subtype /Type0 /BaseFont /SimSun /Encoding /{encoding} /DescendantFonts [6 0 R] >>"
        ),
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /SimSun /W [814 907 500] \
         /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> >>"
            .to_owned(),
    ];
    made::pdf_of(&objects)
}

#[test]
fn text_in_encodings_that_pdf_only_names_is_found() {
    for (encoding, codes, text) in [
        ("GBK-EUC-H", "cda8d3c320313233", "通用 123"),
        ("GB-EUC-V", "c4e3bac3", "你好"),
        ("UniGB-UCS2-H", "4f60597d00200041", "你好 A"),
        ("UniJIS-UTF16-H", "4e16754cd842dfb7", "世界𠮷"),
        ("90ms-RKSJ-H", "93fa967b8cea20b1b241", "日本語 ｱｲA"),
        ("EUC-H", "c6fccbdc", "日本"),
        ("H", "467c4b5c", "日本"),
        ("ETen-B5-H", "a4a4a4e5", "中文"),
        ("KSCms-UHC-H", "c7d1b1b9", "한국"),
    ] {
        assert_eq!(extract_text(PDF, &pdf_in_encoding(encoding, codes)).as_deref(), Ok(text), "{encoding}");
    }
    let error = extract_text(PDF, &pdf_in_encoding("KSC-Johab-H", "8861")).unwrap_err();
    assert_eq!(error, "has text in the encoding `KSC-Johab-H`, which cannot be read");
}

#[test]
fn text_that_a_program_wrote_with_fonts_for_chinese_japanese_and_korean_is_found() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/cjk.pdf");
    let text = extract_text(PDF, &fs::read(path).unwrap()).unwrap();
    for line in ["你好，世界 Hello", "こんにちは世界", "안녕하세요", "繁體中文"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[tokio::test]
async fn a_panic_of_a_parser_fails_the_document_and_is_not_printed() {
    let broken = String::from_utf8(pdf_in_encoding("Identity-H", "0041")).unwrap();
    let broken = broken.replace("/DescendantFonts", "/DescendingFonts");
    let Some(message) = printed_by("extract::a_panic_of_a_parser_fails_the_document_and_is_not_printed")
    else {
        let error = extracted(TextExtractor::InProcess, "a.pdf", broken.as_bytes()).await.unwrap_err();
        assert_eq!(error, "is broken, or has an unknown format");
        return;
    };
    assert!(!message.contains("panicked") && !message.contains("Descendant"), "{message}");
}
