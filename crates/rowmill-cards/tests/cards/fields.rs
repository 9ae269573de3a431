//! Every field of every type, and its default.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rowmill_cards::*;
use rowmill_core::ports::HookKind;
use serde_json::json;

use crate::{local, remote, yaml};

#[test]
fn a_card_that_says_nothing_is_an_agent_with_the_name_of_its_file() {
    let card = local("cards/my first worker.md", "\u{feff}\n\n---\n---\n").unwrap();
    assert_eq!((card.name.as_str(), card.source.as_str()), ("my_first_worker", "cards/my first worker.md"));
    assert_eq!(card.kind, CardTypeSettings::Agent { agents: vec![] });
    assert_eq!((card.instruction, card.description, card.model), (None, None, None));
    assert_eq!((card.default, card.tool_only, card.shell), (false, false, false));
    assert_eq!(card.request, RequestParams::default());
    assert_eq!(card.hosted, HostedTools::default());
    assert!(card.ignored.is_empty() && card.servers.is_empty() && card.mcp_connect.is_empty());
}

#[test]
fn the_body_is_the_instruction() {
    for (body, expected) in [
        ("\n\n You sort.  \nWell.\n\n", "You sort.  \nWell."),
        ("\n---SYSTEM\nYou sort.\n", "You sort."),
        ("You sort.\n---\nMore.", "You sort.\n---\nMore."),
        ("${MODEL} stays", "${MODEL} stays"),
    ] {
        let card = local("a.md", &format!("---\nname: a\n-----\n{body}")).unwrap();
        assert_eq!(card.instruction.as_deref(), Some(expected), "{body:?}");
    }
    assert_eq!(
        local("a.md", "---\r\nname: a\r\n---\r\nBe\r\nbrief.").unwrap().instruction.unwrap(),
        "Be\nbrief."
    );
}

#[test]
fn an_agent_has_all_that_its_card_says() {
    let card = yaml(include_str!("whole_agent.yaml"));
    assert_eq!((card.name.as_str(), card.default, card.tool_only), ("the_worker", true, false));
    assert_eq!(card.kind, CardTypeSettings::Agent { agents: vec!["one".into(), "the_other".into()] });
    assert_eq!(card.instruction.as_deref(), Some("You sort."));
    assert_eq!(card.description.as_deref(), Some("Sorts."));
    assert_eq!(card.model.as_deref(), Some("openai.gpt-5?reasoning=low"));
    assert_eq!(card.api_key.as_ref().unwrap().reveal(), "planted-secret");
    assert_eq!(card.servers, ["files", "time"]);
    assert_eq!(
        card.tools,
        [("files".to_owned(), vec!["read_*".to_owned()]), ("docs".to_owned(), vec!["find".to_owned()])]
    );
    assert_eq!(card.resources, [("files".to_owned(), vec!["*.txt".to_owned()])]);
    assert_eq!(card.prompts, [("time".to_owned(), vec![])]);
    assert_eq!(card.skills, [PathBuf::from("skills/a"), PathBuf::from("/skills/b")]);
    assert_eq!((card.shell, card.cwd.as_deref()), (true, Some(Path::new("work"))));
    assert_eq!(card.max_parallel, NonZeroU32::new(4));
    assert_eq!(card.child_timeout, Some(Duration::from_millis(2500)));
    assert_eq!(card.messages, [PathBuf::from("examples.txt")]);
    assert_eq!(card.variables.value("tone"), Some("dry"));
    let hosted = HostedTools { web_search: Some(true), web_fetch: Some(false), x_search: None };
    assert_eq!(card.hosted, hosted);
    assert_eq!(json!(card.tool_input_schema.unwrap())["required"], json!(["text"]));
    let ignored = [
        "use_history",
        "save_trajectory",
        "trim_tool_history",
        "history_source",
        "history_merge_target",
        "max_display_instances",
        "commands",
        "request_params.use_history",
        "mcp_connect.docs.defer_loading",
    ];
    assert_eq!(card.ignored, ignored);
}

