//! Plans and their results.

use rowmill_core::agent::{AgentDefinition, AgentKind, AnswerFormat, OrchestratorPlanType};
use rowmill_types::{RowError, RowErrorKind};
use serde_json::{Value, json};

use crate::harness::*;

fn team(plan: OrchestratorPlanType, iterations: Option<u32>) -> Vec<AgentDefinition> {
    let kind = AgentKind::Orchestrator { agents: vec![0, 1], plan, iterations };
    vec![agent("a"), agent("b"), agent_of_kind("boss", kind)]
}

fn full(iterations: Option<u32>) -> GraphHarness {
    GraphHarness::start(graph(team(OrchestratorPlanType::Full, iterations)), request_with_file("build"))
}

fn iterative(iterations: Option<u32>) -> GraphHarness {
    GraphHarness::start(graph(team(OrchestratorPlanType::Iterative, iterations)), request_with_file("build"))
}

/// A step: its description, and its tasks as agent and description.
fn step(description: &str, tasks: &[(&str, &str)]) -> Value {
    let tasks: Vec<Value> =
        tasks.iter().map(|(agent, task)| json!({"description": task, "agent": agent})).collect();
    json!({"description": description, "tasks": tasks})
}

fn plan(steps: &[Value], is_complete: bool) -> String {
    json!({"steps": steps, "is_complete": is_complete}).to_string()
}

fn next(step: Value, is_complete: bool) -> String {
    let mut step = step;
    step["is_complete"] = json!(is_complete);
    step.to_string()
}

const REQUEST: &str = "<request>\nbuild\n</request>";
const PLAN_ALL: &str = "Plan all steps that are still needed to fulfil the request, in their order. If the \
                        results so far are enough to answer it, or if it cannot be fulfilled, give no steps \
                        and set `is_complete` to true.";
const PLAN_NEXT: &str = "Say which step is to be done next to fulfil the request. If the results so far are \
                         enough to answer it, or if it cannot be fulfilled, give no tasks and set \
                         `is_complete` to true.";

fn task_text(progress: &str, task: &str) -> String {
    format!(
        "You do one task of a larger plan.\n\nThe plan is to fulfil this request:\n{REQUEST}\n\n\
         What was done before:\n<progress>\n{progress}\n</progress>\n\nYour task:\n<task>\n{task}\n</task>\n\n\
         Do this task and nothing else. Answer briefly, but with everything that others need to go on from \
         here: they see only your answer."
    )
}

#[test]
fn a_full_plan_is_done_step_by_step_and_everyone_gets_exactly_these_words() {
    let mut harness = full(Some(5));
    assert_eq!(harness.form("boss"), AnswerFormat::Plan);
    assert_eq!(
        harness.asked("boss"),
        format!(
            "{REQUEST}\n\nDone so far:\n<progress>\nNothing yet.\n</progress>\n\n{PLAN_ALL} You can plan 5 \
             times, this time included."
        )
    );
    assert_eq!(files(harness.messages("boss")), [1]);
    let steps =
        [step("dig", &[("b", "get a spade"), ("a", "find a place")]), step("lay", &[("a", "bricks")])];
    harness.answer("boss", &plan(&steps, false));
    assert_eq!(harness.waits_for(), ["b", "a"]);
    assert_eq!(harness.asked("a"), task_text("Nothing yet.", "find a place"));
    assert_eq!(harness.asked("b"), task_text("Nothing yet.", "get a spade"));
    assert_eq!((harness.form("a"), files(harness.messages("a"))), (AnswerFormat::Text, vec![1]));
    harness.answer("a", "here");
    harness.answer("b", "got one");
    let dug = "Step 1: dig\nTask for `b`: get a spade\n<result>\ngot one\n</result>\nTask for `a`: find a \
               place\n<result>\nhere\n</result>";
    assert_eq!(harness.asked("a"), task_text(dug, "bricks"));
    harness.answer("a", "laid");
    let all = format!("{dug}\nStep 2: lay\nTask for `a`: bricks\n<result>\nlaid\n</result>");
    assert_eq!(
        harness.asked("boss"),
        format!(
            "{REQUEST}\n\nDone so far:\n<progress>\n{all}\n</progress>\n\n{PLAN_ALL} You can plan 4 times, \
             this time included."
        )
    );
    harness.answer("boss", &plan(&[], true));
    assert_eq!(harness.form("boss"), AnswerFormat::Text);
    assert_eq!(
        harness.asked("boss"),
        format!(
            "{REQUEST}\n\nA plan was made and carried out for this request:\n<progress>\n{all}\n</progress>\
             \n\nThe plan is complete.\n\nNow answer the request from these results."
        )
    );
    assert_eq!(files(harness.messages("boss")), [1]);
    harness.answer("boss", "a house");
    assert_eq!(harness.text(), "a house");
}

#[test]
fn a_complete_plan_with_steps_is_done_and_not_planned_again() {
    let mut harness = full(None);
    harness.answer("boss", &plan(&[step("dig", &[("a", "hole")])], true));
    harness.answer("a", "done");
    assert_eq!(harness.form("boss"), AnswerFormat::Text);
    assert!(harness.asked("boss").contains("The plan is complete."));
}

