//! Finds the model roles that an agent graph needs.

use std::collections::HashSet;

use rowmill_types::settings::JSON_SCHEMA;
use rowmill_types::{Problem, ProblemCode};
use serde_json::Value;

use super::cast::{Cast, Kind, Member, PlanType, Voice};
use super::form::Form;
use crate::validate::ResultSchema;

/// The formats that an agent requests.
struct Needs {
    /// From its own model.
    own: Vec<Form>,
    /// From other agents.
    others: Vec<(usize, Form)>,
}

impl Cast {
    /// Traverses everything that a row can reach and collects the model roles that are needed.
    pub(super) fn find_voices(&mut self, schema: Option<ResultSchema>) -> Result<(), Problem> {
        let check = schema.as_ref().and_then(|schema| schema.answer_check().cloned());
        let schema = schema.map(|schema| schema.value().to_string());
        let mut open = vec![(self.worker, self.form)];
        let mut seen = HashSet::new();
        while let Some((member, form)) = open.pop() {
            if !seen.insert((member, form)) {
                continue;
            }
            let Some(found) = self.members.get(member) else { continue };
            let needs = found.needs(form)?;
            open.extend(needs.others);
            for form in needs.own {
                if self.by_form.contains_key(&(member, form)) {
                    continue;
                }
                let text = match form {
                    Form::Result => schema.clone(),
                    form => form.schema().map(ToString::to_string),
                };
                let schema = text.map(|text| ResultSchema::parse(&text, "the schema")).transpose()?;
                let check = check.clone().filter(|_| form == Form::Result);
                let schema = schema.map(|schema| schema.with_answer_check(check));
                self.by_form.insert((member, form), self.voices.len());
                self.voices.push(Voice { member, form, schema });
            }
        }
        Ok(())
    }

    /// The schema sent to the models of a model role. If they choose among agents, it lists the names, so that
    /// providers that enforce schemas allow no others. Answers are checked without that list, because a wrong name gets
    /// an explanation of its own.
    #[must_use]
    pub fn told_schema(&self, voice: usize) -> Option<Value> {
        let voice = self.voices.get(voice)?;
        let mut schema = voice.schema.as_ref()?.value().clone();
        let place = match voice.form {
            Form::Route => "/properties/agent",
            Form::Plan => "/properties/steps/items/properties/tasks/items/properties/agent",
            Form::NextStep => "/properties/tasks/items/properties/agent",
            Form::Text | Form::Result | Form::Rating => return Some(schema),
        };
        let (Kind::Router { agents } | Kind::Orchestrator { agents, .. }) =
            &self.members.get(voice.member)?.kind
        else {
            return Some(schema);
        };
        let names = agents.iter().map(|&agent| Value::from(self.name(agent))).collect();
        if let Some(agent) = schema.pointer_mut(place).and_then(Value::as_object_mut) {
            agent.insert("enum".to_owned(), Value::Array(names));
        }
        Some(schema)
    }
}

impl Member {
    /// The formats that an agent requests when it is asked for `form`.
    fn needs(&self, form: Form) -> Result<Needs, Problem> {
        let in_form = |members: &[usize], form: Form| members.iter().map(|&member| (member, form)).collect();
        let (own, others) = match &self.kind {
            Kind::Agent(agent) => {
                (vec![form], agent.children.iter().map(|child| (child.member, Form::Text)).collect())
            }
            Kind::Chain { sequence, .. } => {
                let (last, before) = sequence.split_last().ok_or_else(|| self.has_nobody())?;
                let mut others: Vec<_> = in_form(before, Form::Text);
                others.push((*last, form));
                (Vec::new(), others)
            }
            Kind::Parallel { fan_out, fan_in, .. } => {
                if fan_out.is_empty() {
                    return Err(self.has_nobody());
                }
                let mut others: Vec<_> = in_form(fan_out, Form::Text);
                match fan_in {
                    Some(fan_in) => others.push((*fan_in, form)),
                    None if form != Form::Text => return Err(self.cannot_fill()),
                    None => {}
                }
                (Vec::new(), others)
            }
            Kind::Router { agents } | Kind::Orchestrator { agents, .. } if agents.is_empty() => {
                return Err(self.has_nobody());
            }
            Kind::Router { agents } => {
                let own = if agents.len() > 1 { vec![Form::Route] } else { Vec::new() };
                (own, in_form(agents, form))
            }
            Kind::EvaluatorOptimizer { generator, evaluator, .. } => {
                (Vec::new(), vec![(*generator, form), (*evaluator, Form::Rating)])
            }
            Kind::Orchestrator { agents, plan, .. } => {
                let planning = if *plan == PlanType::Full { Form::Plan } else { Form::NextStep };
                (vec![planning, form], in_form(agents, Form::Text))
            }
            Kind::Maker { worker, .. } => (Vec::new(), vec![(*worker, form)]),
        };
        Ok(Needs { own, others })
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