#[test]
fn function_tools_and_hooks_name_functions_of_files() {
    let card = yaml(include_str!("whole_agent.yaml"));
    let function =
        |file: &str, function: &str| PythonFunctionReference { file: file.into(), function: function.into() };
    let code = |argument: &str, language: &str| CodeArgument {
        argument: argument.into(),
        language: language.into(),
    };
    assert_eq!(
        card.function_tools,
        [
            CardPythonTool { entrypoint: function("tools.py", "add"), code: None, idempotent: false },
            CardPythonTool { entrypoint: function("tools.py", "look_up"), code: None, idempotent: true },
            CardPythonTool {
                entrypoint: function("run.py", "run"),
                code: Some(code("code", "python")),
                idempotent: false
            },
            CardPythonTool {
                entrypoint: function("run.py", "sql"),
                code: Some(code("query", "sql")),
                idempotent: false
            },
        ]
    );
    assert_eq!(
        yaml("function_tools: C:/x/tools.py:add").function_tools[0].entrypoint,
        function("C:/x/tools.py", "add")
    );
    let kinds: Vec<_> = card.tool_hooks.iter().map(|(kind, _)| *kind).collect();
    let expected = [
        HookKind::BeforeModel,
        HookKind::AfterModel,
        HookKind::BeforeTool,
        HookKind::AfterTool,
        HookKind::AfterTurn,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(card.tool_hooks[4].1, function("hooks.py", "after_turn"));
    let lifecycle = [
        (LifecycleHook::OnStart, function("hooks.py", "up")),
        (LifecycleHook::OnShutdown, function("hooks.py", "down")),
    ];
    assert_eq!(card.lifecycle_hooks, lifecycle);
}

#[test]
fn a_policy_says_where_calls_of_a_tool_go() {
    let policy = yaml(include_str!("whole_agent.yaml")).tool_policy;
    let plain = |route| ToolPolicy { route, ..ToolPolicy::default() };
    let full = ToolPolicy {
        route: CardToolCallAction::Call,
        idempotent: Some(true),
        timeout: Some(Duration::from_secs(30)),
        max_parallel: NonZeroU32::new(2),
    };
    let expected = [
        ("files__delete".to_owned(), plain(CardToolCallAction::Deny)),
        ("look_up".to_owned(), plain(CardToolCallAction::Passthrough)),
        ("add".to_owned(), plain(CardToolCallAction::Call)),
        ("docs__find".to_owned(), full),
    ];
    assert_eq!(policy, expected);
}

#[test]
fn request_params_are_typed() {
    let request = yaml(include_str!("whole_agent.yaml")).request;
    assert_eq!((request.max_tokens, request.max_iterations), (NonZeroU32::new(100), NonZeroU32::new(7)));
    assert_eq!(request.parallel_tool_calls, Some(false));
    assert_eq!(request.streaming_timeout, Some(StreamIdleTimeout::After(Duration::from_secs(90))));
    assert_eq!(
        (request.temperature, request.top_p, request.top_k, request.min_p),
        (Some(0.5), Some(0.9), Some(40), Some(0.1))
    );
    assert_eq!((request.presence_penalty, request.frequency_penalty), (Some(-0.5), Some(0.25)));
    assert_eq!((request.repetition_penalty, request.service_tier), (Some(1.1), Some(ServiceTier::Flex)));
    assert_eq!(request.tool_result_mode, ToolResultMode::Selectable);
    assert_eq!(request.structured_tool_policy, StructuredToolPolicy::NoTools);

    let card =
        yaml("request_params: {streaming_timeout: null, maxTokens: 5, topP: 1, model: m, temperature: 1}");
    assert_eq!(card.request.streaming_timeout, Some(StreamIdleTimeout::Never));
    assert_eq!((card.request.max_tokens, card.request.top_p), (NonZeroU32::new(5), Some(1.0)));
    assert_eq!((card.model.as_deref(), card.request.temperature), (Some("m"), Some(1.0)));
}

#[test]
fn servers_of_a_card_keep_their_checked_settings() {
    let card = yaml(include_str!("whole_agent.yaml"));
    let names: Vec<_> = card.mcp_connect.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["docs", "notes"]);
    assert_eq!(
        json!(card.mcp_connect[0].settings),
        json!({
            "target": "https://example.com/mcp", "description": "Docs", "access_token": "planted-secret",
            "headers": {"X-Team": "a"}, "timeout": 20.0, "auth": {"oauth": false}, "protocol_mode": "auto",
            "name": "docs"
        })
    );
    assert_eq!(
        json!(card.mcp_connect[1].settings),
        json!({
            "command": "notes-server", "cwd": "data", "args": ["--all"], "tools": ["find"], "resources": [],
            "prompts": ["p"], "env": {"KEY": "planted-secret"}, "start_timeout": 5.0, "per_row": true,
            "idempotent": ["find"], "name": "notes"
        })
    );
    let listed = yaml(
        "mcp_connect: [{target: 'npx @x/files .'}, {name: t, url: 'https://h', include_instructions: no}]",
    );
    assert_eq!(listed.mcp_connect[1].settings["include_instructions"], false);
    assert_eq!((listed.mcp_connect[0].name.as_str(), listed.mcp_connect[1].name.as_str()), ("files", "t"));
}

