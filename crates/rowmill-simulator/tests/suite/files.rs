//! Files in calls: every form is read, files that a vendor rejects are rejected, and received files are
//! reported.

use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::support::{CHAT, Client, Reply};
use rowmill_simulator::{FileTransfer, Simulator, SimulatorScript};
use serde_json::{Value, json};

const ANTHROPIC: &str = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";
const BETA: &str =
    "x-api-key: k\r\nanthropic-version: 2023-06-01\r\nanthropic-beta: files-api-2025-04-14\r\n";
const GOOGLE: &str = "/v1beta/models/m:generateContent";
/// The first bytes of a PNG, and their digest.
const PNG: &str = "iVBORw0KGgo=";
const PNG_SHA256: &str = "4c4b6a3be1314ab86138bef4314dde022e600960d8689a2c8f8631802d20dab6";
/// `%PDF-`.
const PDF: &str = "JVBERi0=";

fn call(client: &mut Client, path: &str, parts: Value) -> Reply {
    let (headers, body) = match path {
        CHAT => ("", json!({"model": "m", "messages": [{"role": "user", "content": parts}]})),
        "/v1/responses" => ("", json!({"model": "m", "input": [{"role": "user", "content": parts}]})),
        "/v1/messages" => {
            (BETA, json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": parts}]}))
        }
        _ => ("", json!({"contents": [{"role": "user", "parts": parts}]})),
    };
    client.post(path, headers, &body.to_string())
}

/// A path, a part with a file, and the expected name and media type of the file.
type Form = (&'static str, Value, Option<&'static str>, &'static str);

fn forms() -> Vec<Form> {
    let png = format!("data:image/png;base64,{PNG}");
    let pdf = format!("data:application/pdf;base64,{PDF}");
    vec![
        (CHAT, json!({"type": "image_url", "image_url": {"url": png}}), None, "image/png"),
        (
            CHAT,
            json!({"type": "file", "file": {"filename": "a.pdf", "file_data": pdf}}),
            Some("a.pdf"),
            "application/pdf",
        ),
        (
            CHAT,
            json!({"type": "input_audio", "input_audio": {"data": PNG, "format": "mp3"}}),
            None,
            "audio/mpeg",
        ),
        (CHAT, json!({"type": "text", "text": "File: a.txt\n\nhello"}), Some("a.txt"), "text/plain"),
        (
            "/v1/responses",
            json!({"type": "input_image", "image_url": png, "detail": "auto"}),
            None,
            "image/png",
        ),
        (
            "/v1/responses",
            json!({"type": "input_file", "filename": "a.pdf", "file_data": pdf}),
            Some("a.pdf"),
            "application/pdf",
        ),
        (
            "/v1/messages",
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}),
            None,
            "image/png",
        ),
        (
            "/v1/messages",
            json!({"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}}),
            Some("t"),
            "text/plain",
        ),
        (GOOGLE, json!({"inlineData": {"mimeType": "image/png", "data": PNG}}), None, "image/png"),
        (GOOGLE, json!({"inline_data": {"mime_type": "audio/mp3", "data": PNG}}), None, "audio/mp3"),
    ]
}

#[test]
fn files_are_read_in_every_vendors_form() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    for (path, part, name, media_type) in forms() {
        let text = match path {
            "/v1/responses" => json!({"type": "input_text", "text": "Hi"}),
            GOOGLE => json!({"text": "Hi"}),
            _ => json!({"type": "text", "text": "Hi"}),
        };
        let reply = call(&mut client, path, json!([part, text]));
        assert_eq!(reply.status, 200, "{path} {part}: {}", reply.body);
        assert!(reply.body.contains("answer to: Hi"), "{}", reply.body);
        let seen = simulator.calls().pop().unwrap();
        assert_eq!((seen.path.as_str(), seen.prompt.as_str()), (path, "Hi"));
        assert_eq!(seen.files.len(), 1, "{part}");
        assert_eq!((seen.files[0].name.as_deref(), seen.files[0].media_type.as_str()), (name, media_type));
        if part.to_string().contains(PNG) {
            assert_eq!((seen.files[0].sha256.as_str(), seen.files[0].size), (PNG_SHA256, 8));
        }
    }
}

/// A path, a part that is rejected there, and words of the error.
fn refused() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (CHAT, json!({"type": "video", "video": 1}), "no type of content part"),
        (
            CHAT,
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,@@@"}}),
            "Invalid base64",
        ),
        (
            CHAT,
            json!({"type": "image_url", "image_url": {"url": "data:image/bmp;base64,Qk0="}}),
            "Unsupported MIME",
        ),
        (
            CHAT,
            json!({"type": "image_url", "image_url": {"url": format!("data:image/jpeg;base64,{PNG}")}}),
            "does not match",
        ),
        (CHAT, json!({"type": "input_image", "image_url": "x"}), "no type of content part"),
        (
            CHAT,
            json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0="}}),
            "filename",
        ),
        (CHAT, json!({"type": "input_audio", "input_audio": {"data": PNG, "format": "ogg"}}), "format"),
        ("/v1/responses", json!({"type": "input_file", "file_id": "file-9"}), "No such File object: file-9"),
        (
            "/v1/messages",
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": PNG}}),
            "Input tag",
        ),
        (
            "/v1/messages",
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PNG}}),
            "does not match",
        ),
        ("/v1/messages", json!({"type": "text", "text": ""}), "non-empty"),
        (
            "/v1/messages",
            json!({"type": "image", "source": {"type": "file", "file_id": "f"}}),
            "File not found: f",
        ),
        (
            GOOGLE,
            json!({"inlineData": {"mimeType": "image/gif", "data": PNG}}),
            "Unsupported MIME type: image/gif",
        ),
        (GOOGLE, json!({"fileData": {"mimeType": "image/png", "fileUri": "x/files/y"}}), "the File y"),
        (GOOGLE, json!({"picture": 1}), "Unknown name"),
    ]
}

