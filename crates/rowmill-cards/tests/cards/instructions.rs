//! What becomes of placeholders, and of messages before the row's.

use std::path::PathBuf;

use rowmill_cards::{
    AGENT_SKILLS, Card, Include, IncludeFrom, MessageForm, SERVER_INSTRUCTIONS, parse_messages,
};
use rowmill_core::variables::Variables;
use rowmill_types::Role;

use crate::{local, mistake, remote, said};

fn card(body: &str, variables: &str) -> Card {
    local("a.md", &format!("---\nname: sorter\nvariables: {{{variables}}}\n---\n{body}")).unwrap()
}

fn given(pairs: &[&str]) -> Variables {
    let pairs: Vec<_> = pairs.iter().map(ToString::to_string).collect();
    Variables::from_flags(None, &[], &pairs).unwrap()
}

#[test]
fn variables_of_the_flags_go_before_those_of_the_card() {
    let mut card =
        card("{{ tone }} {{lang}} \\{{tone}} \\}} {{agentName}}/{{agentType}}", "tone: dry, lang: en");
    let used = card.fill(&given(&["tone=warm", "other=x"])).unwrap();
    assert_eq!(card.instruction.as_deref(), Some("warm en {{tone}} }} sorter/agent"));
    assert_eq!(used, ["tone", "lang"]);
}

#[test]
fn markers_stay_and_without_variables_so_do_unknown_names() {
    let mut card = card("{{ serverInstructions }} {{agentSkills}} {{json}} {{}}", "");
    assert!(card.fill(&Variables::default()).unwrap().is_empty());
    let expected = format!("{SERVER_INSTRUCTIONS} {AGENT_SKILLS} {{{{json}}}} {{{{}}}}");
    assert_eq!(card.instruction.unwrap(), expected);
}

#[test]
fn an_unknown_variable_is_told_with_the_nearest_one() {
    let found = said(card("{{ton}}", "tone: dry").fill(&given(&["x=1"])).unwrap_err());
    let message = "`a.md`: the instruction names an unknown variable: `ton`";
    let hint = "did you mean `tone`? variables: `tone`, `x`; write `\\{{` where text is meant";
    assert_eq!(found, (message.to_owned(), hint.to_owned()));
}

#[test]
fn the_day_and_the_machine_are_not_told_unless_they_are_given() {
    for (name, why) in [
        (
            "currentDate",
            "makes another prompt of every day, so that runs cannot be repeated and answers not be kept",
        ),
        ("env", "would tell the provider about this machine, and makes another prompt of every machine"),
        (
            "workspaceRoot",
            "would tell the provider about this machine, and makes another prompt of every machine",
        ),
        ("modelName", "is not known in a batch"),
        ("internal:x", "is not known in a batch"),
    ] {
        let text = format!("Today: {{{{{name}}}}}.");
        let found = said(card(&text, "").fill(&Variables::default()).unwrap_err());
        let message = format!("`a.md`: the instruction names `{{{{{name}}}}}`, which {why}");
        let hint = format!("take it out, or say what stands there: `--var '{name}=…'`");
        assert_eq!(found, (message, hint));
        let mut told = card(&text, "");
        told.fill(&given(&[&format!("{name}=x")])).unwrap();
        assert_eq!(told.instruction.as_deref(), Some("Today: x."));
    }
}

#[test]
fn included_texts_are_listed_once_and_put_in() {
    let mut card = card(
        "{{file: a.md}}+{{file_silent:b.md}}+{{url:https://h/x}}+{{file: a.md}}+\\{{file:c}}",
        "tone: dry",
    );
    let file = |path: &str, optional| IncludeFrom::File { path: PathBuf::from(path), optional };
    let include = |placeholder: &str, from| Include { placeholder: placeholder.to_owned(), from };
    let expected = [
        include("{{file: a.md}}", file("a.md", false)),
        include("{{file_silent:b.md}}", file("b.md", true)),
        include("{{url:https://h/x}}", IncludeFrom::Url("https://h/x".to_owned())),
    ];
    assert_eq!(card.includes(), expected);
    let texts =
        [("{{file: a.md}}", "A {{tone}}"), ("{{file_silent:b.md}}", ""), ("{{url:https://h/x}}", "X")];
    card.inline(&texts.map(|(placeholder, text)| (placeholder.to_owned(), text.to_owned()))).unwrap();
    card.fill(&Variables::default()).unwrap();
    assert_eq!(card.instruction.as_deref(), Some("A dry++X+A dry+{{file:c}}"));
}