#[test]
fn workflows_have_their_fields_and_defaults() {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let chain = |cumulative| CardTypeSettings::Chain { sequence: names(&["a", "b", "a"]), cumulative };
    let parallel = |fan_in: Option<&str>, include_request| CardTypeSettings::Parallel {
        fan_out: names(&["a", "b"]),
        fan_in: fan_in.map(str::to_owned),
        include_request,
    };
    let refine = |min_rating, max_refinements, refinement_instruction: Option<&str>| {
        CardTypeSettings::EvaluatorOptimizer {
            generator: "a".into(),
            evaluator: "b".into(),
            min_rating,
            max_refinements,
            refinement_instruction: refinement_instruction.map(str::to_owned),
        }
    };
    let orchestrator = |plan_type, rounds| CardTypeSettings::Orchestrator {
        agents: names(&["a"]),
        plan_type,
        plan_iterations: NonZeroU32::new(rounds),
    };
    let planner = |rounds| CardTypeSettings::IterativePlanner {
        agents: names(&["a"]),
        plan_iterations: NonZeroU32::new(rounds),
    };
    let maker = |k, max_samples, match_strategy, red_flag_max_length| CardTypeSettings::Maker {
        worker: "a".into(),
        k,
        max_samples,
        match_strategy,
        red_flag_max_length,
    };
    for (text, expected) in [
        ("type: chain\nsequence: [a, b, a]", chain(false)),
        ("type: Chain\nsequence: [a, b, a]\ncumulative: true", chain(true)),
        ("type: parallel\nfan_out: [a, b]", parallel(None, true)),
        ("type: parallel\nfan_out: [a, b]\nfan_in: c\ninclude_request: false", parallel(Some("c"), false)),
        ("type: evaluator_optimizer\ngenerator: a\nevaluator: b", refine(AnswerRating::Good, 3, None)),
        (
            "type: evaluator-optimizer\ngenerator: a\nevaluator: b\nmin_rating: excellent\nmax_refinements: 0\nrefinement_instruction: Be strict.",
            refine(AnswerRating::Excellent, 0, Some("Be strict.")),
        ),
        ("type: router\nagents: [a, b]", CardTypeSettings::Router { agents: names(&["a", "b"]) }),
        ("type: orchestrator\nagents: [a]", orchestrator(OrchestratorPlanType::Full, 5)),
        (
            "type: orchestrator\nagents: [a]\nplan_type: iterative\nplan_iterations: -1",
            orchestrator(OrchestratorPlanType::Iterative, 0),
        ),
        ("type: iterative_planner\nagents: [a]", planner(0)),
        ("type: Iterative-Planner\nagents: [a]\nplan_iterations: 2", planner(2)),
        ("type: MAKER\nworker: a", maker(3, 50, AnswerEquality::Exact, None)),
        (
            "type: maker\nworker: a\nk: 1\nmax_samples: 5\nmatch_strategy: structured\nred_flag_max_length: 9",
            maker(1, 5, AnswerEquality::Structured, Some(9)),
        ),
    ] {
        let card = yaml(text);
        assert_eq!(card.kind, expected, "{text}");
        assert!(card.ignored.is_empty());
    }
}

#[test]
fn what_only_a_person_at_a_screen_could_use_is_passed_over() {
    let card = yaml(
        "human_input: true\nsubagents: true\nharness_tools: true\nsubagent_model: m\nmax_display_instances: 3",
    );
    assert_eq!(
        card.ignored,
        ["human_input", "subagents", "harness_tools", "subagent_model", "max_display_instances"]
    );
    assert_eq!(card.shape, yaml("default: false").shape, "answers do not depend on it");
}

