use rowmill_core::ports::BatchApi;
use rowmill_types::{Attachment, CallFailure, CallRetryClass, Message, Request};
use serde_json::{Value, json};

use super::{MODELS, api, api_for, ask, line};
use crate::anthropic::wire::AnthropicWire;
use crate::build_model::ModelSetup;
use crate::chat::wire::ChatWire;
use crate::files::UploadedFiles;
use crate::google::wire::GoogleWire;
use crate::http_model::AnswerDelivery;
use crate::provider::ProviderProtocol;
use crate::responses::wire::{RequestCarrier, ResponsesWire};
use crate::test_support::{conversation_with_native, file, setup, with_files, with_tools};
use crate::wire_protocol::WireProtocol;

#[test]
fn every_provider_gets_its_own_lines() {
    let chat = r#"{"model":"m","messages":[{"role":"user","content":"Hi \"there\"\n"}]}"#;
    let openai = format!(
        r#"{{"custom_id":"r-1","method":"POST","url":"/v1/chat/completions","body":{chat}}}{}"#,
        "\n"
    );
    for (model, expected) in [
        ("openai.m", openai.as_str()),
        ("azure.m", &openai),
        ("groq.m", &openai),
        (
            "responses.m",
            "{\"custom_id\":\"r-1\",\"method\":\"POST\",\"url\":\"/v1/responses\",\"body\":{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"Hi \\\"there\\\"\\n\"}],\"store\":false}}\n",
        ),
        (
            "together.m",
            "{\"custom_id\":\"r-1\",\"body\":{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi \\\"there\\\"\\n\"}]}}\n",
        ),
        (
            "mistral.m",
            "{\"custom_id\":\"r-1\",\"body\":{\"messages\":[{\"role\":\"user\",\"content\":\"Hi \\\"there\\\"\\n\"}]}}\n",
        ),
        (
            "anthropic.m",
            "{\"custom_id\":\"r-1\",\"params\":{\"model\":\"m\",\"max_tokens\":4096,\"messages\":[{\"role\":\"user\",\"content\":\"Hi \\\"there\\\"\\n\"}]}}\n",
        ),
        (
            "google.m",
            "{\"key\":\"r-1\",\"request\":{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"Hi \\\"there\\\"\\n\"}]}]}}\n",
        ),
    ] {
        let request = ask(vec![Message::user("Hi \"there\"\n")]);
        assert_eq!(line(&*api(model), &request), expected, "{model}");
    }
}

/// The body of a live call that is not streamed.
fn live_body(setup: &ModelSetup, request: &Request) -> Value {
    let (messages, cap, none) = (&request.messages, request.output_cap, &UploadedFiles::NONE);
    let body = match setup.connection.protocol {
        ProviderProtocol::Chat => ChatWire::new(setup, AnswerDelivery::Whole).body(messages, none, cap),
        ProviderProtocol::Responses => {
            ResponsesWire::new(setup, RequestCarrier::Whole).body(messages, none, cap)
        }
        ProviderProtocol::Anthropic => {
            AnthropicWire::new(setup, AnswerDelivery::Whole).unwrap().body(messages, none, cap)
        }
        ProviderProtocol::Google => GoogleWire::new(setup).unwrap().body(messages, none, cap),
        ProviderProtocol::Builtin => panic!("it has no bodies"),
    };
    serde_json::from_slice(&body).unwrap()
}

fn batch_body(api: &dyn BatchApi, request: &Request) -> Value {
    let mut read: Value = serde_json::from_str(&line(api, request)).unwrap();
    ["body", "params", "request"].iter().find_map(|field| read.get_mut(field).map(Value::take)).unwrap()
}

#[test]
fn a_request_of_a_job_is_that_of_a_live_call_without_streaming() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    for model in MODELS {
        let live = ModelSetup {
            instruction: Some("Be ü".to_owned()),
            schema: Some(schema.clone()),
            ..with_tools(&format!("{model}?temperature=0.5"), None)
        };
        let streamed = ModelSetup {
            model: setup(&format!("{model}?temperature=0.5&stream=true"), None, None).model,
            ..live.clone()
        };
        let picture = with_files("look", vec![file("a.png", "image/png", b"\x89PNG")]);
        let request = Request { output_cap: Some(77), ..ask(vec![picture]) };
        let mut expected = live_body(&live, &request);
        if model == "mistral.m" {
            // There, the model is named once, in the job.
            expected.as_object_mut().unwrap().shift_remove("model").unwrap();
        }
        assert_eq!(batch_body(&*api_for(&live), &request), expected, "{model}");
        assert_eq!(batch_body(&*api_for(&streamed), &request), expected, "{model}");
    }
}

#[test]
fn a_tier_that_asks_for_nothing_is_left_out() {
    for model in ["openai.m?service_tier=auto", "responses.m?transport=ws", "groq.m?service_tier=on_demand"] {
        let body = batch_body(&*api(model), &ask(vec![Message::user("x")]));
        assert!(body.get("service_tier").is_none() && body.get("stream").is_none(), "{model}: {body}");
    }
}

#[test]
fn a_request_is_one_line_whatever_the_provider_wrote_earlier() {
    let parts = "[\r\n  {\n \"text\": \"a\\nb\"}\n]";
    let message = "{\"role\":\"assistant\",\r\n  \"content\": \"a\\nb\"\n}";
    for (model, form, native) in [
        ("anthropic.m", "anthropic.anthropic", parts),
        ("openai.m", "chat.openai", message),
        ("google.m", "google.google", parts),
    ] {
        let messages = conversation_with_native(form, native);
        let line = line(&*api_for(&with_tools(model, None)), &ask(messages));
        assert_eq!(line.find(['\n', '\r']), Some(line.len() - 1), "{model}: {line}");
        assert!(line.contains(r"a\nb"), "{model}: {line}");
        serde_json::from_str::<Value>(&line).unwrap();
    }
}

fn large(megabytes: usize, media_type: &str) -> Attachment {
    let bytes = vec![b'x'; megabytes << 20].into();
    Attachment { name: "a.bin".into(), media_type: media_type.to_owned(), bytes, digest: "d".into() }
}

#[test]
fn a_file_that_only_live_calls_can_upload_is_refused_for_good() {
    for (model, megabytes, words) in [
        ("openai.m", 40, "a request in a batch takes at most 51380224"),
        ("google.m", 20, "only live calls can upload larger ones"),
        ("anthropic.m", 40, "only live calls can upload larger ones"),
        ("together.m", 1, "which the model does not accept"),
    ] {
        let mut out = b"before\n".to_vec();
        let message = with_files("x", vec![large(megabytes, "application/pdf")]);
        let error = api(model).write_request("r-1", &ask(vec![message]), &mut out).unwrap_err();
        assert_eq!(error.retry_class(), CallRetryClass::Permanent, "{model}");
        assert!(error.message.contains(words), "{model}: {error}");
        assert_eq!(out, b"before\n", "{model}");
    }
    let inline = ask(vec![with_files("x", vec![large(9, "application/pdf")])]);
    assert!(line(&*api("openai.m"), &inline).len() > 9 << 20, "large files are sent inline where they fit");
}

#[test]
fn a_request_that_is_too_large_is_refused() {
    let mut out = Vec::new();
    let request = ask(vec![Message::user("x".repeat(21_000_000))]);
    let error = api("google.m").write_request("r-1", &request, &mut out).unwrap_err();
    assert_eq!(error.failure, CallFailure::Refused);
    assert!(error.message.ends_with("bytes, but one in a batch may have at most 20000000"), "{error}");
    assert!(out.is_empty());
}
