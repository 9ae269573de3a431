//! Messages about mistakes in a card as a whole, word for word.

use rowmill_cards::{CardOrigin, CardType, UnparsedCard, join_problems, parse_card};
use rowmill_types::{Problem, ProblemCode};

use crate::{assert_mistakes, local, mistake, refusal_text, remote};

const DOCS: &str = "`docs/agent-cards.md` lists the fields of every type";
const SAVE: &str = "save the card to a file that you trust and pass its path to `agent_card`";

#[test]
fn a_text_that_is_no_card_is_reported_why() {
    for (source, text, message, hint) in [
        (
            "x/SKILL.md",
            "---\nname: a\n---",
            "`x/SKILL.md`: `SKILL.md` describes a skill, not an agent",
            "list its folder in the `skills` of a card",
        ),
        (
            "a.txt",
            "",
            "`a.txt`: the file name is not that of an agent card",
            "card files end with `.md`, `.markdown`, `.yaml` or `.yml`",
        ),
        (
            "a.md",
            "# Hello",
            "`a.md`: there is no front matter",
            "start the card with its fields as YAML between two lines of `---`",
        ),
        (
            "a.md",
            "+++\nname = 1\n+++",
            "`a.md`, line 1: front matter in TOML is not supported",
            "write it as YAML between two lines of `---`",
        ),
    ] {
        assert_eq!(mistake(source, text), (message.to_owned(), hint.to_owned()), "{text:?}");
    }
}

#[test]
fn yaml_that_is_no_card_is_reported_why() {
    for (source, text, message, hint) in [
        (
            "a.md",
            "\n---\nname: a\n",
            "`a.md`, line 2: the front matter has no end",
            "add a line of `---` after the fields",
        ),
        ("a.yaml", "", "`a.yaml`, line 1: a card must be a mapping of fields", "write one card per file"),
        (
            "a.yaml",
            "- name: a",
            "`a.yaml`, line 1: a card must be a mapping of fields",
            "write one card per file",
        ),
        (
            "a.md",
            "---\n[a]\n---\n",
            "`a.md`, line 2: a card must be a mapping of fields",
            "write one card per file",
        ),
        (
            "a.yaml",
            "name: a\n---\nname: b",
            "`a.yaml`, line 3: there is more than one YAML document",
            "write one card per file",
        ),
        (
            "a.yaml",
            "name: a\nmodel: b\nname: c",
            "`a.yaml`, line 3: `name` is given twice",
            "keep one of them",
        ),
        (
            "a.md",
            "---\nname: a\nmodel: [b\n---\nx",
            "`a.md`, line 3: cannot be read as YAML",
            "correct it there",
        ),
        ("a.yaml", "a: 1\n b: 2", "`a.yaml`, line 2: cannot be read as YAML", "correct it there"),
    ] {
        assert_eq!(mistake(source, text), (message.to_owned(), hint.to_owned()), "{text:?}");
    }
    let cause = local("a.md", "\n\n---\nname: 'a\n---\n").unwrap_err();
    assert!(cause.cause.unwrap().contains("line"), "the parser says more");
}

#[test]
fn an_unknown_field_is_reported_with_the_nearest_one() {
    assert_mistakes(&[
        ("name: a\nmodle: x", "`a.yaml`, line 2: unknown field `modle`", "did you mean `model`?"),
        ("Model: x", "`a.yaml`, line 1: unknown field `Model`", "did you mean `model`?"),
        ("sequense: [a]", "`a.yaml`, line 1: unknown field `sequense`", "did you mean `sequence`?"),
        (
            "type: chain\nxyzzy: 1\nsequence: [b]",
            "`a.yaml`, line 2: unknown field `xyzzy`",
            "fields of type `chain`: `type`, `name`, `instruction`, `description`, `default`, `tool_only`, \
             `schema_version`, `sequence`, `cumulative`",
        ),
        (
            "type: chain\nmodel: x\nsequence: [b]",
            "`a.yaml`, line 2: type `chain` has no field `model`",
            "it belongs to: `agent`, `router`, `orchestrator`, `iterative_planner`",
        ),
        ("k: 3", "`a.yaml`, line 1: type `agent` has no field `k`", "it belongs to: `MAKER`"),
    ]);
}