#[test]
fn what_asks_for_nothing_is_not_called_ignored() {
    let card = yaml(
        "type: smart\nuse_history: false\nsave_trajectory: false\nhistory_source: none\ncommands: {}\nhuman_input: false\n\
         subagents: false\nharness_tools: false\nrequest_params: {use_history: false}",
    );
    assert_eq!(card.ignored, ["type: smart"]);
    let chain = local("a.md", "---\ntype: MAKER\nworker: a\nmessages: m.txt\n---\nFor readers.").unwrap();
    assert_eq!(
        (chain.instruction, chain.ignored),
        (None, vec!["instruction".to_owned(), "messages".to_owned()])
    );
}

#[test]
fn the_environment_fills_fields_of_local_cards() {
    let card = yaml(
        "model: ${MODEL}?x=${NONE:y}\ndescription: ${NONE} and ${TOKEN}\nname: a${EMPTY:b}\ninstruction: $ ${ ${} {",
    );
    assert_eq!(card.model.as_deref(), Some("openai.gpt-5?x=y"));
    assert_eq!(card.description.as_deref(), Some("${NONE} and planted-secret"));
    assert_eq!((card.name.as_str(), card.instruction.as_deref()), ("a", Some("$ ${ ${} {")));
    let card = remote("https://host/b.yaml", "description: ${TOKEN}\nskills: []").unwrap();
    assert_eq!((card.name.as_str(), card.description.as_deref()), ("b", Some("${TOKEN}")));
}

#[test]
fn words_that_yaml_once_took_for_true_and_false_are_names_where_a_name_is_wanted() {
    let card = yaml("name: No\nagents: [y, on]\nshell: Yes\ndefault: off");
    assert_eq!((card.name.as_str(), card.shell, card.default), ("No", true, false));
    assert_eq!(card.kind, CardTypeSettings::Agent { agents: vec!["y".into(), "on".into()] });
}

#[test]
fn every_path_of_a_card_is_looked_up() {
    let mut card = yaml(include_str!("whole_agent.yaml"));
    card.cwd = Some("~/x".into());
    let card_fields: Vec<_> = CardType::Agent.fields().collect();
    card.map_paths(&mut |field, path| {
        assert!(card_fields.contains(&field), "{field}");
        Path::new("/cards").join(path)
    });
    assert_eq!(card.skills, [PathBuf::from("/cards/skills/a"), PathBuf::from("/skills/b")]);
    assert_eq!(card.messages, [PathBuf::from("/cards/examples.txt")]);
    assert_eq!(card.cwd, Some(PathBuf::from("/cards/~/x")));
    assert_eq!(card.function_tools[0].entrypoint.file, PathBuf::from("/cards/tools.py"));
    assert_eq!(card.tool_hooks[0].1.file, PathBuf::from("/cards/hooks.py"));
    assert_eq!(card.lifecycle_hooks[0].1.file, PathBuf::from("/cards/hooks.py"));
    assert_eq!(card.mcp_connect[1].settings["cwd"], json!("/cards/data"));
}

#[test]
fn the_shape_of_a_card_holds_what_shapes_answers_and_no_secret() {
    let card = yaml(include_str!("whole_agent.yaml"));
    let shape = card.shape.to_string();
    assert!(!shape.contains("planted-secret") && !shape.contains("X-Team"), "{shape}");
    let keys: BTreeSet<_> = card.shape.as_object().unwrap().keys().map(String::as_str).collect();
    for name in ["model", "mcp_connect", "tools", "request_params", "type", "description", "tool_policy"] {
        assert!(keys.contains(name), "{name}");
    }
    for name in ["api_key", "instruction", "variables", "default", "use_history", "commands"] {
        assert!(!keys.contains(name), "{name}");
    }
    assert!(!format!("{card:?}").contains("planted-secret"));
    assert_eq!(yaml("model: m\nshell: true").shape, yaml("shell: true\nmodel: m").shape);
    assert_ne!(yaml("model: m").shape, yaml("model: n").shape);
}

#[test]
fn the_agent_of_the_tests_uses_every_field_of_its_type() {
    let text = include_str!("whole_agent.yaml");
    let unused = ["human_input", "subagents", "subagent_model", "harness_tools"];
    for field in CardType::Agent.fields().filter(|field| !unused.contains(field)) {
        assert!(text.contains(&format!("\n{field}:")), "{field}");
    }
}
