//! Every type of card from end to end, with all messages that each agent received.

use crate::agents_support::{
    call_texts, results, row_error, ruled, run_cards, sorted_call_texts, write_cards, write_prompt,
};
use serde_json::{Value, json};

/// Agents that answer with their name and the last message.
fn agent_names(names: &[&str]) -> Vec<Value> {
    let rule = |name: &&str| {
        let text = format!("{name}({{{{last}}}})");
        json!({"when": {"system": format!("You are {name}.")}, "then": {"text": text}})
    };
    names.iter().map(rule).collect()
}

const A: (&str, &str, &str) = ("a", "tool_only: true\ndescription: Knows letters.", "You are a.");
const B: (&str, &str, &str) = ("b", "tool_only: true", "You are b.");
const C: (&str, &str, &str) = ("c", "tool_only: true", "You are c.");

#[test]
fn an_agent_gets_its_instruction_and_the_prompt_of_the_row() {
    let (simulator, place) = ruled(&json!(agent_names(&["a"])));
    write_cards(&place, &[("solo", "model: generic.m", "You are a.")]);
    write_prompt(&place, "hello");
    run_cards(&place, &[]).ok();
    assert_eq!(results(&place), [json!("a(hello)")]);
    assert_eq!(call_texts(&simulator), ["[You are a.]\nuser: hello"]);
}

#[test]
fn an_agent_asks_other_agents_as_tools() {
    let mut rules =
        vec![json!({"when": {"system": "You ask", "turn": 1}, "then": {"text": "I ask.", "calls": [
            {"name": "a", "arguments": {"message": "first"}},
            {"name": "my_b", "arguments": {"topic": "x", "deep": true}},
            {"name": "a", "arguments": {"question": "?"}},
            {"name": "nobody"}
        ]}})];
    rules.push(json!({"when": {"system": "You ask"}, "then": {"text": "together: {{last}}"}}));
    rules.extend(agent_names(&["a", "b"]));
    let (simulator, place) = ruled(&json!(rules));
    let schema =
        "tool_input_schema:\n  type: object\n  properties: {topic: {type: string}, deep: {type: boolean}}";
    write_cards(
        &place,
        &[
            A,
            ("b", &format!("name: my.b\ntool_only: true\n{schema}"), "You are b."),
            ("boss", "agents: [a, my.b]", "You ask others."),
        ],
    );
    write_prompt(&place, "hello");
    run_cards(&place, &["-m", "generic.m", "--telemetry-output", "t.jsonl"]).ok();
    let wrong = "the arguments of `a` do not satisfy its schema: ";
    let calls = simulator.calls();
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[0].tools, ["a", "my_b"]);
    let heard = sorted_call_texts(&simulator);
    assert_eq!(heard[0], "[You are a.]\nuser: first");
    assert_eq!(heard[1], "[You are b.]\nuser: {\"topic\":\"x\",\"deep\":true}");
    let end = &heard[3];
    let begin = "[You ask others.]\nuser: hello\nassistant: I ask.\ncall: a{\"message\":\"first\"}\n\
                 call: my_b{\"topic\":\"x\",\"deep\":true}\ncall: a{\"question\":\"?\"}\ncall: nobody{}\n\
                 a: a(first)\nmy_b: b({\"topic\":\"x\",\"deep\":true})\na: ";
    assert!(end.starts_with(&format!("{begin}{wrong}")), "{end}");
    assert!(end.ends_with("\nnobody: there is no tool `nobody`; there are: a, my_b"), "{end}");
    let agents = &place.json("t.jsonl")[0]["usage"]["provider_attempts"];
    let mut agents: Vec<&Value> =
        agents.as_array().into_iter().flatten().map(|call| &call["agent"]).collect();
    agents.sort_by_key(|agent| agent.to_string());
    assert_eq!(agents, ["a", "boss", "boss", "my.b"]);
}

#[test]
fn a_chain_hands_each_answer_to_the_next() {
    let (simulator, place) = ruled(&json!(agent_names(&["a", "b", "c"])));
    write_cards(&place, &[A, B, C, ("line", "type: chain\nsequence: [a, b, c]", "")]);
    write_prompt(&place, "hello");
    run_cards(&place, &["-m", "generic.m"]).ok();
    assert_eq!(results(&place), [json!("c(b(a(hello)))")]);
    assert_eq!(
        call_texts(&simulator),
        ["[You are a.]\nuser: hello", "[You are b.]\nuser: a(hello)", "[You are c.]\nuser: b(a(hello))"]
    );
}