#[test]
fn a_type_is_one_of_those_that_are_listed() {
    let types = "types: `agent`, `chain`, `parallel`, `evaluator_optimizer`, `router`, `orchestrator`, \
                 `iterative_planner`, `MAKER`";
    assert_mistakes(&[
        (
            "type: chian",
            "`a.yaml`, line 1: `type` is unknown: `chian`",
            &format!("did you mean `chain`? {types}"),
        ),
        ("type: workflow", "`a.yaml`, line 1: `type` is unknown: `workflow`", types),
        (
            "type: a2a\nurl: https://h",
            "`a.yaml`, line 1: `type` `a2a` is not supported: agents of other services cannot process rows",
            "use a card of type `agent` whose tools call the service",
        ),
        ("type: [a]", "`a.yaml`, line 1: `type` must be text, not a list", DOCS),
    ]);
}

#[test]
fn a_type_needs_its_children() {
    for (card_type, field) in [
        ("chain", "sequence"),
        ("parallel", "fan_out"),
        ("router", "agents"),
        ("orchestrator", "agents"),
        ("iterative_planner", "agents"),
        ("MAKER", "worker"),
    ] {
        let found = mistake("a.yaml", &format!("name: x\ntype: {card_type}"));
        let message = format!("`a.yaml`, line 1: type `{card_type}` needs `{field}`");
        let hint = format!("add `{field}` with the names of cards that are loaded with this one");
        assert_eq!(found, (message, hint));
    }
    assert_mistakes(&[
        (
            "type: evaluator_optimizer\nevaluator: a",
            "`a.yaml`, line 1: type `evaluator_optimizer` needs `generator`",
            "add `generator` with the names of cards that are loaded with this one",
        ),
        (
            "type: evaluator_optimizer\ngenerator: a",
            "`a.yaml`, line 1: type `evaluator_optimizer` needs `evaluator`",
            "add `evaluator` with the names of cards that are loaded with this one",
        ),
        ("type: chain\nsequence: []", "`a.yaml`, line 2: `sequence` must name at least one agent", DOCS),
        (
            "type: chain\nsequence: a",
            "`a.yaml`, line 2: `sequence` must be a list, not text",
            "write `sequence: [a]`",
        ),
        ("agents:\n- a\n- b\n- a", "`a.yaml`, line 4: `agents[2]` lists `a` twice", "list it once"),
        (
            "agents: [a, 1]",
            "`a.yaml`, line 1: `agents[1]` must be text, not a number",
            "put the value in quotes",
        ),
    ]);
}

#[test]
fn values_must_have_their_form() {
    assert_mistakes(&[
        ("name: 12", "`a.yaml`, line 1: `name` must be text, not a number", "put the value in quotes"),
        ("name: ' '", "`a.yaml`, line 1: `name` must not be empty", "set it, or omit it"),
        ("name: true", "`a.yaml`, line 1: `name` must be text, not true or false", "put the value in quotes"),
        ("description: {a: b}", "`a.yaml`, line 1: `description` must be text, not a mapping", DOCS),
        ("default: 1", "`a.yaml`, line 1: `default` must be `true` or `false`, not a number", DOCS),
        ("schema_version: x", "`a.yaml`, line 1: `schema_version` must be a whole number, not text", DOCS),
        ("max_parallel: 0", "`a.yaml`, line 1: `max_parallel` must be 1 or more, not 0", DOCS),
        ("max_parallel: 1.5", "`a.yaml`, line 1: `max_parallel` must be a whole number, not 1.5", DOCS),
        (
            "max_parallel: 4294967296",
            "`a.yaml`, line 1: `max_parallel` must be 4294967295 or less, not 4294967296",
            DOCS,
        ),
        (
            "child_timeout_sec: -1",
            "`a.yaml`, line 1: `child_timeout_sec` must be a number of seconds above 0, not -1",
            DOCS,
        ),
        ("use_history: maybe", "`a.yaml`, line 1: `use_history` must be `true` or `false`, not text", DOCS),
        (
            "type: orchestrator\nagents: [a]\nplan_iterations: 0",
            "`a.yaml`, line 3: `plan_iterations` must be 1 or more, or -1 for no limit, not 0",
            DOCS,
        ),
        (
            "type: evaluator_optimizer\ngenerator: a\nevaluator: b\nmin_rating: GREAT",
            "`a.yaml`, line 4: `min_rating` is unknown: `GREAT`",
            "expected one of: `POOR`, `FAIR`, `GOOD`, `EXCELLENT`",
        ),
        (
            "type: maker\nworker: a\nmatch_strategy: normalised",
            "`a.yaml`, line 3: `match_strategy` is unknown: `normalised`",
            "did you mean `normalized`? expected one of: `exact`, `normalized`, `structured`",
        ),
        (
            "default: true\ntool_only: true",
            "`a.yaml`, line 2: `default` and `tool_only` cannot be used together",
            "an agent that is only used by others cannot be the one that is run",
        ),
    ]);
}

