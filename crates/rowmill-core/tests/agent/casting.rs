//! The model roles of an agent graph, and their instructions.

use rowmill_core::agent::{Cast, Form, Kind, Member, PlanType, Rating, instruction};

use crate::stage::*;

fn voices(cast: &Cast) -> Vec<(&str, Form)> {
    let mut voices: Vec<_> =
        cast.voices().iter().map(|voice| (cast.members()[voice.member].name.as_str(), voice.form)).collect();
    voices.sort();
    voices
}

#[test]
fn only_the_voices_that_rows_can_need_are_there() {
    let chain = Kind::Chain { sequence: vec![0, 1], cumulative: false };
    let cast = cast_with_schema(vec![agent("a"), agent("b"), agent("unused"), member("line", chain)]);
    assert_eq!(voices(&cast), [("a", Form::Text), ("b", Form::Result)]);
    assert!(cast.schema().is_some());

    let judged = Kind::EvaluatorOptimizer {
        generator: 2,
        evaluator: 0,
        min_rating: Rating::Good,
        max_refinements: 1,
        instruction: None,
    };
    let planned = Kind::Orchestrator { agents: vec![0], plan: PlanType::Iterative, iterations: None };
    let routed = Kind::Router { agents: vec![0, 1] };
    let cast = cast_with_schema(vec![
        agent("a"),
        member("planner", planned),
        member("desk", routed),
        member("studio", judged),
    ]);
    assert_eq!(
        voices(&cast),
        [
            ("a", Form::Text),
            ("a", Form::Result),
            ("a", Form::Rating),
            ("desk", Form::Route),
            ("planner", Form::Result),
            ("planner", Form::NextStep)
        ]
    );
}

#[test]
fn workflows_that_cannot_work_are_refused_before_any_row() {
    let empty = [
        Kind::Chain { sequence: vec![], cumulative: false },
        Kind::Parallel { fan_out: vec![], fan_in: Some(0), include_request: true },
        Kind::Router { agents: vec![] },
        Kind::Orchestrator { agents: vec![], plan: PlanType::Full, iterations: None },
    ];
    for kind in empty {
        let problem = Cast::new(vec![agent("a"), member("w", kind)], Vec::new(), 1, None).unwrap_err();
        assert_eq!(problem.message, "`w` has no agents to call");
    }
    let parallel = Kind::Parallel { fan_out: vec![0], fan_in: None, include_request: true };
    let members = vec![agent("a"), member("w", parallel)];
    let problem = Cast::new(members, Vec::new(), 1, Some(number_schema())).unwrap_err();
    assert!(problem.message.contains("`w` has no `fan_in`"), "{}", problem.message);
}

/// The instructions of all model roles of `last`, by form.
fn told(members: Vec<Member>, own: Option<&str>) -> Vec<(Form, Option<String>)> {
    let cast = cast(members);
    let last = cast.members().len() - 1;
    let voices = cast.voices().iter().enumerate().filter(|(_, voice)| voice.member == last);
    let mut told: Vec<_> =
        voices.map(|(index, voice)| (voice.form, instruction(&cast, index, own))).collect();
    told.sort();
    told
}

#[test]
fn an_agent_is_told_its_own_instruction() {
    assert_eq!(told(vec![agent("a")], Some("Be brief.")), [(Form::Text, Some("Be brief.".to_owned()))]);
    assert_eq!(told(vec![agent("a")], None), [(Form::Text, None)]);
    assert_eq!(told(vec![agent("a")], Some(" \n")), [(Form::Text, None)]);
}

#[test]
fn routers_and_orchestrators_are_told_their_task_the_agents_and_the_cards_instruction() {
    let silent = Member { description: String::new(), ..agent("b") };
    let list = "The agents:\n- a: Does a.\n- b";
    let kinds = [
        (Kind::Router { agents: vec![0, 1] }, vec![Form::Route]),
        (
            Kind::Orchestrator { agents: vec![0, 1], plan: PlanType::Full, iterations: None },
            vec![Form::Text, Form::Plan],
        ),
        (
            Kind::Orchestrator { agents: vec![0, 1], plan: PlanType::Iterative, iterations: None },
            vec![Form::Text, Form::NextStep],
        ),
    ];
    let mut tasks = std::collections::HashSet::new();
    for (kind, forms) in kinds {
        let silent = Member { description: String::new(), name: silent.name.clone(), ..agent("b") };
        let told = told(vec![agent("a"), silent, member("boss", kind)], Some("Be brief."));
        assert_eq!(told.iter().map(|(form, _)| *form).collect::<Vec<_>>(), forms);
        for (_, text) in told {
            let text = text.unwrap();
            let (task, rest) = text.split_once("\n\n").unwrap();
            assert_eq!(rest, format!("{list}\n\nBe brief."));
            tasks.insert(task.to_owned());
        }
    }
    assert_eq!(tasks.len(), 4, "routing, planning all, planning the next step, answering");
}

#[test]
fn a_card_can_say_where_the_list_of_agents_stands() {
    let router = Kind::Router { agents: vec![0, 1] };
    let told = told(vec![agent("a"), agent("b"), member("desk", router)], Some("Team:\n{{agents}}\nChoose."));
    let text = told[0].1.as_deref().unwrap();
    assert!(text.ends_with("\n\nTeam:\n- a: Does a.\n- b: Does b.\nChoose."), "{text}");
    assert_eq!(text.matches("Does a.").count(), 1);
}