#[test]
fn a_cumulative_chain_shows_all_answers_to_the_next_and_gives_them_all() {
    let (simulator, place) = ruled(&json!(agent_names(&["a", "b", "c"])));
    write_cards(&place, &[A, B, C, ("line", "type: chain\nsequence: [a, b, c]\ncumulative: true", "")]);
    write_prompt(&place, "hello");
    run_cards(&place, &["-m", "generic.m"]).ok();
    let expected = "<fastagent:request>hello</fastagent:request>\n\n\
                    <fastagent:response agent='a'>a(hello)</fastagent:response>\n\n\
                    <fastagent:response agent='b'>b(a(hello))</fastagent:response>\n\n\
                    <fastagent:response agent='c'>c(b(a(hello)))</fastagent:response>";
    assert_eq!(results(&place), [json!(expected)]);
    assert_eq!(
        call_texts(&simulator),
        [
            "[You are a.]\nuser: hello",
            "[You are b.]\nuser: hello\nuser: a(hello)",
            "[You are c.]\nuser: hello\nuser: a(hello)\nuser: b(a(hello))"
        ]
    );
}

#[test]
fn parallel_agents_hear_the_same_and_their_answers_stand_in_the_order_of_the_card() {
    let request = "The following request was sent to the agents:\n\n<fastagent:request>\nhello\n</fastagent:request>\n\n";
    let answers = "<fastagent:response agent=\"b\">\nb(hello)\n</fastagent:response>\n\n\
                   <fastagent:response agent=\"a\">\na(hello)\n</fastagent:response>";
    for (fields, gathered) in
        [("", format!("{request}{answers}")), ("\ninclude_request: false", answers.to_owned())]
    {
        for with_fan_in in [false, true] {
            let (simulator, place) = ruled(&json!(agent_names(&["a", "b", "c"])));
            let fan_in = if with_fan_in { "\nfan_in: c" } else { "" };
            let front = format!("type: parallel\nfan_out: [b, a]{fan_in}{fields}");
            write_cards(&place, &[A, B, C, ("both", &front, "")]);
            write_prompt(&place, "hello");
            run_cards(&place, &["-m", "generic.m"]).ok();
            let mut expected =
                vec!["[You are a.]\nuser: hello".to_owned(), "[You are b.]\nuser: hello".to_owned()];
            let mut result = gathered.clone();
            if with_fan_in {
                expected.push(format!("[You are c.]\nuser: {gathered}"));
                result = format!("c({gathered})");
            }
            assert_eq!(sorted_call_texts(&simulator), expected, "{front}");
            assert_eq!(results(&place), [json!(result)], "{front}");
        }
    }
}

const ROUTING: &str = "You pass every request on to the one agent that can answer it best. Do not answer it \
yourself. Compare what the request needs with what each agent is good for, choose one agent by its exact \
name, and say how sure you are and why, in a few words.";

#[test]
fn a_router_lets_its_model_choose_who_answers() {
    let choice = |agent: &str| json!({"agent": agent, "confidence": "high", "reasoning": "because"});
    let list = "The agents:\n- a: Knows letters.\n- b";
    for (own, system) in [
        ("Money is for b.", format!("{ROUTING}\n\n{list}\n\nMoney is for b.")),
        (
            "Of these:\n{{agents}}\ntake one.",
            format!("{ROUTING}\n\nOf these:\n- a: Knows letters.\n- b\ntake one."),
        ),
        ("", format!("{ROUTING}\n\n{list}")),
    ] {
        let mut rules = vec![json!({"when": {"schema": true}, "then": {"json": choice("b")}})];
        rules.extend(agent_names(&["a", "b"]));
        let (simulator, place) = ruled(&json!(rules));
        write_cards(&place, &[A, B, ("door", "type: router\nagents: [a, b]", own)]);
        write_prompt(&place, "hello");
        run_cards(&place, &["-m", "generic.m"]).ok();
        assert_eq!(results(&place), [json!("b(hello)")], "{own}");
        assert_eq!(
            call_texts(&simulator),
            [format!("[{system}]\nuser: hello"), "[You are b.]\nuser: hello".to_owned()]
        );
        let schema = &simulator.requests()[0].json()["response_format"]["json_schema"]["schema"];
        assert_eq!(schema["properties"]["agent"]["enum"], json!(["a", "b"]));
    }
}

