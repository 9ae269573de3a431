//! Files over real sockets: what reaches the provider, and what is stored there for how long.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use ring::digest::{SHA256, digest};
use rowmill_core::ports::Model;
use rowmill_http::HttpClient;
use rowmill_models::{
    ModelSetup, ModelString, ProviderConfig, ProviderConnection, ProviderRegistry, build_model,
};
use rowmill_testkit::{FileTransfer, RecordedFile, Simulator, SimulatorScript};
use rowmill_types::{Attachment, CallFailure, CallRetryClass, Message, Request};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01";
const MODELS: [&str; 4] = ["openai.m", "responses.m", "anthropic.m", "google.m"];

/// A model that calls the simulator.
fn model(text: &str, simulator: &Simulator) -> Arc<dyn Model> {
    let name = text.split('.').next().unwrap().to_owned();
    let path = if matches!(name.as_str(), "anthropic" | "google") { "" } else { "/v1" };
    let base_url = Some(format!("{}{path}", simulator.url()));
    let config = ProviderConfig { base_url, ..ProviderConfig::default() };
    let providers = ProviderRegistry::with_config(BTreeMap::from([(name, config)])).unwrap();
    let model = ModelString::parse(text, &providers).unwrap();
    let key = |name: &str| name.contains("KEY").then(|| "sk-secret".to_owned());
    let connection = ProviderConnection::resolve(&model, &providers, &key).unwrap();
    let setup = ModelSetup {
        model,
        connection,
        instruction: None,
        schema: None,
        tools: Vec::new(),
        parallel_tool_calls: None,
        notice: Arc::new(drop),
    };
    build_model(setup, &HttpClient::new(&|_| None)).unwrap()
}

