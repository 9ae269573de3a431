//! Finds the model roles that an agent graph needs.

use std::collections::HashSet;

use rowmill_types::settings::JSON_SCHEMA;
use rowmill_types::{Problem, ProblemCode};
use serde_json::Value;

use super::answer_format::AnswerFormat;
use super::graph::{AgentDefinition, AgentGraph, AgentKind, ModelRole, OrchestratorPlanType};
use crate::validate::ResultSchema;

/// The formats that an agent requests.
struct ModelRoleNeeds {
    /// From its own model.
    own: Vec<AnswerFormat>,
    /// From other agents.
    others: Vec<(usize, AnswerFormat)>,
}

impl AgentGraph {
    /// Traverses everything that a row can reach and collects the model roles that are needed.
    pub(super) fn find_model_roles(&mut self, schema: Option<ResultSchema>) -> Result<(), Problem> {
        let check = schema.as_ref().and_then(|schema| schema.answer_check().cloned());
        let schema = schema.map(|schema| schema.value().to_string());
        let mut open = vec![(self.entry_agent, self.answer_format)];
        let mut seen = HashSet::new();
        while let Some((agent_index, form)) = open.pop() {
            if !seen.insert((agent_index, form)) {
                continue;
            }
            let Some(found) = self.agents.get(agent_index) else { continue };
            let needs = found.needs(form)?;
            open.extend(needs.others);
            for form in needs.own {
                if self.by_form.contains_key(&(agent_index, form)) {
                    continue;
                }
                let text = match form {
                    AnswerFormat::Result => schema.clone(),
                    form => form.schema().map(ToString::to_string),
                };
                let schema = text.map(|text| ResultSchema::parse(&text, "the schema")).transpose()?;
                let check = check.clone().filter(|_| form == AnswerFormat::Result);
                let schema = schema.map(|schema| schema.with_answer_check(check));
                self.by_form.insert((agent_index, form), self.model_roles.len());
                self.model_roles.push(ModelRole { agent_index, answer_format: form, schema });
            }
        }
        Ok(())
    }

    /// The schema sent to the models of a model role. If they choose among agents, it lists the names, so that
    /// providers that enforce schemas allow no others. Answers are checked without that list, because a wrong name gets
    /// an explanation of its own.
    #[must_use]
    pub fn schema_for_models(&self, model_role: usize) -> Option<Value> {
        let model_role = self.model_roles.get(model_role)?;
        let mut schema = model_role.schema.as_ref()?.value().clone();
        let place = match model_role.answer_format {
            AnswerFormat::Route => "/properties/agent",
            AnswerFormat::Plan => "/properties/steps/items/properties/tasks/items/properties/agent",
            AnswerFormat::NextStep => "/properties/tasks/items/properties/agent",
            AnswerFormat::Text | AnswerFormat::Result | AnswerFormat::Rating => return Some(schema),
        };
        let (AgentKind::Router { agents } | AgentKind::Orchestrator { agents, .. }) =
            &self.agents.get(model_role.agent_index)?.kind
        else {
            return Some(schema);
        };
        let names = agents.iter().map(|&agent| Value::from(self.agent_name(agent))).collect();
        if let Some(agent) = schema.pointer_mut(place).and_then(Value::as_object_mut) {
            agent.insert("enum".to_owned(), Value::Array(names));
        }
        Some(schema)
    }
}

impl AgentDefinition {
    /// The formats that an agent requests when it is asked for `form`.
    fn needs(&self, form: AnswerFormat) -> Result<ModelRoleNeeds, Problem> {
        let in_form = |agents: &[usize], form: AnswerFormat| {
            agents.iter().map(|&agent_index| (agent_index, form)).collect()
        };
        let (own, others) = match &self.kind {
            AgentKind::Agent(agent) => (
                vec![form],
                agent.children.iter().map(|child| (child.agent_index, AnswerFormat::Text)).collect(),
            ),
            AgentKind::Chain { sequence, .. } => {
                let (last, before) = sequence.split_last().ok_or_else(|| self.has_nobody())?;
                let mut others: Vec<_> = in_form(before, AnswerFormat::Text);
                others.push((*last, form));
                (Vec::new(), others)
            }
            AgentKind::Parallel { fan_out, fan_in, .. } => {
                if fan_out.is_empty() {
                    return Err(self.has_nobody());
                }
                let mut others: Vec<_> = in_form(fan_out, AnswerFormat::Text);
                match fan_in {
                    Some(fan_in) => others.push((*fan_in, form)),
                    None if form != AnswerFormat::Text => return Err(self.cannot_fill()),
                    None => {}
                }
                (Vec::new(), others)
            }
            AgentKind::Router { agents } | AgentKind::Orchestrator { agents, .. } if agents.is_empty() => {
                return Err(self.has_nobody());
            }
            AgentKind::Router { agents } => {
                let own = if agents.len() > 1 { vec![AnswerFormat::Route] } else { Vec::new() };
                (own, in_form(agents, form))
            }
            AgentKind::EvaluatorOptimizer { generator, evaluator, .. } => {
                (Vec::new(), vec![(*generator, form), (*evaluator, AnswerFormat::Rating)])
            }
            AgentKind::Orchestrator { agents, plan, .. } => {
                let planning = if *plan == OrchestratorPlanType::Full {
                    AnswerFormat::Plan
                } else {
                    AnswerFormat::NextStep
                };
                (vec![planning, form], in_form(agents, AnswerFormat::Text))
            }
            AgentKind::Maker { worker, .. } => (Vec::new(), vec![(*worker, form)]),
        };
        Ok(ModelRoleNeeds { own, others })
    }

    fn has_nobody(&self) -> Problem {
        Problem::new(ProblemCode::InvalidCard, format!("`{}` has no agents to call", self.name))
            .hint("name at least one agent in its card")
    }

    fn cannot_fill(&self) -> Problem {
        let message = format!(
            "the parallel agent `{}` has no `fan_in`, so no agent can give an answer that matches a schema",
            self.name
        );
        Problem::new(ProblemCode::InvalidCard, message)
            .hint(format!("add a `fan_in` agent; or omit {JSON_SCHEMA}, if the schema comes from there"))
    }
}
