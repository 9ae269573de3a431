//! What happens to placeholders, and to messages before the row's.

use std::path::PathBuf;

use rowmill_cards::{
    AGENT_SKILLS, AgentCard, IncludeSource, InstructionFillReport, InstructionInclude, SERVER_INSTRUCTIONS,
    unfilled_problem,
};
use rowmill_core::variables::InstructionVariables;

use crate::{local, mistake, refusal_text, remote};

fn card(body: &str, variables: &str) -> AgentCard {
    local("a.md", &format!("---\nname: sorter\nvariables: {{{variables}}}\n---\n{body}")).unwrap()
}

fn given(pairs: &[&str]) -> InstructionVariables {
    let pairs: Vec<_> = pairs.iter().map(ToString::to_string).collect();
    InstructionVariables::from_settings(None, &[], &pairs).unwrap()
}

#[test]
fn variables_of_the_flags_go_before_those_of_the_card() {
    let mut card =
        card("{{ tone }} {{lang}} \\{{tone}} \\}} {{agentName}}/{{agentType}}", "tone: dry, lang: en");
    let filled = card.fill_variables(&given(&["tone=warm", "other=x"]));
    assert_eq!(card.instruction.as_deref(), Some("warm en {{tone}} }} sorter/agent"));
    assert_eq!((filled.used, filled.unfilled), (vec!["tone".to_owned(), "lang".to_owned()], vec![]));
}

#[test]
fn markers_stay_and_without_variables_so_do_unknown_names() {
    let mut card = card("{{ serverInstructions }} {{agentSkills}} {{json}} {{}}", "");
    assert_eq!(card.fill_variables(&InstructionVariables::default()), InstructionFillReport::default());
    let expected = format!("{SERVER_INSTRUCTIONS} {AGENT_SKILLS} {{{{json}}}} {{{{}}}}");
    assert_eq!(card.instruction.unwrap(), expected);
}

/// The problem with everything that an instruction lacks: its message and its hint.
fn lacks(body: &str, variables: &str, flags: &[&str]) -> (String, String) {
    let mut card = card(body, variables);
    let filled = card.fill_variables(&given(flags));
    refusal_text(unfilled_problem(&filled.unfilled.into_iter().map(|one| (&card, one)).collect::<Vec<_>>()))
}

#[test]
fn an_unknown_variable_is_reported_with_the_nearest_one() {
    let message = "the instruction uses variables without a value: `{{ton}}` (`a.md`, line 6)";
    let hint = "set the values: var: 'ton=…'; did you mean `tone`? variables: `tone`, `x`; write `\\{{` for \
                plain text";
    assert_eq!(lacks("Be\n{{ton}}", "tone: dry", &["x=1"]), (message.to_owned(), hint.to_owned()));
}

#[test]
fn all_that_tells_of_the_day_and_the_machine_is_asked_for_at_once_with_the_flags_to_add() {
    let body =
        "Today: {{currentDate}}.\n{{env}} {{json}}\n{{ workspaceRoot }} {{agentCardDir}} {{internal:x}}";
    let (message, hint) = lacks(body, "", &[]);
    assert_eq!(
        message,
        "the instruction uses variables without a value: `{{currentDate}}` (`a.md`, line 5), `{{env}}` \
         (`a.md`, line 6), `{{ workspaceRoot }}` (`a.md`, line 7), `{{agentCardDir}}` (`a.md`, line 7), \
         `{{internal:x}}` (`a.md`, line 7)"
    );
    assert_eq!(
        hint,
        "set the values: var: \"currentDate=$(date '+%d %B %Y')\" var: \"env=Working folder: $PWD. Platform: \
         $(uname -sm).\" var: \"workspaceRoot=$PWD\" var: 'agentCardDir=.' var_file: 'internal:x=FILE'; the \
         date and the machine are not filled in automatically, because the prompt would then differ between \
         days and machines"
    );
    // Once they have values, other text in braces is allowed again.
    let flags = ["currentDate=D", "env=E", "workspaceRoot=W", "agentCardDir=C", "internal:x=X"];
    let mut card = card(body, "");
    assert_eq!(card.fill_variables(&given(&flags)).unfilled, []);
    assert_eq!(card.instruction.as_deref(), Some("Today: D.\nE {{json}}\nW C X"));
}

