//! The system texts for the models of agents, the same for every row.

use crate::agent::answer_format::AnswerFormat;
use crate::agent::graph::{AgentGraph, AgentKind, OrchestratorPlanType};

/// The position in a card for the list of agents.
const AGENTS: &str = "{{agents}}";

/// The system text of a model role. `own` is the instruction of the agent's card.
///
/// An agent gets its own instruction. A router and an orchestrator also get a description of their task and a list of
/// the agents; a card can set the position of that list with `{{agents}}`.
#[must_use]
pub fn system_instruction(graph: &AgentGraph, model_role: usize, own: Option<&str>) -> Option<String> {
    let own = own.filter(|text| !text.trim().is_empty());
    let model_role = graph.model_roles().get(model_role)?;
    let (task, agents) = match (&graph.agents().get(model_role.agent_index)?.kind, model_role.answer_format) {
        (AgentKind::Router { agents }, AnswerFormat::Route) => (ROUTING, agents),
        (AgentKind::Orchestrator { agents, plan: OrchestratorPlanType::Full, .. }, AnswerFormat::Plan) => {
            (PLANNING, agents)
        }
        (
            AgentKind::Orchestrator { agents, plan: OrchestratorPlanType::Iterative, .. },
            AnswerFormat::NextStep,
        ) => (NEXT, agents),
        (AgentKind::Orchestrator { agents, .. }, _) => (ANSWERING, agents),
        _ => return own.map(str::to_owned),
    };
    let list = list(graph, agents);
    let mut parts = vec![task.to_owned()];
    match own {
        Some(own) if own.contains(AGENTS) => parts.push(own.replace(AGENTS, &list)),
        own => {
            parts.push(format!("The agents:\n{list}"));
            parts.extend(own.map(str::to_owned));
        }
    }
    Some(parts.join("\n\n"))
}

/// The agents with their descriptions, one per line.
fn list(graph: &AgentGraph, agents: &[usize]) -> String {
    let found = agents.iter().filter_map(|&agent| graph.agents().get(agent));
    let lines: Vec<String> = found
        .map(|agent| match agent.description.trim() {
            "" => format!("- {}", agent.name),
            description => format!("- {}: {description}", agent.name),
        })
        .collect();
    lines.join("\n")
}

const ROUTING: &str = "You pass every request on to the one agent that can answer it best. Do not answer it \
yourself. Compare what the request needs with what each agent is good for, choose one agent by its exact \
name, and say how sure you are and why, in a few words.";

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
