//! Several agents at once, and one that merges their answers.

use rowmill_types::Message;

use super::{Workflow, failed, have, start, text_of, with_files};
use crate::agent::answer_format::AnswerFormat;
use crate::agent::graph::AgentGraph;
use crate::agent::step::{AgentAnswer, NodeAction};

pub(super) struct ParallelWorkflow {
    fan_out: Vec<usize>,
    fan_in: Option<usize>,
    include_request: bool,
    form: AnswerFormat,
    request: Vec<Message>,
    /// In the order of `fan_out`, regardless of the order of arrival.
    answers: Vec<Option<AgentAnswer>>,
}

impl ParallelWorkflow {
    pub(super) fn new(
        fan_out: &[usize],
        fan_in: Option<usize>,
        include_request: bool,
        form: AnswerFormat,
    ) -> Self {
        Self {
            fan_out: fan_out.to_vec(),
            fan_in,
            include_request,
            form,
            request: Vec::new(),
            answers: fan_out.iter().map(|_| None).collect(),
        }
    }

    /// All have ended: their answers go to the agent that merges them.
    fn gather(&mut self, graph: &AgentGraph) -> NodeAction {
        let mut blocks = Vec::new();
        let request = text_of(&self.request);
        if self.include_request && !request.is_empty() {
            blocks.push("The following request was sent to the agents:".to_owned());
            blocks.push(format!("<fastagent:request>\n{request}\n</fastagent:request>"));
        }
        let answers = std::mem::take(&mut self.answers).into_iter().flatten();
        for (&agent_index, answer) in self.fan_out.iter().zip(answers) {
            match answer {
                Ok(answer) => blocks.push(format!(
                    "<fastagent:response agent=\"{}\">\n{answer}\n</fastagent:response>",
                    graph.agent_name(agent_index)
                )),
                Err(error) => return failed(graph, agent_index, error),
            }
        }
        let text = blocks.join("\n\n");
        let Some(fan_in) = self.fan_in else { return NodeAction::Done(Ok(text)) };
        let message =
            if self.include_request { with_files(&self.request, text) } else { Message::user(text) };
        have(self.fan_out.len(), fan_in, self.form, vec![message])
    }
}

impl Workflow for ParallelWorkflow {
    fn begin(&mut self, _: &AgentGraph, request: Vec<Message>) -> NodeAction {
        let asked = self.fan_out.iter().enumerate();
        let acts = asked
            .map(|(key, &agent_index)| start(key, agent_index, AnswerFormat::Text, request.clone()))
            .collect();
        self.request = request;
        NodeAction::StartTasks(acts)
    }

    fn handle_agent_end(&mut self, graph: &AgentGraph, key: usize, answer: AgentAnswer) -> NodeAction {
        if let Some(place) = self.answers.get_mut(key) {
            *place = Some(answer);
            // The calls of the others are paid for, so even a failure waits for them.
            return if self.answers.iter().all(Option::is_some) {
                self.gather(graph)
            } else {
                NodeAction::Wait
            };
        }
        match (answer, self.fan_in) {
            (Err(error), Some(fan_in)) => failed(graph, fan_in, error),
            (answer, _) => NodeAction::Done(answer),
        }
    }
}
