//! The format of sessions and spans.

use serde_json::Value;

use super::*;

#[test]
fn a_session_has_all_messages_in_their_order() {
    let (home, name) = one_row();
    let message: Vec<String> = lines(home.path(), &name)
        .iter()
        .map(|record| {
            let payload = &record["payload"];
            let of = |key: &str| payload[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}{}", record["type"].as_str().unwrap(), of("type"), of("role")).trim().to_owned()
        })
        .collect();
    let expected = [
        "session_meta",
        "response_item messagedeveloper",
        "event_msg task_started",
        "event_msg user_message",
        "turn_context",
        "response_item messageuser",
        "response_item messageassistant",
        "event_msg task_complete",
        "event_msg task_started",
        "event_msg user_message",
        "turn_context",
        "response_item messageuser",
        "response_item messageassistant",
        "response_item function_call",
        "response_item function_call",
        "event_msg token_count",
        "response_item function_call_output",
        "response_item function_call_output",
        "response_item web_search_call",
        "response_item messageassistant",
        "event_msg token_count",
        "event_msg task_complete",
        "event_msg task_started",
        "event_msg user_message",
        "turn_context",
        "response_item messageuser",
        "response_item messageassistant",
        "event_msg token_count",
        "event_msg task_complete",
    ];
    assert_eq!(message, expected);
    let manifest = lines(home.path(), "manifest.jsonl");
    let line = serde_json::json!({"run_id":"20260101T000000Z-0badcafe","row_number":3,"id":"a/b","ok":true,
        "trace":name,"record_count":expected.len(),"agent":"lead"});
    assert_eq!(manifest, [line]);
}

#[test]
fn the_records_of_a_session_have_the_fields_that_readers_look_for() {
    let (home, name) = one_row();
    let records = lines(home.path(), &name);
    let payload = |at: usize| &records[at]["payload"];
    assert_eq!(records[0]["timestamp"], "2026-01-01T00:00:00.005Z");
    assert_eq!(payload(0)["id"], "20260101T000000Z-0badcafe-row-000003");
    assert_eq!(payload(0)["base_instructions"]["text"], "Be short, ***.");
    assert_eq!((&payload(0)["model_provider"], &payload(0)["row_id"]), (&"gcp.gemini".into(), &"a/b".into()));
    assert_eq!(payload(9)["message"], "What is in ***?");
    assert_eq!((&payload(10)["turn_id"], &payload(10)["agent"]), (&"turn-2".into(), &"lead".into()));
    assert_eq!(payload(11)["content"][1]["text"], "[file `a.png`, image/png, sha256 00ff]");
    assert_eq!((&payload(14)["call_id"], &payload(14)["arguments"]), (&"c2".into(), &"{broken".into()));
    assert_eq!(payload(15)["info"]["last_token_usage"]["total_tokens"], 120);
    assert_eq!(payload(16)["output"][0]["text"], "it says ***");
    assert_eq!(
        (&payload(17)["output"], &payload(17)["status"]),
        (&"the arguments are no JSON".into(), &"error".into())
    );
    assert_eq!(payload(19)["content"][0]["annotations"][0]["url"], "https://x/");
    assert_eq!(payload(20)["info"]["total_token_usage"]["input_tokens"], 200);
    assert_eq!(
        (&payload(21)["last_agent_message"], &payload(21)["duration_ms"]),
        (&"Nothing.".into(), &40.into())
    );
    assert_eq!((&payload(24)["agent"], &payload(24)["turn_id"]), (&"helper".into(), &"turn-3".into()));
}

#[test]
fn spans_form_a_tree_with_the_names_of_the_conventions() {
    let (home, _) = one_row();
    let all = lines(home.path(), "spans.jsonl");
    let spans = spans(&all[0]);
    let named: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    let chat = "chat google.gemini-x?temperature=0";
    let expected = [
        "rowmill.row",
        "invoke_agent lead",
        chat,
        chat,
        "execute_tool look",
        "execute_tool fs__read",
        "invoke_agent helper",
        chat,
    ];
    assert_eq!(named, expected);
    let parents: Vec<usize> = spans[1..]
        .iter()
        .map(|span| spans.iter().position(|other| other["spanId"] == span["parentSpanId"]).unwrap())
        .collect();
    assert_eq!(parents, [0, 1, 1, 1, 1, 1, 6], "the helper stands under the agent that called it");
    assert_eq!(attribute(&spans[6], "gen_ai.tool.call.id")["stringValue"], "c1");
    assert!(spans.iter().all(|span| span["traceId"].as_str().unwrap().len() == 32));
    assert_eq!(attribute(&spans[0], "rowmill.row.number")["intValue"], "3");
    assert_eq!(attribute(&spans[2], "gen_ai.usage.input_tokens")["intValue"], "100");
    let asked = attribute(&spans[3], "gen_ai.input.messages")["stringValue"].as_str().unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    assert_eq!(asked[0]["parts"][0]["response"], "it says ***", "only what is new since the turn before");
    assert_eq!(attribute(&spans[4], "gen_ai.tool.call.arguments")["stringValue"], "{broken");
    assert_eq!((&spans[4]["status"]["code"], &spans[5]["status"]), (&2.into(), &serde_json::json!({})));
    assert_eq!(spans[5]["startTimeUnixNano"], "1767225600021000000");
}
