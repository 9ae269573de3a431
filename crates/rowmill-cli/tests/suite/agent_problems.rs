//! Cards that cannot be used: one clear problem before the first row, and nothing is sent.

use crate::agents_support::{ruled, run_cards, write_cards, write_prompt};
use serde_json::json;

/// The front matter of the card `solo`, further cards, and the expected messages.
type Case = (&'static str, &'static [(&'static str, &'static str, &'static str)], &'static [&'static str]);

const CASES: &[Case] = &[
    ("agents: [nobody]", &[], &["`cards/solo.md`, line 2", "names an agent that was not loaded: `nobody`"]),
    (
        "agents: [b]",
        &[("b", "agents: [solo]", "B.")],
        &["agents call each other in a cycle: `b` -> `solo` -> `b`"],
    ),
    ("", &[("b", "name: solo", "B.")], &["two agent cards have the name `solo`"]),
    ("modle: generic.m", &[], &["`cards/solo.md`, line 2", "modle", "`model`"]),
    ("request_params: {max_iteration: 3}", &[], &["max_iteration", "`max_iterations`"]),
    ("type: a2a", &[], &["a2a"]),
    ("type: chian\nsequence: [b]", &[("b", "", "B.")], &["chian", "`chain`"]),
    ("type: chain", &[], &["sequence"]),
    ("type: orchestrator\nagents: []", &[], &["agents"]),
    ("tool_only: true", &[], &["all are `tool_only`"]),
    (
        "servers: [files]",
        &[],
        &[
            "`cards/solo.md`, line 2: uses the MCP server `files`, which is not in the configuration",
            "[mcp.servers.files]",
        ],
    ),
    ("mcp_connect: {docs: {target: none-such-program}}", &[], &["docs"]),
    (
        "agents: [b]\nmcp_connect: {docs: {target: one}}",
        &[("b", "mcp_connect: {docs: {target: two}}\ntool_only: true", "B.")],
        &["two MCP servers have the name `docs`", "rename one of them"],
    ),
    ("skills: [nowhere]", &[], &["`skills` names a folder that does not exist"]),
    ("shell: true\ncwd: nowhere", &[], &["`cwd` names a folder that does not exist"]),
    ("messages: none.txt", &[], &["none.txt"]),
    ("api_key: ${NO_SUCH_VARIABLE}", &[], &["NO_SUCH_VARIABLE"]),
    ("web_search: maybe", &[], &["web_search"]),
];

#[test]
fn a_card_that_cannot_be_used_is_one_clear_problem_and_nothing_is_sent() {
    for (front, others, problem) in CASES {
        let (simulator, place) = ruled(&json!([]));
        write_cards(&place, &[("solo", front, if front.contains("chain") { "" } else { "Hi." })]);
        write_cards(&place, others);
        write_prompt(&place, "x");
        let ended = run_cards(&place, &["-m", "generic.m"]);
        assert_eq!(ended.code, 1, "{front}: {}", ended.stderr);
        assert_eq!(ended.stderr.matches("error[RM").count(), 1, "{front}: {}", ended.stderr);
        for problem in *problem {
            assert!(ended.stderr.contains(problem), "{front}: `{problem}` is not said in: {}", ended.stderr);
        }
        assert_eq!(simulator.calls().len(), 0, "{front}");
        assert!(!place.exists("out.jsonl"), "{front}");
    }
}

#[test]
fn a_card_without_a_model_says_so_unless_it_asks_none_itself() {
    let (simulator, place) = ruled(&json!([]));
    write_cards(&place, &[("solo", "", "Hi.")]);
    write_prompt(&place, "x");
    run_cards(&place, &[]).code(1).says("`cards/solo.md` does not name a model").says("--model simulated");
    write_cards(
        &place,
        &[("solo", "tool_only: true\nmodel: generic.m", "Hi."), ("top", "type: chain\nsequence: [solo]", "")],
    );
    run_cards(&place, &[]).ok();
    assert_eq!(simulator.calls().len(), 1);
}

#[test]
fn a_source_without_cards_is_reported() {
    let (_simulator, place) = ruled(&json!([]));
    write_prompt(&place, "x");
    place.write("empty/README.md", "No card.\n");
    place.write("plain.md", "No card.\n");
    place.write("skill/SKILL.md", "---\nname: s\n---\n");
    for (source, message) in [
        ("empty", "there is no agent card in `empty`"),
        ("missing.md", "missing.md"),
        ("plain.md", "plain.md"),
        ("skill/SKILL.md", "SKILL.md"),
    ] {
        place.run_rows(&["--agent-card", source, "-m", "generic.m", "-p", "{{p}}"]).code(1).says(message);
    }
}

#[test]
fn fields_without_a_meaning_in_a_batch_are_reported_once_and_taken() {
    let (simulator, place) = ruled(&json!([]));
    write_cards(&place, &[("solo", "model: generic.m\nuse_history: true\nsave_trajectory: true", "Hi.")]);
    write_prompt(&place, "x");
    let ended = run_cards(&place, &[]).ok().says("use_history").says("save_trajectory");
    assert_eq!(ended.stderr.matches("use_history").count(), 1, "{}", ended.stderr);
    assert_eq!(simulator.calls().len(), 1);
}
