//! Cards that plan, judge and vote, with all messages that each agent received.

use crate::support;

use crate::agents_support::{
    call_texts, results, row_error, ruled, run_cards, sorted_call_texts, write_cards, write_prompt,
};
use serde_json::{Value, json};

const A: (&str, &str, &str) = ("a", "tool_only: true\ndescription: Knows letters.", "You are a.");
const B: (&str, &str, &str) = ("b", "tool_only: true", "You are b.");

fn says(system: &str, last: &str, then: &Value) -> Value {
    json!({"when": {"system": system, "last": last}, "then": then})
}

fn judging(first: &str, round: u32, answer: &str) -> String {
    format!(
        "[You judge.]\nuser: {first}\n\nJudge how well the answer below does what the request asks for. This is \
         round {round} of judging. Rate it, say what is good and what should be better, and name what to work on \
         first.\n\n<request>\nhello\n</request>\n\n<answer>\n{answer}\n</answer>"
    )
}

fn refining(first: &str, round: u32, answer: &str, rating: &str, areas: &str) -> String {
    format!(
        "[You write.]\nuser: {first}Your answer to the request below was judged. Make it better: this is refinement \
         {round}.\n\n<request>\nhello\n</request>\n\n<answer>\n{answer}\n</answer>\n\n<rating>{rating}</rating>\n\n\
         <feedback>\nshorter\n</feedback>\n\n<work_on>\n{areas}\n</work_on>\n\nAct on every point of the feedback, \
         keep what is good, and stay with what the request asks for. Answer with the whole improved answer and \
         nothing else."
    )
}

fn opinion(rating: &str, needs: bool, areas: &[&str]) -> Value {
    json!({"json": {"rating": rating, "feedback": "shorter", "needs_improvement": needs, "focus_areas": areas}})
}

#[test]
fn an_answer_is_refined_until_it_is_good_enough() {
    let rules = json!([
        says("You write.", "refinement 2", &json!({"text": "third"})),
        says("You write.", "refinement 1", &json!({"text": "second"})),
        says("You write.", "", &json!({"text": "first"})),
        says("You judge.", "round 1", &opinion("POOR", true, &["length", "tone"])),
        says("You judge.", "round 2", &opinion("FAIR", true, &[])),
        says("You judge.", "round 3", &opinion("GOOD", true, &[])),
    ]);
    for (extra, answer, default) in [
        ("", "", "Judge answers strictly and fairly."),
        ("\nrefinement_instruction: Be brief.", "Be brief.\n\n", "Be brief."),
    ] {
        let (simulator, place) = ruled(&rules);
        let front = format!("type: evaluator_optimizer\ngenerator: w\nevaluator: j{extra}");
        write_cards(
            &place,
            &[
                ("w", "tool_only: true", "You write."),
                ("j", "tool_only: true", "You judge."),
                ("top", &front, ""),
            ],
        );
        write_prompt(&place, "hello");
        run_cards(&place, &["-m", "generic.m"]).ok();
        assert_eq!(results(&place), [json!("third")]);
        assert_eq!(
            call_texts(&simulator),
            [
                "[You write.]\nuser: hello".to_owned(),
                judging(default, 1, "first"),
                refining(answer, 1, "first", "POOR", "- length\n- tone"),
                judging(default, 2, "second"),
                refining(answer, 2, "second", "FAIR", "- nothing in particular"),
                judging(default, 3, "third"),
            ]
        );
    }
}

