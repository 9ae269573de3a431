use rowmill_http::{HttpClient, Url};
use rowmill_types::{Attachment, CallError, CallFailure, Message};
use serde_json::{Value, json};

use super::{FileSender, MessageShape, UploadAddress, UploadedFiles, attachment_rules};
use crate::anthropic::wire::AnthropicWire;
use crate::build_model::ModelSetup;
use crate::chat::wire::ChatWire;
use crate::google::wire::GoogleWire;
use crate::http_model::AnswerDelivery;
use crate::responses::wire::{RequestCarrier, ResponsesWire};
use crate::test_support::{file, setup, with_files};
use crate::wire_protocol::WireProtocol;

fn png() -> Attachment {
    file("a.png", "image/png", b"\x89PNG")
}

fn pdf() -> Attachment {
    file("b \"2\".pdf", "application/pdf", b"%PDF-")
}

fn body(setup: &ModelSetup, messages: &[Message], uploaded: &UploadedFiles) -> Value {
    let body = match setup.connection.protocol {
        crate::ProviderProtocol::Chat => {
            ChatWire::new(setup, AnswerDelivery::Whole).body(messages, uploaded, None)
        }
        crate::ProviderProtocol::Responses => {
            ResponsesWire::new(setup, RequestCarrier::Socket).body(messages, uploaded, None)
        }
        crate::ProviderProtocol::Anthropic => {
            AnthropicWire::new(setup, AnswerDelivery::Whole).unwrap().body(messages, uploaded, None)
        }
        crate::ProviderProtocol::Google => GoogleWire::new(setup).unwrap().body(messages, uploaded, None),
        crate::ProviderProtocol::Builtin => Vec::new(),
    };
    serde_json::from_slice(&body).unwrap()
}

/// The parts of the only message in a body.
fn parts(model: &str, text: &str, file: Attachment, uploaded: &UploadedFiles) -> Value {
    let body = body(&setup(model, None, None), &[with_files(text, vec![file])], uploaded);
    let message =
        ["messages", "input", "contents"].iter().find_map(|name| body.get(name)).unwrap()[0].clone();
    assert_eq!(message["role"], "user");
    message.get("content").or_else(|| message.get("parts")).unwrap().clone()
}

fn wav() -> Attachment {
    file("c.wav", "audio/x-wav", b"RIFF")
}

fn mp3() -> Attachment {
    file("c.mp3", "audio/mpeg", b"ID3")
}

fn text() -> Attachment {
    file("d.md", "text/markdown", "# Ü\n".as_bytes())
}

/// Files and the parts that OpenAI's protocols write for them.
fn parts_of_openai() -> Vec<(&'static str, Attachment, Value)> {
    let message = json!({"type": "text", "text": "File: d.md\n\n# Ü\n"});
    vec![
        (
            "openai.m",
            png(),
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}),
        ),
        (
            "generic.m",
            png(),
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}),
        ),
        (
            "openai.m",
            pdf(),
            json!({"type": "file", "file": {"filename": "b \"2\".pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}),
        ),
        (
            "openai.m",
            wav(),
            json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}),
        ),
        ("openai.m", mp3(), json!({"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}})),
        ("openai.m", text(), message),
        (
            "gpt-5",
            png(),
            json!({"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw=="}),
        ),
        (
            "gpt-5",
            pdf(),
            json!({"type": "input_file", "filename": "b \"2\".pdf", "file_data": "data:application/pdf;base64,JVBERi0="}),
        ),
        (
            "gpt-5",
            wav(),
            json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}),
        ),
        ("gpt-5", text(), json!({"type": "input_text", "text": "File: d.md\n\n# Ü\n"})),
    ]
}