#[test]
fn a_variable_of_the_environment_must_be_set_where_it_is_needed() {
    assert_mistakes(&[(
        "name: a\napi_key: ${NONE}",
        "`a.yaml`, line 2: the environment variable `NONE` is not set",
        "set it, or give a default: `${NONE:…}`",
    )]);
}

#[test]
fn a_card_from_elsewhere_may_not_reach_into_this_machine() {
    for (text, message) in [
        ("api_key: ${TOKEN}", ", line 1: a remote card may not read environment variables: `${TOKEN}`"),
        ("model: ${M:x}", ", line 1: a remote card may not read environment variables: `${M}`"),
        ("messages: a.txt", ", line 1: a remote card may not use files: `messages`"),
        ("skills: [a]", ", line 1: a remote card may not use files: `skills`"),
        ("name: a\nfunction_tools: a.py:b", ", line 2: a remote card may not use files: `function_tools`"),
        (
            "tool_hooks: {after_tool_call: 'a.py:b'}",
            ", line 1: a remote card may not use files: `tool_hooks`",
        ),
        ("cwd: /", ", line 1: a remote card may not use files: `cwd`"),
        ("instruction: '{{file:a.md}}'", ", line 1: a remote card may not include files: `{{file:a.md}}`"),
        (
            "instruction: '{{ file_silent:a.md }}'",
            ", line 1: a remote card may not include files: `{{ file_silent:a.md }}`",
        ),
    ] {
        let found = refusal_text(remote("https://h/a.yaml", text).unwrap_err());
        assert_eq!(found, (format!("`https://h/a.yaml`{message}"), SAVE.to_owned()), "{text}");
    }
}

#[test]
fn every_field_of_a_type_is_known_to_it() {
    for card_type in CardType::ALL {
        for field in card_type.fields().filter(|field| *field != "type") {
            // A field without a value counts as absent, so only its name is checked.
            let found = local("a.yaml", &format!("type: {card_type}\n{field}:\n"));
            if let Err(problem) = found {
                assert!(problem.message.contains(" needs `"), "{card_type} {field}: {problem}");
            }
        }
    }
}

#[test]
fn all_that_is_wrong_with_a_card_is_reported_at_once_in_the_order_of_the_lines() {
    let text = "modle: m\nname: a\nxyzzy: 1\nshell: maybe\nservers: files\nrequest_params: {max_token: 5}";
    let problems =
        parse_card(&UnparsedCard { source: "a.yaml", text, origin: CardOrigin::Remote }).unwrap_err();
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "`a.yaml`, line 1: unknown field `modle`",
            "`a.yaml`, line 3: unknown field `xyzzy`",
            "`a.yaml`, line 4: `shell` must be `true` or `false`, not text",
            "`a.yaml`, line 5: `servers` must be a list, not text",
            "`a.yaml`, line 6: unknown field `request_params.max_token`",
        ]
    );
    let whole = join_problems(problems);
    assert!(whole.message.starts_with("the agent cards have 5 problems:\n  `a.yaml`, line 1: "));
    assert!(whole.message.contains("\n    help: did you mean `model`?"), "{whole}");
    let many = (0..25).map(|number| Problem::new(ProblemCode::InvalidCard, format!("no {number}"))).collect();
    assert!(join_problems(many).message.ends_with("\n  no 19\n  and 5 more"));
}