#[test]
fn refinement_ends_at_its_bounds_with_the_best_answer() {
    // The fields of the card, the opinions, the result and the number of calls.
    type Case = (&'static str, [(&'static str, bool); 3], &'static str, usize);
    let cases: [Case; 5] = [
        ("max_refinements: 2", [("POOR", true), ("FAIR", true), ("POOR", true)], "second", 6),
        ("max_refinements: 1", [("FAIR", true), ("FAIR", true), ("POOR", true)], "first", 4),
        ("max_refinements: 0", [("POOR", true), ("FAIR", true), ("POOR", true)], "first", 2),
        ("min_rating: EXCELLENT", [("GOOD", true), ("EXCELLENT", true), ("POOR", true)], "second", 4),
        ("min_rating: EXCELLENT", [("POOR", false), ("POOR", true), ("POOR", true)], "first", 2),
    ];
    for (fields, opinions, result, calls) in cases {
        let mut rules = vec![
            says("You write.", "refinement 2", &json!({"text": "third"})),
            says("You write.", "refinement 1", &json!({"text": "second"})),
            says("You write.", "", &json!({"text": "first"})),
        ];
        for (round, (rating, needs)) in (1..).zip(opinions) {
            rules.push(says("You judge.", &format!("round {round}"), &opinion(rating, needs, &[])));
        }
        let (simulator, place) = ruled(&json!(rules));
        let front = format!("type: evaluator-optimizer\ngenerator: w\nevaluator: j\n{fields}");
        write_cards(
            &place,
            &[
                ("w", "tool_only: true", "You write."),
                ("j", "tool_only: true", "You judge."),
                ("top", &front, ""),
            ],
        );
        write_prompt(&place, "hello");
        run_cards(&place, &["-m", "generic.m"]).ok();
        assert_eq!(results(&place), [json!(result)], "{fields}");
        assert_eq!(simulator.calls().len(), calls, "{fields}");
    }
}

const PLANNING: &str = "You plan how a request is fulfilled by a team of agents. Do not answer it yourself. A \
plan is a list of steps that are done one after the other. A step has tasks that are done at the same time, \
so no task may need what another task of its step gives. Give each task to one agent by its exact name, and \
describe it so that the agent knows what to do and what to report. Make as few steps as will do.";

const NEXT: &str = "You plan how a request is fulfilled by a team of agents, one step at a time. Do not answer \
it yourself. A step has tasks that are done at the same time, so no task may need what another task of it \
gives. Give each task to one agent by its exact name, and describe it so that the agent knows what to do and \
what to report. Make as few steps as will do.";

const ANSWERING: &str = "A team of agents has worked on a request by a plan of yours. You get the request and \
what came of the plan, and give the answer. Rest on what the agents reported, and add nothing that they did \
not find out.";

const TEAM: &str = "The agents:\n- a: Knows letters.\n- b\n\nBe quick.";

fn plan_asked(system: &str, done: &str, how: &str) -> String {
    format!(
        "[{system}\n\n{TEAM}]\nuser: <request>\nhello\n</request>\n\nDone so far:\n<progress>\n{done}\n</progress>\n\n{how}"
    )
}

fn task(agent: &str, done: &str, what: &str) -> String {
    format!(
        "[You are {agent}.]\nuser: You do one task of a larger plan.\n\nThe plan is to fulfil this request:\n<request>\n\
         hello\n</request>\n\nWhat was done before:\n<progress>\n{done}\n</progress>\n\nYour task:\n<task>\n{what}\n\
         </task>\n\nDo this task and nothing else. Answer briefly, but with everything that others need to go on from \
         here: they see only your answer."
    )
}

fn answer_asked(done: &str, ending: &str) -> String {
    format!(
        "[{ANSWERING}\n\n{TEAM}]\nuser: <request>\nhello\n</request>\n\nA plan was made and carried out for this \
         request:\n<progress>\n{done}\n</progress>\n\n{ending}\n\nNow answer the request from these results."
    )
}

const FULL: &str = "Plan all steps that are still needed to fulfil the request, in their order. If the results so \
far are enough to answer it, or if it cannot be fulfilled, give no steps and set `is_complete` to true.";
const STEP: &str = "Say which step is to be done next to fulfil the request. If the results so far are enough to \
answer it, or if it cannot be fulfilled, give no tasks and set `is_complete` to true.";
const TWO: &str = "Step 1: look\nTask for `a`: read\n<result>\nletters\n</result>\nTask for `b`: count\n<result>\nthree\n</result>";
const THREE: &str = "Step 1: look\nTask for `a`: read\n<result>\nletters\n</result>\nTask for `b`: count\n<result>\nthree\n\
</result>\nStep 2: write\nTask for `a`: compose\n<result>\nletters\n</result>";