#[test]
fn plans_that_run_out_are_reported_when_the_answer_is_made() {
    let mut harness = full(Some(2));
    harness.answer("boss", &plan(&[step("dig", &[("a", "hole")])], false));
    harness.answer("a", "one");
    assert!(harness.asked("boss").ends_with(&format!("{PLAN_ALL} This is the last time that you can plan.")));
    harness.answer("boss", &plan(&[step("dig", &[("a", "hole")])], false));
    harness.answer("a", "two");
    assert_eq!(harness.form("boss"), AnswerFormat::Text);
    assert!(harness.asked("boss").contains(
        "The plan was not finished: it was stopped after 2 rounds of planning, the most that are allowed. \
         Say what was reached and what is missing."
    ));
    harness.answer("boss", "half a house");
    assert_eq!(harness.text(), "half a house");
}

#[test]
fn an_iterative_plan_is_made_step_by_step_without_a_limit() {
    let mut harness = iterative(None);
    assert_eq!(harness.form("boss"), AnswerFormat::NextStep);
    assert!(harness.asked("boss").ends_with(PLAN_NEXT));
    for turn in 0..12 {
        harness.answer("boss", &next(step("more", &[("a", "work"), ("b", "rest")]), false));
        harness.answer("b", &format!("rested {turn}"));
        harness.answer("a", &format!("worked {turn}"));
    }
    assert!(
        harness.asked("boss").contains("Step 12: more\nTask for `a`: work\n<result>\nworked 11\n</result>")
    );
    // A plan that reports completion requests nothing more.
    harness.answer("boss", &next(step("useless", &[("a", "work")]), true));
    assert_eq!(harness.waits_for(), ["boss"]);
    assert!(
        !harness.asked("boss").contains("useless") && harness.asked("boss").contains("The plan is complete.")
    );
    harness.answer("boss", "done");
    assert_eq!(harness.text(), "done");
}

#[test]
fn an_iterative_plan_stops_at_its_iterations() {
    let mut harness = iterative(Some(1));
    harness.answer("boss", &next(step("more", &[("a", "work")]), false));
    harness.answer("a", "worked");
    assert!(harness.asked("boss").contains("it was stopped after 1 rounds of planning"));
}

#[test]
fn a_task_for_nobody_and_a_task_that_failed_are_reported_to_the_planner() {
    let mut harness = full(Some(5));
    let tasks = [("c", "paint"), ("a", "dig"), (" b ", "rest")];
    harness.answer("boss", &plan(&[step("first", &tasks)], false));
    assert_eq!(harness.waits_for(), ["a", "b"]);
    harness.fail("a", RowError::new(RowErrorKind::Refusal, "the model refused to answer"));
    harness.answer("b", "rested");
    let asked = harness.asked("boss");
    for part in [
        "Task for `c`: paint\n<result>\nerror: there is no agent `c`; there are `a`, `b`\n</result>",
        "Task for `a`: dig\n<result>\nerror: the model refused to answer\n</result>",
    ] {
        assert!(asked.contains(part), "{asked}");
    }
    harness.answer("boss", &plan(&[], true));
    harness.answer("boss", "done");
    assert_eq!(harness.text(), "done");
}

#[test]
fn a_planner_that_names_nobody_who_exists_is_stopped_after_its_second_plan() {
    for mut harness in [iterative(None), full(None)] {
        let nobody = step("paint", &[("c", "red")]);
        let answer = if harness.form("boss") == AnswerFormat::Plan {
            plan(&[nobody], false)
        } else {
            next(nobody, false)
        };
        harness.answer("boss", &answer);
        assert!(harness.asked("boss").contains("error: there is no agent `c`"));
        harness.answer("boss", &answer);
        assert_eq!(harness.form("boss"), AnswerFormat::Text);
        assert!(harness.asked("boss").contains("it kept giving tasks to agents that do not exist"));
    }
}

#[test]
fn a_plan_without_tasks_ends_the_planning() {
    for (mut harness, answer) in
        [(iterative(None), next(step("rest", &[]), false)), (full(None), plan(&[step("rest", &[])], false))]
    {
        harness.answer("boss", &answer);
        assert_eq!(harness.form("boss"), AnswerFormat::Text);
        assert!(harness.asked("boss").contains("it had no further tasks"));
    }
}

#[test]
fn only_the_answer_is_asked_for_the_schema() {
    let mut harness =
        GraphHarness::ask(graph_with_schema(team(OrchestratorPlanType::Full, Some(1))), "build");
    harness.answer("boss", &plan(&[step("dig", &[("a", "hole")])], false));
    assert_eq!(harness.form("a"), AnswerFormat::Text);
    harness.answer("a", "done");
    assert_eq!(harness.form("boss"), AnswerFormat::Result);
    harness.answer("boss", r#"{"n":3}"#);
    assert_eq!(harness.outcome(), Ok(r#"{"n":3}"#.to_owned()));
}

#[test]
fn a_planner_that_fails_fails_the_row() {
    let mut harness = full(None);
    harness.fail("boss", RowError::new(RowErrorKind::ServerError, "down"));
    assert_eq!(harness.outcome().unwrap_err().message, "`boss`: down");
    let mut harness = full(None);
    harness.answer("boss", "no plan");
    let error = harness.outcome().unwrap_err();
    assert_eq!((error.kind, error.raw_text.as_deref()), (RowErrorKind::StructuredOutput, Some("no plan")));
}
