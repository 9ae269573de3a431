//! For arbitrary messages, the files can be read and contain no secret.

use proptest::prelude::*;

use super::*;

/// Any text, with or without the secret.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,12}",
        ("\\PC{0,8}", ".{0,8}").prop_map(|(before, after)| format!("{before}{KEY}{after}")),
        Just(serde_json::to_string(KEY).unwrap()),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let call = || (text(), text(), text()).prop_map(|(id, name, arguments)| ToolCall { id, name, arguments });
    let file = text().prop_map(|name| Attachment {
        media_type: name.clone(),
        bytes: Bytes::from_static(KEY.as_bytes()),
        digest: "d".into(),
        name,
    });
    prop_oneof![
        (text(), prop::collection::vec(file, 0..2))
            .prop_map(|(text, attachments)| Message { attachments, ..Message::user(text) }),
        (text(), prop::collection::vec(call(), 0..3))
            .prop_map(|(text, calls)| Message { calls, ..Message::assistant(text) }),
        (call(), text()).prop_map(|(call, text)| Message::tool(&call, ToolOutput::from_text(text))),
    ]
}

fn any_transcript() -> impl Strategy<Value = RowTranscript> {
    let turns = prop::collection::vec((0..99u64, 0..99u64).prop_map(|(start, end)| turn(start, end)), 0..4);
    let tool = (text(), text(), 0..99u64).prop_map(|(call, tool, at)| ToolCallDetails {
        call,
        tool,
        start: Duration::from_millis(at),
        end: Duration::from_millis(at + 1),
        is_error: at % 2 == 0,
    });
    let conversation =
        (0..3usize, prop::collection::vec(message(), 0..6), turns, prop::collection::vec(tool, 0..3))
            .prop_map(|(agent_index, messages, turns, tools)| ConversationTranscript {
                agent_index,
                model_role: agent_index,
                caller: None,
                messages,
                turns,
                tools,
            });
    prop::collection::vec(conversation, 0..3).prop_map(|conversations| RowTranscript { conversations })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_transcript_gives_files_that_parse_and_hold_no_secret(
        rows in prop::collection::vec((text(), any_transcript(), any::<bool>()), 1..4),
    ) {
        let home = tempfile::tempdir().unwrap();
        let settings = settings();
        let mut sink = open(home.path(), OutputClaimMode::New);
        for (number, (id, transcript, is_ok)) in (1..).zip(&rows) {
            let outcome = if *is_ok { ok() } else { failed(RowErrorKind::TurnLimit) };
            // Ids are unique in a run.
            let id = RowId::Text(format!("{id}{number}").into());
            let record = record(&id, number, &outcome, Some(transcript), &settings);
            publish(&mut sink, &record);
            if number % 2 == 0 {
                publish(&mut sink, &record);
            }
        }
        drop(sink);
        settle_traces(home.path()).unwrap();
        let manifest = lines(home.path(), "manifest.jsonl");
        prop_assert_eq!(manifest.len(), rows.len());
        prop_assert_eq!(lines(home.path(), "spans.jsonl").len(), rows.len());
        for (line, (_, transcript, _)) in manifest.iter().zip(&rows) {
            let Some(name) = line["trace"].as_str() else {
                prop_assert!(transcript.conversations.is_empty());
                continue;
            };
            prop_assert_eq!(lines(home.path(), name).len() as u64, line["record_count"].as_u64().unwrap());
        }
        let inside = serde_json::to_string(KEY).unwrap();
        for (name, bytes) in files(home.path()) {
            let text = String::from_utf8(bytes).unwrap();
            prop_assert!(!text.contains(KEY) && !text.contains(inside.trim_matches('"')), "{}", name);
            prop_assert!(!name.contains("planted"), "{}", name);
        }
    }
}