fn step(description: &str, tasks: &[(&str, &str)]) -> Value {
    let tasks: Vec<Value> =
        tasks.iter().map(|(agent, what)| json!({"agent": agent, "description": what})).collect();
    json!({"description": description, "tasks": tasks})
}

fn next(step: &Value, is_complete: bool) -> Value {
    let mut next = step.clone();
    next["is_complete"] = json!(is_complete);
    json!({ "json": next })
}

fn workers() -> [Value; 3] {
    [
        says("You are a.", "", &json!({"text": "letters"})),
        says("You are b.", "", &json!({"text": "three"})),
        says("A team of agents", "", &json!({"text": "done"})),
    ]
}

#[test]
fn an_orchestrator_plans_all_steps_has_them_done_and_answers() {
    let steps = [step("look", &[("a", "read"), ("b", "count")]), step("write", &[("a", "compose")])];
    let mut rules = vec![says("You plan", "", &json!({"json": {"steps": steps, "is_complete": true}}))];
    rules.extend(workers());
    let (simulator, place) = ruled(&json!(rules));
    write_cards(&place, &[A, B, ("top", "type: orchestrator\nagents: [a, b]", "Be quick.")]);
    write_prompt(&place, "hello");
    run_cards(&place, &["-m", "generic.m"]).ok();
    assert_eq!(results(&place), [json!("done")]);
    let mut expected = vec![
        plan_asked(PLANNING, "Nothing yet.", &format!("{FULL} You can plan 5 times, this time included.")),
        task("a", "Nothing yet.", "read"),
        task("b", "Nothing yet.", "count"),
        task("a", TWO, "compose"),
        answer_asked(THREE, "The plan is complete."),
    ];
    assert_eq!(call_texts(&simulator)[4], expected[4]);
    expected.sort();
    assert_eq!(sorted_call_texts(&simulator), expected);
}

#[test]
fn an_iterative_plan_is_made_step_by_step() {
    for (front, left) in [
        ("type: orchestrator\nplan_type: iterative\nagents: [a, b]", Some(5)),
        ("type: iterative_planner\nagents: [a, b]", None),
        ("type: iterative_planner\nplan_iterations: 3\nagents: [a, b]", Some(3)),
    ] {
        let mut rules = vec![
            says("You plan", "Step 2: write", &next(&step("", &[("a", "never")]), true)),
            says("You plan", "Step 1: look", &next(&step("write", &[("a", "compose")]), false)),
            says("You plan", "", &next(&step("look", &[("a", "read"), ("b", "count")]), false)),
        ];
        rules.extend(workers());
        let (simulator, place) = ruled(&json!(rules));
        write_cards(&place, &[A, B, ("top", front, "Be quick.")]);
        write_prompt(&place, "hello");
        run_cards(&place, &["-m", "generic.m"]).ok();
        let how = |made: u32| match left.map(|most: u32| most - made) {
            None => STEP.to_owned(),
            Some(1) => format!("{STEP} This is the last time that you can plan."),
            Some(left) => format!("{STEP} You can plan {left} times, this time included."),
        };
        let mut expected = vec![
            plan_asked(NEXT, "Nothing yet.", &how(0)),
            task("a", "Nothing yet.", "read"),
            task("b", "Nothing yet.", "count"),
            plan_asked(NEXT, TWO, &how(1)),
            task("a", TWO, "compose"),
            plan_asked(NEXT, THREE, &how(2)),
            answer_asked(THREE, "The plan is complete."),
        ];
        expected.sort();
        assert_eq!(sorted_call_texts(&simulator), expected, "{front}");
        assert_eq!(results(&place), [json!("done")], "{front}");
    }
}