#[test]
fn a_router_learns_once_that_there_is_no_such_agent() {
    let choice = |agent: &str| json!({"agent": agent, "confidence": "low", "reasoning": "r"});
    let system = format!("[{ROUTING}\n\nThe agents:\n- a: Knows letters.\n- b]");
    let asked = format!("{system}\nuser: hello");
    let again = format!(
        "{asked}\nassistant: {}\nuser: There is no agent `z`. Choose again, and name one of these exactly: `a`, `b`.",
        choice("z")
    );
    for second in ["a", "y"] {
        let mut rules = vec![
            json!({"when": {"schema": true, "turn": 1}, "then": {"json": choice("z")}}),
            json!({"when": {"schema": true, "turn": 2}, "then": {"json": choice(second)}}),
        ];
        rules.extend(agent_names(&["a"]));
        let (simulator, place) = ruled(&json!(rules));
        write_cards(&place, &[A, B, ("door", "type: router\nagents: [a, b]", "")]);
        write_prompt(&place, "hello");
        let ended = run_cards(&place, &["-m", "generic.m"]);
        let heard = call_texts(&simulator);
        assert_eq!(heard[..2], [asked.clone(), again.clone()]);
        if second == "a" {
            ended.ok();
            assert_eq!(heard[2..], ["[You are a.]\nuser: hello"]);
        } else {
            ended.code(3);
            let message = "`door`: the model chose the agent `y`; there are only `a`, `b`";
            assert_eq!(row_error(&place), ("StructuredOutputError".to_owned(), message.to_owned()));
            assert_eq!(heard.len(), 2);
        }
    }
}

#[test]
fn a_router_with_one_agent_asks_no_model() {
    let (simulator, place) = ruled(&json!(agent_names(&["a"])));
    write_cards(&place, &[A, ("door", "type: router\nagents: [a]", "Choose.")]);
    write_prompt(&place, "hello");
    run_cards(&place, &["-m", "generic.m"]).ok();
    assert_eq!(call_texts(&simulator), ["[You are a.]\nuser: hello"]);
}

#[test]
fn a_member_that_fails_fails_the_row_and_is_named() {
    for (front, who) in [
        ("type: chain\nsequence: [b, a]", "`a`"),
        ("type: parallel\nfan_out: [a, b]", "`a`"),
        ("type: router\nagents: [a]", "`a`"),
        ("type: MAKER\nworker: a", "`a`"),
    ] {
        let mut rules = vec![json!({"when": {"system": "You are a."}, "then": {"fault": "400"}})];
        rules.extend(agent_names(&["b"]));
        let (_simulator, place) = ruled(&json!(rules));
        write_cards(&place, &[A, B, ("top", front, "")]);
        write_prompt(&place, "hello");
        run_cards(&place, &["-m", "generic.m"]).code(3);
        let (kind, message) = row_error(&place);
        assert!(message.starts_with(&format!("{who}: ")), "{front}: {kind}: {message}");
    }
}

#[test]
fn an_optimizer_that_ends_below_its_rating_says_so_in_telemetry_trace_and_notice() {
    let opinion = json!({"rating": "FAIR", "feedback": "meh", "needs_improvement": true, "focus_areas": []});
    let (_simulator, place) = ruled(&json!([
        {"when": {"system": "You are b."}, "then": {"json": opinion}},
        {"when": {}, "then": {"text": "a poem"}}
    ]));
    let studio =
        "type: evaluator_optimizer\ngenerator: a\nevaluator: b\nmin_rating: GOOD\nmax_refinements: 1";
    write_cards(&place, &[A, B, ("studio", studio, "")]);
    write_prompt(&place, "write");
    let flags = ["-m", "generic.m", "--telemetry-output", "t.jsonl", "--export-traces", "traces"];
    let ended = run_cards(&place, &flags).ok();
    ended.says("1 row has an answer that is rated below the `min_rating`");
    assert_eq!(results(&place), [json!("a poem")]);
    let below = json!([{"agent": "studio", "rating": "FAIR", "min_rating": "GOOD"}]);
    assert_eq!(place.json("t.jsonl")[0]["below_min_rating"], below);
    let spans = place.json("traces/spans.jsonl")[0].to_string();
    assert!(spans.contains("rowmill.row.below_min_rating"), "{spans}");
}

#[test]
fn spans_of_agents_stand_under_the_agent_that_called_them() {
    let mut rules = vec![
        json!({"when": {"system": "You ask", "turn": 1}, "then": {"calls": [{"name": "a", "arguments": {"message": "go"}}]}}),
        json!({"when": {"system": "You ask"}, "then": {"text": "done"}}),
    ];
    rules.extend(agent_names(&["a"]));
    let (_simulator, place) = ruled(&json!(rules));
    write_cards(&place, &[A, ("boss", "agents: [a]", "You ask others.")]);
    write_prompt(&place, "hello");
    run_cards(&place, &["-m", "generic.m", "--export-traces", "traces"]).ok();
    let line = &place.json("traces/spans.jsonl")[0]["resourceSpans"][0]["scopeSpans"][0]["spans"];
    let spans = line.as_array().unwrap();
    let named = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap();
    assert_eq!(named("invoke_agent a")["parentSpanId"], named("invoke_agent boss")["spanId"]);
    assert_eq!(named("invoke_agent boss")["parentSpanId"], named("rowmill.row")["spanId"]);
}