fn file(name: &str, media_type: &str, bytes: Vec<u8>) -> Attachment {
    let digest = digest(&SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Attachment { name: name.to_owned(), media_type: media_type.to_owned(), bytes: bytes.into(), digest }
}

/// A PDF that is large enough to be uploaded.
fn large_pdf(number: u8) -> Attachment {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    bytes.resize(8 << 20, b'0' + number);
    bytes.extend_from_slice(b"\r\n--not the end--\r\n");
    file("large \"one\".pdf", "application/pdf", bytes)
}

fn ask(text: &str, attachments: Vec<Attachment>) -> Request {
    let message = Message { attachments, ..Message::user(text) };
    Request {
        key: format!("run/{text}"),
        row: 1,
        attempt: 1,
        output_cap: None,
        purpose: Default::default(),
        messages: vec![message],
    }
}

fn seen(simulator: &Simulator) -> Vec<RecordedFile> {
    simulator.calls().last().unwrap().files.clone()
}

#[tokio::test]
async fn what_reaches_the_provider_is_byte_for_byte_the_file() {
    let wav = [&b"RIFF\0\0\0\0WAVEfmt "[..], &[7; 100]].concat();
    let all = [
        file("a.png", "image/png", PNG.to_vec()),
        file("b.pdf", "application/pdf", b"%PDF-1.4 \xff\x00\x01".to_vec()),
        file("c.txt", "text/plain", "Grüße\r\n\n\"x\"".as_bytes().to_vec()),
        file("d.wav", "audio/wav", wav),
    ];
    for (text, count) in [
        ("openai.m", 4),
        ("openai.m?stream=true", 4),
        ("responses.m", 4),
        ("responses.m?transport=ws", 4),
        ("anthropic.m", 3),
        ("google.m", 4),
        ("openrouter.m", 4),
    ] {
        let simulator = Simulator::start(SimulatorScript::new()).await;
        let model = model(text, &simulator);
        let answer = model.complete(&ask("look", all[..count].to_vec())).await.unwrap();
        assert_eq!(answer.text, "answer to: look", "{text}");
        let found: Vec<String> = seen(&simulator).into_iter().map(|file| file.sha256).collect();
        let expected: Vec<String> = all[..count].iter().map(|file| file.digest.clone()).collect();
        assert_eq!(found, expected, "{text}");
        assert_eq!(simulator.stats().uploads, 0, "{text}");
    }
}

#[tokio::test]
async fn a_large_file_is_uploaded_once_for_all_rows_and_deleted_at_the_end() {
    for text in MODELS.into_iter().chain(["responses.m?transport=ws"]) {
        let simulator = Simulator::start(SimulatorScript::new().file_processing_polls(2)).await;
        let model = model(text, &simulator);
        let pdf = large_pdf(1);
        let rows: Vec<Request> = (0..6).map(|row| ask(&format!("row {row}"), vec![pdf.clone()])).collect();
        for answer in join_all(rows.iter().map(|row| model.complete(row))).await {
            assert!(answer.unwrap().text.starts_with("answer to: row"), "{text}");
        }
        let stats = simulator.stats();
        assert_eq!((stats.uploads, stats.requests, stats.stored_files), (1, 6, 1), "{text}");
        for call in simulator.calls() {
            let [file] = call.files.as_slice() else { panic!("{text}: {call:?}") };
            assert_eq!(
                (file.sha256.as_str(), file.sent),
                (pdf.digest.as_str(), FileTransfer::Upload),
                "{text}"
            );
            assert_eq!(file.name.as_deref(), Some("large \"one\".pdf"), "{text}");
        }
        model.close().await;
        let stats = simulator.stats();
        assert_eq!((stats.deleted_files, stats.stored_files), (1, 0), "{text}");
    }
}

#[tokio::test]
async fn a_file_that_expired_fails_one_try_and_is_uploaded_for_the_next() {
    for text in MODELS {
        let simulator = Simulator::start(SimulatorScript::new()).await;
        let model = model(text, &simulator);
        let request = ask("x", vec![large_pdf(2)]);
        model.complete(&request).await.unwrap();
        simulator.expire_files();
        let error = model.complete(&request).await.unwrap_err();
        assert_eq!(error.failure, CallFailure::Server, "{text}: {error}");
        assert!(matches!(error.retry_class(), CallRetryClass::Transient { .. }), "{text}");
        model.complete(&request).await.unwrap();
        assert_eq!(simulator.stats().uploads, 2, "{text}");
    }
}

#[tokio::test]
async fn failed_uploads_are_errors_of_their_call_and_are_not_tried_again_by_themselves() {
    for text in MODELS {
        for (status, failure) in [
            (413, CallFailure::Refused),
            (400, CallFailure::Refused),
            (401, CallFailure::Unauthorized),
            (429, CallFailure::RateLimited),
            (500, CallFailure::Server),
        ] {
            let simulator = Simulator::start(SimulatorScript::new().upload_status(status)).await;
            let error = model(text, &simulator).complete(&ask("x", vec![large_pdf(3)])).await.unwrap_err();
            assert_eq!((error.failure, error.status), (failure, Some(status)), "{text}: {error}");
            assert!(error.message.contains("`large \"one\".pdf`"), "{text}: {error}");
            assert_eq!(simulator.requests().len(), 1, "{text}: one upload, and no call");
        }
    }
}

#[tokio::test]
async fn a_server_without_a_file_interface_gets_files_inline() {
    let simulator = Simulator::start(SimulatorScript::new().upload_status(404)).await;
    let model = model("openai.m", &simulator);
    for row in ["one", "two"] {
        model.complete(&ask(row, vec![large_pdf(4)])).await.unwrap();
        assert_eq!(seen(&simulator)[0].sent, FileTransfer::Inline);
    }
    assert_eq!(simulator.requests().len(), 3, "it is asked for only once");
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_for_good_in_clear_words() {
    for text in ["openai.m", "responses.m", "anthropic.m"] {
        let simulator = Simulator::start(SimulatorScript::new().body_limit(1000)).await;
        let pdf = file("p.pdf", "application/pdf", [&b"%PDF-1.4"[..], &[b'x'; 2000]].concat());
        let error = model(text, &simulator).complete(&ask("x", vec![pdf])).await.unwrap_err();
        assert_eq!((error.failure, error.status), (CallFailure::Refused, Some(413)), "{text}");
        assert_eq!(error.retry_class(), CallRetryClass::Permanent, "{text}");
        assert!(error.message.starts_with("the request with its files is too large"), "{error}");
    }
}

#[tokio::test]
async fn keys_stay_out_of_upload_errors() {
    let simulator = Simulator::start(SimulatorScript::new().key("another")).await;
    let error = model("openai.m", &simulator).complete(&ask("x", vec![large_pdf(5)])).await.unwrap_err();
    assert_eq!(error.failure, CallFailure::Unauthorized);
    assert!(!error.message.contains("sk-secret"), "{error}");
}
