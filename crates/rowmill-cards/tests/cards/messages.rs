//! Messages before the row's: examples of how to answer, with tools and without.

use rowmill_cards::{MessageFileFormat, parse_message_file};
use rowmill_types::{Message, MessageRole};

use crate::refusal_text;

#[test]
fn messages_are_read_from_text_and_from_json() {
    let shape = |text: &str, name: &str| -> Vec<(MessageRole, String)> {
        let messages = parse_message_file(text, MessageFileFormat::from_file_name(name), name).unwrap();
        messages.into_iter().map(|message| (message.role, message.text)).collect()
    };
    let user = |text: &str| (MessageRole::User, text.to_owned());
    let assistant = |text: &str| (MessageRole::Assistant, text.to_owned());
    for (name, text, expected) in [
        ("a.txt", "cat\n", vec![user("cat")]),
        (
            "a.txt",
            "---USER\ncat\n\n ---ASSISTANT \nan\nanimal\n---USER\n\n",
            vec![user("cat"), assistant("an\nanimal")],
        ),
        ("a.md", "first\n---ASSISTANT\nx", vec![user("first"), assistant("x")]),
        (
            "a.txt",
            "---USER\nSort:\n---RESOURCE\n{\"type\":\"resource\",\"resource\":{\"uri\":\"x\",\"text\":\"cat\"}}",
            vec![user("Sort:\n\ncat")],
        ),
        ("a.JSON", r#"{"messages":[{"role":"user","content":"cat"}]}"#, vec![user("cat")]),
        (
            "a.json",
            r#"{"messages":[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_calls":null}]}"#,
            vec![assistant("a\n\nb")],
        ),
        ("a.json", r#"[{"role":"user","content":{"type":"text","text":"cat"}}]"#, vec![user("cat")]),
    ] {
        assert_eq!(shape(text, name), expected, "{text}");
    }
}

#[test]
fn messages_that_are_no_texts_are_refused() {
    for (name, text, message) in [
        ("a.txt", " \n", "`a.txt`: there is no message"),
        (
            "a.txt",
            "---USER\nx\n---RESOURCE\nf.png",
            "`a.txt`, line 3: a resource of a message must be text, written as JSON",
        ),
        ("a.json", "{", "`a.json`, line 1: cannot be read as JSON"),
        ("a.json", "{}", "`a.json`: there is no list of messages"),
        (
            "a.json",
            r#"[{"role":"robot","content":"x"}]"#,
            "`a.json`: message 1 has no `role` of `user` or `assistant`",
        ),
        ("a.json", r#"[{"role":"system","content":"x"}]"#, "`a.json`: message 1 has the role `system`"),
        (
            "a.json",
            r#"[{"role":"tool","tool_call_id":"7","content":"x"}]"#,
            "`a.json`: message 1 has the result of a call that was not made before: `7`",
        ),
        (
            "a.json",
            r#"[{"role":"user","content":[{"type":"image"}]}]"#,
            "`a.json`: message 1 has a `content` that is not text",
        ),
        (
            "a.json",
            r#"[{"role":"assistant","tool_calls":{"1":{"params":{"name":"f"}}}},{"role":"user","content":"x"}]"#,
            "`a.json`: message 1 calls `f` but no result follows",
        ),
        (
            "a.json",
            r#"[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"[1]"}}]}]"#,
            "`a.json`: message 1 has a call without a tool's name, or with arguments that are not an object",
        ),
        ("a.json", r#"[{"role":"assistant"}]"#, "`a.json`: message 1 has a `content` that is not text"),
    ] {
        let problem = parse_message_file(text, MessageFileFormat::from_file_name(name), name).unwrap_err();
        assert_eq!(refusal_text(problem).0, message, "{text}");
    }
}

/// A message in one line: role, text, calls and results.
fn line(message: &Message) -> String {
    let calls = message.calls.iter().map(|call| format!(" {}={}{}", call.id, call.name, call.arguments));
    let answers = message.answered_call.as_ref();
    let answers = answers.map(|answers| format!(" {}={} {}", answers.call, answers.tool, answers.is_error));
    format!(
        "{:?} `{}`{}{}",
        message.role,
        message.text,
        calls.collect::<String>(),
        answers.unwrap_or_default()
    )
}

#[test]
fn calls_of_tools_and_their_results_are_read_in_both_spellings_with_ids_that_every_provider_takes() {
    let extended = r#"{"messages":[
        {"role":"user","content":[{"type":"text","text":"Where is A-1?"}]},
        {"role":"assistant","content":[],"tool_calls":{
            "toolu/1":{"method":"tools/call","params":{"name":"find","arguments":{"n":"A-1"}}},
            "toolu/2":{"method":"tools/call","params":{"name":"now"}}},"stop_reason":"toolUse"},
        {"role":"user","content":[],"tool_results":{
            "toolu/1":{"content":[{"type":"text","text":"sent"}],"isError":false},
            "toolu/2":{"content":[{"type":"text","text":"no clock"}],"isError":true}}},
        {"role":"assistant","content":[{"type":"text","text":"It was sent."}]}]}"#;
    let chat = r#"[
        {"role":"user","content":"Where is A-1?"},
        {"role":"assistant","content":null,"tool_calls":[
            {"id":"toolu/1","type":"function","function":{"name":"find","arguments":"{\"n\":\"A-1\"}"}},
            {"id":"toolu/2","type":"function","function":{"name":"now","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"toolu/1","content":"sent"},
        {"role":"tool","tool_call_id":"toolu/2","content":"no clock"},
        {"role":"assistant","content":"It was sent."}]"#;
    for (text, failed) in [(extended, true), (chat, false)] {
        let messages = parse_message_file(text, MessageFileFormat::Json, "a.json").unwrap();
        let expected = [
            "User `Where is A-1?`".to_owned(),
            "Assistant `` ex0000001=find{\"n\":\"A-1\"} ex0000002=now{}".to_owned(),
            "Tool `sent` ex0000001=find false".to_owned(),
            format!("Tool `no clock` ex0000002=now {failed}"),
            "Assistant `It was sent.`".to_owned(),
        ];
        assert_eq!(messages.iter().map(line).collect::<Vec<_>>(), expected);
    }
}