#[test]
fn what_a_vendor_refuses_is_refused_in_its_form() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    for (path, part, words) in refused() {
        let reply = call(&mut client, path, json!([part]));
        let expected = match (path, words) {
            (GOOGLE, "the File y") => 403,
            (_, words) if words.contains("File object") || words.contains("File not found") => 404,
            _ => 400,
        };
        assert_eq!(reply.status, expected, "{part}: {}", reply.body);
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains(words), "{}", reply.body);
    }
    assert!(simulator.calls().is_empty(), "none of them was understood");
}

fn upload(client: &mut Client, headers: &str, purpose: &str) -> Reply {
    let form = format!(
        "--b\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\n{purpose}\r\n--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\ncontent-type: application/pdf\r\n\r\n%PDF-\r\n--c\r\n--b--\r\n"
    );
    client.post("/v1/files", &format!("{headers}content-type: multipart/form-data; boundary=b\r\n"), &form)
}

fn delete(client: &mut Client, headers: &str, path: &str) -> u16 {
    client.send(format!("DELETE {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n").as_bytes());
    client.receive().status
}

#[test]
fn forms_are_kept_until_they_are_deleted_or_expire() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    for (headers, path) in [("", "/v1/responses"), (BETA, "/v1/messages")] {
        let reply = upload(&mut client, headers, "user_data");
        assert_eq!(reply.status, 200, "{}", reply.body);
        let id = reply.json()["id"].as_str().unwrap().to_owned();
        let part = match path {
            "/v1/responses" => json!({"type": "input_file", "file_id": id}),
            _ => json!({"type": "document", "source": {"type": "file", "file_id": id}}),
        };
        assert_eq!(call(&mut client, path, json!([part])).status, 200);
        let file = simulator.calls().pop().unwrap().files.remove(0);
        assert_eq!((file.name.as_deref(), file.size, file.sent), (Some("a.pdf"), 10, FileTransfer::Upload));
        assert_eq!(delete(&mut client, headers, &format!("/v1/files/{id}")), 200);
        assert_eq!(delete(&mut client, headers, &format!("/v1/files/{id}")), 404);
        assert_eq!(call(&mut client, path, json!([part])).status, 404);
    }
    assert_eq!(upload(&mut client, "", "other").status, 400);
    assert_eq!(upload(&mut client, ANTHROPIC, "").status, 404, "without its beta there is no such place");
    upload(&mut client, "", "user_data");
    let stats = simulator.stats();
    assert_eq!((stats.uploads, stats.deleted_files, stats.stored_files), (3, 2, 1));
    simulator.expire_files();
    assert_eq!(simulator.stats().stored_files, 0);
}