#[test]
fn a_plan_that_does_not_come_to_its_end_is_answered_from_what_there_is() {
    let nothing = json!({"json": {"steps": [], "is_complete": false}});
    let again = json!({"json": {"steps": [step("again", &[("a", "read")])], "is_complete": false}});
    let unknown = json!({"json": {"steps": [step("odd", &[("z", "read")])], "is_complete": false}});
    let done = |name: &str, agent: &str, result: &str| {
        format!("{name}\nTask for `{agent}`: read\n<result>\n{result}\n</result>")
    };
    let odd = "error: there is no agent `z`; there are `a`, `b`";
    for (plan, iterations, answer, ending) in [
        (
            &nothing,
            5,
            "Nothing yet.".to_owned(),
            "The plan was not marked as complete, but it had no further tasks. Say so if something is missing.",
        ),
        (
            &again,
            1,
            done("Step 1: again", "a", "letters"),
            "The plan was not finished: it was stopped after 1 rounds of planning, the most that are allowed. Say what was reached and what is missing.",
        ),
        (
            &unknown,
            5,
            format!("{}\n{}", done("Step 1: odd", "z", odd), done("Step 2: odd", "z", odd)),
            "The plan was not finished: it was stopped because it kept giving tasks to agents that do not exist. Say what was reached and what is missing.",
        ),
    ] {
        let mut rules = vec![says("You plan", "", plan)];
        rules.extend(workers());
        let (simulator, place) = ruled(&json!(rules));
        let front = format!("type: orchestrator\nagents: [a, b]\nplan_iterations: {iterations}");
        write_cards(&place, &[A, B, ("top", &front, "Be quick.")]);
        write_prompt(&place, "hello");
        run_cards(&place, &["-m", "generic.m"]).ok();
        assert_eq!(call_texts(&simulator).last(), Some(&answer_asked(&answer, ending)));
    }
}

#[test]
fn a_maker_asks_until_one_answer_leads() {
    // Answers of the worker in order, fields of the card, the result or the error, number of calls.
    let ballots = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    for (answers, fields, result, calls) in [
        (ballots(&["x", "x", "x"]), "", Ok("x"), 3),
        (ballots(&["x", "y", "x", "y", "y", "y"]), "k: 2", Ok("y"), 6),
        (ballots(&["x", "y", "x"]), "k: 2\nmax_samples: 3", Ok("x"), 3),
        (ballots(&["A  b", "a B"]), "k: 2\nmatch_strategy: normalized", Ok("a B"), 2),
        (
            ballots(&["{\"a\":1,\"b\":2}", "{\"b\":2, \"a\":1}"]),
            "k: 2\nmatch_strategy: structured",
            Ok("{\"b\":2, \"a\":1}"),
            2,
        ),
        (ballots(&["too long", "ok", "ok"]), "k: 2\nred_flag_max_length: 3", Ok("ok"), 3),
        (
            ballots(&["too long", "too long"]),
            "max_samples: 2\nred_flag_max_length: 3",
            Err("`a`: all 2 answers are longer than 3 characters (`red_flag_max_length`)"),
            2,
        ),
    ] {
        let script = rowmill_testkit::SimulatorScript::new().answer_prompts(move |_, time| {
            let index = usize::try_from(time).unwrap_or_default() - 1;
            rowmill_testkit::SimulatedAnswer::Text(answers.get(index).cloned().unwrap_or_default())
        });
        let (simulator, place) = support::scripted(script);
        write_cards(&place, &[A, ("top", &format!("type: MAKER\nworker: a\n{fields}"), "")]);
        write_prompt(&place, "hello");
        let ended = run_cards(&place, &["-m", "generic.m"]);
        match result {
            Ok(text) => {
                ended.ok();
                assert_eq!(results(&place), [json!(text)], "{fields}");
            }
            Err(message) => {
                ended.code(3);
                assert_eq!(row_error(&place), ("AnswersDiscarded".to_owned(), message.to_owned()));
            }
        }
        assert_eq!(call_texts(&simulator), vec!["[You are a.]\nuser: hello"; calls], "{fields}");
    }
}