/// A card on which every line but the first ones of mappings has a mistake, with the message for each.
const MANY: [(&str, Option<&str>); 32] = [
    ("human_input: maybe", Some("`human_input` must be `true` or `false`, not text")),
    ("use_history: maybe", Some("`use_history` must be `true` or `false`, not text")),
    ("max_display_instances: -1", Some("`max_display_instances` must be 0 or more, not -1")),
    ("default: 1", Some("`default` must be `true` or `false`, not a number")),
    ("tool_only: 1", Some("`tool_only` must be `true` or `false`, not a number")),
    ("web_search: 1", Some("`web_search` must be `true` or `false`, not a number")),
    ("web_fetch: 1", Some("`web_fetch` must be `true` or `false`, not a number")),
    ("instruction: 1", Some("`instruction` must be text, not a number")),
    ("messages: 1", Some("`messages` must be a list, not a number")),
    ("request_params:", None),
    ("  max_token: 5", Some("unknown field `request_params.max_token`")),
    ("  top_p: 2", Some("`request_params.top_p` must be 1 or less, not 2")),
    ("  top_k: -1", Some("`request_params.top_k` must be 0 or more, not -1")),
    ("mcp_connect:", None),
    ("  one: {targt: x}", Some("unknown field `mcp_connect.one.targt`")),
    (
        "  two: {target: x, timeout: 0}",
        Some("`mcp_connect.two.timeout` must be a number of seconds above 0, not 0"),
    ),
    ("tools: {two: a}", Some("`tools.two` must be a list, not text")),
    ("skills: {}", Some("`skills` must be a list, not a mapping")),
    ("function_tools:", None),
    ("  - a.py", Some("`function_tools[0]` must name a function of a Python file, not `a.py`")),
    ("  - {entrypoint: b.py:f, x: 1}", Some("unknown field `function_tools[1].x`")),
    ("tool_hooks:", None),
    ("  before_tol_call: a.py:f", Some("unknown field `tool_hooks.before_tol_call`")),
    (
        "  after_tool_call: a.py",
        Some("`tool_hooks.after_tool_call` must name a function of a Python file, not `a.py`"),
    ),
    ("lifecycle_hooks: {on_strat: a.py:f}", Some("unknown field `lifecycle_hooks.on_strat`")),
    ("tool_policy:", None),
    ("  a: skip", Some("`tool_policy.a` is unknown: `skip`")),
    ("  b: {timeout: 0}", Some("`tool_policy.b.timeout` must be a number of seconds above 0, not 0")),
    ("tool_input_schema: {}", Some("`tool_input_schema` must have `type: object`")),
    ("agents: 1", Some("`agents` must be a list, not a number")),
    ("max_parallel: 0", Some("`max_parallel` must be 1 or more, not 0")),
    ("child_timeout_sec: 0", Some("`child_timeout_sec` must be a number of seconds above 0, not 0")),
];

#[test]
fn a_mistake_in_one_field_hides_none_in_another() {
    let text: String = MANY.iter().map(|(line, _)| format!("{line}\n")).collect();
    let origin = CardOrigin::Local { environment: &|_| None };
    let problems = parse_card(&UnparsedCard { source: "a.yaml", text: &text, origin }).unwrap_err();
    let reported: Vec<_> = problems.iter().map(|problem| problem.message.clone()).collect();
    let expected = MANY.iter().zip(1..).filter_map(|((_, message), line)| {
        message.map(|message| format!("`a.yaml`, line {line}: {message}"))
    });
    assert_eq!(reported, expected.collect::<Vec<_>>());
}

#[test]
fn all_children_that_a_type_lacks_and_all_variables_that_are_not_set_are_reported() {
    let wrong = |text: &str| {
        let problems = parse_card(&UnparsedCard {
            source: "a.yaml",
            text,
            origin: CardOrigin::Local { environment: &|_| None },
        });
        problems.unwrap_err().into_iter().map(|problem| problem.message).collect::<Vec<_>>()
    };
    assert_eq!(
        wrong("type: evaluator_optimizer\nmin_rating: BEST"),
        [
            "`a.yaml`, line 1: type `evaluator_optimizer` needs `generator`",
            "`a.yaml`, line 1: type `evaluator_optimizer` needs `evaluator`",
            "`a.yaml`, line 2: `min_rating` is unknown: `BEST`",
        ]
    );
    assert_eq!(
        wrong("model: ${ONE}\ncwd: ${TWO}"),
        [
            "`a.yaml`, line 1: the environment variable `ONE` is not set",
            "`a.yaml`, line 2: the environment variable `TWO` is not set",
        ]
    );
}
