//! The model roles of an agent graph, and their instructions.

use rowmill_core::agent::{
    AgentDefinition, AgentGraph, AgentKind, AnswerFormat, AnswerRating, OrchestratorPlanType,
    system_instruction,
};

use crate::harness::*;

fn model_roles(graph: &AgentGraph) -> Vec<(&str, AnswerFormat)> {
    let mut model_roles: Vec<_> = graph
        .model_roles()
        .iter()
        .map(|model_role| (graph.agents()[model_role.agent_index].name.as_str(), model_role.answer_format))
        .collect();
    model_roles.sort();
    model_roles
}

#[test]
fn only_the_model_roles_that_rows_can_need_are_there() {
    let chain = AgentKind::Chain { sequence: vec![0, 1], cumulative: false };
    let graph =
        graph_with_schema(vec![agent("a"), agent("b"), agent("unused"), agent_of_kind("line", chain)]);
    assert_eq!(model_roles(&graph), [("a", AnswerFormat::Text), ("b", AnswerFormat::Result)]);
    assert!(graph.schema().is_some());

    let judged = AgentKind::EvaluatorOptimizer {
        generator: 2,
        evaluator: 0,
        min_rating: AnswerRating::Good,
        max_refinements: 1,
        instruction: None,
    };
    let planned =
        AgentKind::Orchestrator { agents: vec![0], plan: OrchestratorPlanType::Iterative, iterations: None };
    let routed = AgentKind::Router { agents: vec![0, 1] };
    let graph = graph_with_schema(vec![
        agent("a"),
        agent_of_kind("planner", planned),
        agent_of_kind("desk", routed),
        agent_of_kind("studio", judged),
    ]);
    assert_eq!(
        model_roles(&graph),
        [
            ("a", AnswerFormat::Text),
            ("a", AnswerFormat::Result),
            ("a", AnswerFormat::Rating),
            ("desk", AnswerFormat::Route),
            ("planner", AnswerFormat::Result),
            ("planner", AnswerFormat::NextStep)
        ]
    );
}

#[test]
fn workflows_that_cannot_work_are_refused_before_any_row() {
    let empty = [
        AgentKind::Chain { sequence: vec![], cumulative: false },
        AgentKind::Parallel { fan_out: vec![], fan_in: Some(0), include_request: true },
        AgentKind::Router { agents: vec![] },
        AgentKind::Orchestrator { agents: vec![], plan: OrchestratorPlanType::Full, iterations: None },
    ];
    for kind in empty {
        let problem =
            AgentGraph::new(vec![agent("a"), agent_of_kind("w", kind)], Vec::new(), 1, None).unwrap_err();
        assert_eq!(problem.message, "`w` has no agents to call");
    }
    let parallel = AgentKind::Parallel { fan_out: vec![0], fan_in: None, include_request: true };
    let agents = vec![agent("a"), agent_of_kind("w", parallel)];
    let problem = AgentGraph::new(agents, Vec::new(), 1, Some(number_schema())).unwrap_err();
    assert!(problem.message.contains("`w` has no `fan_in`"), "{}", problem.message);
}

/// The instructions of all model roles of `last`, by form.
fn instructions(agents: Vec<AgentDefinition>, own: Option<&str>) -> Vec<(AnswerFormat, Option<String>)> {
    let graph = graph(agents);
    let last = graph.agents().len() - 1;
    let model_roles =
        graph.model_roles().iter().enumerate().filter(|(_, model_role)| model_role.agent_index == last);
    let mut answer: Vec<_> = model_roles
        .map(|(index, model_role)| (model_role.answer_format, system_instruction(&graph, index, own)))
        .collect();
    answer.sort();
    answer
}

#[test]
fn an_agent_gets_its_own_instruction() {
    assert_eq!(
        instructions(vec![agent("a")], Some("Be brief.")),
        [(AnswerFormat::Text, Some("Be brief.".to_owned()))]
    );
    assert_eq!(instructions(vec![agent("a")], None), [(AnswerFormat::Text, None)]);
    assert_eq!(instructions(vec![agent("a")], Some(" \n")), [(AnswerFormat::Text, None)]);
}

#[test]
fn routers_and_orchestrators_get_their_task_the_agents_and_the_cards_instruction() {
    let silent = AgentDefinition { description: String::new(), ..agent("b") };
    let list = "The agents:\n- a: Does a.\n- b";
    let kinds = [
        (AgentKind::Router { agents: vec![0, 1] }, vec![AnswerFormat::Route]),
        (
            AgentKind::Orchestrator {
                agents: vec![0, 1],
                plan: OrchestratorPlanType::Full,
                iterations: None,
            },
            vec![AnswerFormat::Text, AnswerFormat::Plan],
        ),
        (
            AgentKind::Orchestrator {
                agents: vec![0, 1],
                plan: OrchestratorPlanType::Iterative,
                iterations: None,
            },
            vec![AnswerFormat::Text, AnswerFormat::NextStep],
        ),
    ];
    let mut tasks = std::collections::HashSet::new();
    for (kind, forms) in kinds {
        let silent = AgentDefinition { description: String::new(), name: silent.name.clone(), ..agent("b") };
        let instructions =
            instructions(vec![agent("a"), silent, agent_of_kind("boss", kind)], Some("Be brief."));
        assert_eq!(instructions.iter().map(|(form, _)| *form).collect::<Vec<_>>(), forms);
        for (_, text) in instructions {
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
    let router = AgentKind::Router { agents: vec![0, 1] };
    let instructions = instructions(
        vec![agent("a"), agent("b"), agent_of_kind("desk", router)],
        Some("Team:\n{{agents}}\nChoose."),
    );
    let text = instructions[0].1.as_deref().unwrap();
    assert!(text.ends_with("\n\nTeam:\n- a: Does a.\n- b: Does b.\nChoose."), "{text}");
    assert_eq!(text.matches("Does a.").count(), 1);
}