/// Files and the parts that the other protocols write for them.
fn parts_of_others() -> Vec<(&'static str, Attachment, Value)> {
    vec![
        (
            "anthropic.m",
            png(),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}),
        ),
        (
            "anthropic.m",
            pdf(),
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, "title": "b \"2\".pdf"}),
        ),
        (
            "anthropic.m",
            text(),
            json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "# Ü\n"}, "title": "d.md"}),
        ),
        ("google.m", png(), json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}})),
        ("google.m", pdf(), json!({"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}})),
        ("google.m", wav(), json!({"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}})),
        ("google.m", mp3(), json!({"inlineData": {"mimeType": "audio/mp3", "data": "SUQz"}})),
        ("google.m", text(), json!({"text": "File: d.md\n\n# Ü\n"})),
    ]
}

#[test]
fn every_protocol_writes_every_kind_before_the_text() {
    for (model, file, expected) in parts_of_openai().into_iter().chain(parts_of_others()) {
        let name = file.name.clone();
        let found = parts(model, "Hi", file.clone(), &UploadedFiles::NONE);
        assert_eq!(found[0], expected, "{model} {name}");
        assert_eq!(found[1]["text"], "Hi", "{model} {name}");
        let alone = parts(model, "", file, &UploadedFiles::NONE);
        assert_eq!(alone.as_array().unwrap().len(), 1, "{model}: no empty text");
    }
}

#[test]
fn what_is_uploaded_is_referred_to() {
    for (model, file, expected) in [
        ("openai.m", pdf(), json!({"type": "file", "file": {"file_id": "f-1"}})),
        ("gpt-5", pdf(), json!({"type": "input_file", "file_id": "f-1"})),
        ("gpt-5", png(), json!({"type": "input_image", "detail": "auto", "file_id": "f-1"})),
        ("anthropic.m", png(), json!({"type": "image", "source": {"type": "file", "file_id": "f-1"}})),
        (
            "anthropic.m",
            pdf(),
            json!({"type": "document", "source": {"type": "file", "file_id": "f-1"}, "title": "b \"2\".pdf"}),
        ),
        ("google.m", png(), json!({"fileData": {"mimeType": "image/png", "fileUri": "f-1"}})),
    ] {
        let uploaded = UploadedFiles::with_reference(&file, "f-1");
        assert_eq!(parts(model, "Hi", file, &uploaded)[0], expected, "{model}");
    }
}

#[test]
fn other_messages_of_the_conversation_stay_as_they_are() {
    let messages =
        [with_files("q", vec![png(), pdf()]), Message::assistant("{}"), Message::user("fix \"it\"")];
    let instructed = setup("anthropic.m", Some("Be kind"), None);
    let body = body(&instructed, &messages, &UploadedFiles::NONE);
    assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 3);
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": "{}"}));
    assert_eq!(body["messages"][2], json!({"role": "user", "content": "fix \"it\""}));
    assert_eq!(body["system"][0]["cache_control"], json!({"type": "ephemeral"}));
}

#[test]
fn rules_are_those_of_the_provider() {
    let takes = |model: &str| -> Vec<&'static str> {
        let rules = attachment_rules(&setup(model, None, None));
        rules.kinds.iter().map(|kind| kind.media_type).collect()
    };
    for (model, media_type, taken) in [
        ("openai.m", "application/pdf", true),
        ("openai.m", "audio/mpeg", true),
        ("gpt-5", "image/gif", true),
        ("anthropic.m", "application/pdf", true),
        ("anthropic.m", "audio/mpeg", false),
        ("google.m", "image/heic", true),
        ("google.m", "image/gif", false),
        ("openrouter.m", "application/pdf", true),
        ("generic.m", "image/webp", true),
        ("generic.m", "application/pdf", false),
        ("azure.m", "application/pdf", false),
        ("deepseek.m", "image/png", false),
        ("deepseek.m", "text/*", true),
        ("xai.m", "image/gif", false),
        ("passthrough", "application/*", true),
    ] {
        assert_eq!(takes(model).contains(&media_type), taken, "{model} {media_type}");
    }
    for model in ["openai.m", "anthropic.m", "google.m", "groq.m", "generic.m", "mistral.m"] {
        let rules = attachment_rules(&setup(model, None, None));
        let largest =
            rules.kinds.iter().filter(|kind| kind.media_type != "text/*").map(|kind| kind.max_bytes);
        assert!(largest.max() <= Some(rules.max_total), "{model}");
        assert!(rules.max_count > 1, "{model}");
    }
}

fn files(model: &str, shape: MessageShape) -> FileSender {
    let setup = setup(model, None, None);
    let url = Url::parse("http://127.0.0.1:1/v1/files").unwrap();
    let place = UploadAddress { upload: url.clone(), files: url, headers: rowmill_http::HeaderMap::new() };
    FileSender::new(&setup.connection, &HttpClient::new(&|_| None), shape, place)
}

/// A file with this many megabytes.
fn large(number: u8, megabytes: usize, media_type: &str) -> Attachment {
    let (name, digest) = (format!("{number}.bin"), number.to_string());
    let bytes = vec![number; megabytes << 20].into();
    Attachment { name, media_type: media_type.to_owned(), bytes, digest }
}

#[tokio::test]
async fn what_a_model_does_not_take_is_never_sent() {
    let generic = files("generic.m", MessageShape::Chat);
    for (file, words) in [
        (pdf(), "`b \"2\".pdf` is `application/pdf`, which the model does not accept"),
        (file("e.txt", "text/plain", b"\xff"), "`e.txt` is declared as text but is not UTF-8"),
        (large(1, 37, "image/png"), "`1.bin` has 38797312 bytes, but the provider accepts at most 37748736"),
    ] {
        let error = generic.prepare(&[with_files("x", vec![file])]).await.unwrap_err();
        assert_eq!((error.failure, error.message.as_str()), (CallFailure::Refused, words));
    }
    let many = with_files("x", (0..6).map(|_| png()).collect());
    let error = files("groq.m", MessageShape::Chat).prepare(&[many]).await.unwrap_err();
    assert_eq!(error.message, "the request has 6 files, but the provider accepts at most 5");
    let heavy = with_files("x", vec![large(1, 2, "image/png"), large(2, 2, "image/png")]);
    let error = files("groq.m", MessageShape::Chat).prepare(&[heavy]).await.unwrap_err();
    assert!(error.message.starts_with("the files of the request have 5592408 bytes"), "{error}");
}

#[test]
fn large_files_are_uploaded_and_others_where_they_are_too_many() {
    let names = |model: &str, shape, all: &[Attachment]| -> Vec<String> {
        let wanted = files(model, shape);
        let wanted = wanted.to_upload(&all.iter().collect::<Vec<_>>());
        wanted.iter().map(|file| file.name.clone()).collect()
    };
    let pdf = |number, megabytes| large(number, megabytes, "application/pdf");
    let image = |number, megabytes| large(number, megabytes, "image/png");
    assert_eq!(names("google.m", MessageShape::Google, &[pdf(1, 9), pdf(2, 7)]), ["1.bin"]);
    assert_eq!(names("google.m", MessageShape::Google, &[pdf(1, 6), pdf(2, 7), pdf(3, 5)]), ["2.bin"]);
    assert_eq!(names("google.m", MessageShape::Google, &[pdf(1, 9), pdf(1, 9)]), ["1.bin"], "once");
    assert!(names("openai.m", MessageShape::Chat, &[image(1, 9)]).is_empty(), "chat has no ids for images");
    assert_eq!(names("gpt-5", MessageShape::Responses, &[image(1, 9)]), ["1.bin"]);
    assert!(names("google.m", MessageShape::Google, &[large(1, 9, "text/plain")]).is_empty());
}

#[test]
fn a_lost_file_is_distinguished_from_other_refusals() {
    let openai = files("openai.m", MessageShape::Chat);
    let uploaded = UploadedFiles::with_reference(&pdf(), "file-1");
    for (status, message, failure) in [
        (404, "No such File object: file-1", CallFailure::Server),
        (
            403,
            "You do not have permission to access the File file-1 or it may not exist.",
            CallFailure::Server,
        ),
        (400, "The file file-1 has expired.", CallFailure::Server),
        (400, "The file file-1 is no valid PDF.", CallFailure::Refused),
        (404, "The model `m` does not exist", CallFailure::Refused),
        (500, "File not found", CallFailure::Refused),
        (413, "too much", CallFailure::Refused),
    ] {
        let error = CallError { status: Some(status), ..CallError::new(CallFailure::Refused, message) };
        assert_eq!(openai.explain_error(error, &uploaded).failure, failure, "{status} {message}");
    }
    let error =
        CallError { status: Some(404), ..CallError::new(CallFailure::UnknownModel, "File not found") };
    assert_eq!(openai.explain_error(error, &UploadedFiles::NONE).failure, CallFailure::UnknownModel);
}