#[test]
fn googles_uploads_have_two_steps_and_are_worked_on() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().file_processing_polls(2));
    let mut client = Client::to(&simulator);
    let start = "x-goog-upload-protocol: resumable\r\nx-goog-upload-command: start\r\nx-goog-upload-header-content-type: image/png\r\n";
    let reply = client.post("/upload/v1beta/files", start, r#"{"file":{"display_name":"a.png"}}"#);
    let url = reply.head.lines().find_map(|line| line.strip_prefix("x-goog-upload-url: http://x")).unwrap();
    let finish = "x-goog-upload-offset: 0\r\nx-goog-upload-command: upload, finalize\r\n";
    assert_eq!(client.post(url, finish, "no picture").status, 400);
    let reply = client.post("/upload/v1beta/files", &start.replace("image/png", "audio/mp3"), "{}");
    let url = reply.head.lines().find_map(|line| line.strip_prefix("x-goog-upload-url: http://x")).unwrap();
    let file = client.post(url, finish, "sound").json()["file"].clone();
    assert_eq!(file["state"], "PROCESSING");
    let path = format!("/v1beta/{}", file["name"].as_str().unwrap());
    let part = json!([{"fileData": {"mimeType": "audio/mp3", "fileUri": file["uri"]}}]);
    assert_eq!(call(&mut client, GOOGLE, part.clone()).status, 403, "it is not ready");
    assert_eq!(client.get(&path).json()["state"], "PROCESSING");
    assert_eq!(client.get(&path).json()["state"], "ACTIVE");
    assert_eq!(call(&mut client, GOOGLE, part).status, 200);
    assert_eq!(delete(&mut client, "", &path), 200);
}

#[test]
fn a_body_that_is_too_large_is_refused_as_its_vendor_does() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().body_limit(100));
    let mut client = Client::to(&simulator);
    let long = json!("x".repeat(200));
    for (path, status, place, value) in [
        (CHAT, 413, "/error/type", "invalid_request_error"),
        ("/v1/messages", 413, "/error/type", "request_too_large"),
        (GOOGLE, 400, "/error/status", "INVALID_ARGUMENT"),
    ] {
        let reply = call(&mut client, path, long.clone());
        assert_eq!((reply.status, reply.json().pointer(place)), (status, Some(&json!(value))), "{path}");
    }
}

/// A log that can be read.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn every_call_is_logged_before_it_is_answered() {
    let log = Lines::default();
    let simulator = Simulator::start_blocking(SimulatorScript::new().keep_requests(0).log_calls(log.clone()));
    let mut client = Client::to(&simulator);
    let part = json!({"inlineData": {"mimeType": "image/png", "data": PNG}});
    call(&mut client, GOOGLE, json!([part, {"text": "Hi"}]));
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let expected = json!({"call": 1, "path": GOOGLE, "model": "m", "prompt": "Hi", "turn": 1, "files": [{
        "name": null, "media_type": "image/png", "size": 8, "sha256": PNG_SHA256, "sent": "inline"
    }]});
    assert_eq!(text, format!("{expected}\n"));
    assert!(simulator.calls().is_empty(), "nothing is kept beside the log");
}