#[test]
fn includes_that_cannot_be_are_refused() {
    for (text, message, hint) in [
        (
            "{{file:/etc/x}}",
            "an included file must have a relative path: `{{file:/etc/x}}`",
            "write the path from the card's folder",
        ),
        (
            "{{file: }}",
            "an included file must have a relative path: `{{file: }}`",
            "write the path from the card's folder",
        ),
        (
            "{{url:ftp://x}}",
            "an included address cannot be used: `{{url:ftp://x}}`",
            "addresses begin with `https://`, `http://` or `hf://`",
        ),
    ] {
        let found = mistake("a.md", &format!("---\n---\n{text}"));
        assert_eq!(found, (format!("`a.md`: {message}"), hint.to_owned()));
    }
    assert!(remote("a.md", "---\n---\n{{url:https://h/x}}").is_ok());
    let texts = [("{{file:a.md}}".to_owned(), "see {{file:b.md}}".to_owned())];
    let found = said(card("{{file:a.md}}", "").inline(&texts).unwrap_err());
    assert_eq!(found.0, "`a.md`: the text of `{{file:a.md}}` includes another: `{{file:b.md}}`");
}

#[test]
fn the_instruction_stands_in_one_place() {
    for (text, message, hint) in [
        (
            "---\nname: a\ninstruction: b\n---\nc",
            "line 3: `instruction` and the body are both there",
            "keep one of them",
        ),
        (
            "---\nname: a\n---\nYou sort.\n---USER\ncat",
            "line 5: the body holds messages: `---USER`",
            "put them into a file and name it in `messages`",
        ),
    ] {
        assert_eq!(mistake("a.md", text), (format!("`a.md`, {message}"), hint.to_owned()));
    }
}

#[test]
fn messages_are_read_from_text_and_from_json() {
    let shape = |text: &str, name: &str| -> Vec<(Role, String)> {
        let messages = parse_messages(text, MessageForm::of(name), name).unwrap();
        messages.into_iter().map(|message| (message.role, message.text)).collect()
    };
    let user = |text: &str| (Role::User, text.to_owned());
    let assistant = |text: &str| (Role::Assistant, text.to_owned());
    for (name, text, expected) in [
        ("a.txt", "cat\n", vec![user("cat")]),
        (
            "a.txt",
            "---USER\ncat\n\n ---ASSISTANT \nan\nanimal\n---USER\n\n",
            vec![user("cat"), assistant("an\nanimal")],
        ),
        ("a.md", "first\n---ASSISTANT\nx", vec![user("first"), assistant("x")]),
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
        ("a.txt", "---USER\nx\n---RESOURCE\nf.png", "`a.txt`, line 3: files in messages are not supported"),
        ("a.json", "{", "`a.json`, line 1: cannot be read as JSON"),
        ("a.json", "{}", "`a.json`: there is no list of messages"),
        (
            "a.json",
            r#"[{"role":"tool","content":"x"}]"#,
            "`a.json`: message 1 has no `role` of `user` or `assistant`",
        ),
        (
            "a.json",
            r#"[{"role":"user","content":[{"type":"image"}]}]"#,
            "`a.json`: message 1 has a `content` that is no text",
        ),
        (
            "a.json",
            r#"[{"role":"user","content":"x","tool_calls":{}}]"#,
            "`a.json`: message 1 holds tool calls",
        ),
    ] {
        let problem = parse_messages(text, MessageForm::of(name), name).unwrap_err();
        assert_eq!(said(problem).0, message, "{text}");
    }
}