#[test]
fn what_tells_of_fast_agent_itself_is_left_out_and_noted() {
    let mut card = card("a{{model_specific}}{{agentInternalResources}}b", "");
    assert_eq!(card.fill_variables(&InstructionVariables::default()), InstructionFillReport::default());
    assert_eq!(card.instruction.as_deref(), Some("ab"));
    assert_eq!(card.ignored, ["{{model_specific}}", "{{agentInternalResources}}"]);
}

#[test]
fn included_texts_are_listed_once_and_put_in() {
    let mut card = card(
        "{{file: a.md}}+{{file_silent:b.md}}+{{url:https://h/x}}+{{file: a.md}}+\\{{file:c}}",
        "tone: dry",
    );
    let file = |path: &str, optional| IncludeSource::File { path: PathBuf::from(path), optional };
    let include = |placeholder: &str, from| InstructionInclude { placeholder: placeholder.to_owned(), from };
    let expected = [
        include("{{file: a.md}}", file("a.md", false)),
        include("{{file_silent:b.md}}", file("b.md", true)),
        include("{{url:https://h/x}}", IncludeSource::Url("https://h/x".to_owned())),
    ];
    assert_eq!(card.instruction_includes(), expected);
    let texts =
        [("{{file: a.md}}", "A {{tone}}"), ("{{file_silent:b.md}}", ""), ("{{url:https://h/x}}", "X")];
    card.insert_includes(&texts.map(|(placeholder, text)| (placeholder.to_owned(), text.to_owned())))
        .unwrap();
    card.fill_variables(&InstructionVariables::default());
    assert_eq!(card.instruction.as_deref(), Some("A dry++X+A dry+{{file:c}}"));
}

#[test]
fn includes_that_cannot_be_are_refused() {
    for (text, message, hint) in [
        (
            "{{file:/etc/x}}",
            "an included file must have a relative path: `{{file:/etc/x}}`",
            "write the path relative to the card's folder, or to the current one",
        ),
        (
            "{{file: }}",
            "an included file must have a relative path: `{{file: }}`",
            "write the path relative to the card's folder, or to the current one",
        ),
        (
            "{{url:ftp://x}}",
            "an included URL is not supported: `{{url:ftp://x}}`",
            "URLs start with `https://`, `http://` or `hf://`",
        ),
    ] {
        let found = mistake("a.md", &format!("---\n---\n{text}"));
        assert_eq!(found, (format!("`a.md`, line 3: {message}"), hint.to_owned()));
    }
    assert!(remote("a.md", "---\n---\n{{url:https://h/x}}").is_ok());
    let texts = [("{{file:a.md}}".to_owned(), "see {{file:b.md}}".to_owned())];
    let found = refusal_text(card("{{file:a.md}}", "").insert_includes(&texts).unwrap_err());
    assert_eq!(found.0, "`a.md`, line 5: the text of `{{file:a.md}}` includes another: `{{file:b.md}}`");
}

#[test]
fn the_instruction_stands_in_one_place() {
    for (text, message, hint) in [
        (
            "---\nname: a\ninstruction: b\n---\nc",
            "line 3: `instruction` and the body are both given",
            "keep one of them",
        ),
        (
            "---\nname: a\n---\nYou sort.\n---USER\ncat",
            "line 5: the body contains messages: `---USER`",
            "move them to a file and set its path in `messages`",
        ),
    ] {
        assert_eq!(mistake("a.md", text), (format!("`a.md`, {message}"), hint.to_owned()));
    }
}
