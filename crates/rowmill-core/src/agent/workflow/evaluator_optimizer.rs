//! An answer is judged and improved until it is good enough.

use rowmill_types::Message;
use serde::Deserialize;

use super::{Workflow, failed, have, read, text_of, with_files};
use crate::agent::answer_format::AnswerFormat;
use crate::agent::graph::{AgentGraph, AgentKind, AnswerRating};
use crate::agent::step::{AgentAnswer, NodeAction};
use crate::agent::transcript::LowRating;

/// The keys of the agents that are started.
const GENERATOR: usize = 0;
const EVALUATOR: usize = 1;

pub(super) struct EvaluatorOptimizerWorkflow {
    agent_index: usize,
    generator: usize,
    evaluator: usize,
    min_rating: AnswerRating,
    max_refinements: u32,
    instruction: Option<String>,
    form: AnswerFormat,
    request: Vec<Message>,
    /// The answer under judgement.
    answer: String,
    best: Option<(AnswerRating, String)>,
    refinements: u32,
    /// The rating of the final answer, once there is one.
    given: Option<AnswerRating>,
}

#[derive(Deserialize)]
struct EvaluatorOpinion {
    rating: AnswerRating,
    feedback: String,
    needs_improvement: bool,
    focus_areas: Vec<String>,
}

impl EvaluatorOptimizerWorkflow {
    pub(super) fn new(agent_index: usize, kind: &AgentKind, form: AnswerFormat) -> Option<Self> {
        let AgentKind::EvaluatorOptimizer { generator, evaluator, min_rating, max_refinements, instruction } =
            kind
        else {
            return None;
        };
        Some(Self {
            agent_index,
            generator: *generator,
            evaluator: *evaluator,
            min_rating: *min_rating,
            max_refinements: *max_refinements,
            instruction: instruction.clone(),
            form,
            request: Vec::new(),
            answer: String::new(),
            best: None,
            refinements: 0,
            given: None,
        })
    }

    fn have_judged(&mut self, answer: String) -> NodeAction {
        self.answer = answer;
        let message = with_files(&self.request, self.judging_text());
        have(EVALUATOR, self.evaluator, AnswerFormat::Rating, vec![message])
    }

    fn judged(&mut self, opinion: EvaluatorOpinion) -> NodeAction {
        let answer = std::mem::take(&mut self.answer);
        if !opinion.needs_improvement || opinion.rating >= self.min_rating {
            self.given = Some(opinion.rating);
            return NodeAction::Done(Ok(answer));
        }
        let refinement = with_files(&self.request, self.refinement_text(&answer, &opinion));
        // Among answers with the same rating, the first one is kept.
        if self.best.as_ref().is_none_or(|(best, _)| opinion.rating > *best) {
            self.best = Some((opinion.rating, answer));
        }
        if self.refinements >= self.max_refinements {
            let (rating, answer) = self.best.take().unwrap_or((opinion.rating, String::new()));
            self.given = Some(rating);
            return NodeAction::Done(Ok(answer));
        }
        self.refinements += 1;
        have(GENERATOR, self.generator, self.form, vec![refinement])
    }

    fn judging_text(&self) -> String {
        let first = self.instruction.as_deref().unwrap_or("Judge answers strictly and fairly.");
        let request = text_of(&self.request);
        let answer = &self.answer;
        let round = self.refinements + 1;
        format!(
            "{first}\n\nJudge how well the answer below does what the request asks for. This is round \
             {round} of judging. Rate it, say what is good and what should be better, and name what to \
             work on first.\n\n<request>\n{request}\n</request>\n\n<answer>\n{answer}\n</answer>"
        )
    }

    fn refinement_text(&self, answer: &str, opinion: &EvaluatorOpinion) -> String {
        let first = self.instruction.as_deref().map(|text| format!("{text}\n\n")).unwrap_or_default();
        let request = text_of(&self.request);
        let EvaluatorOpinion { rating, feedback, focus_areas, .. } = opinion;
        let areas: Vec<String> = focus_areas.iter().map(|area| format!("- {area}")).collect();
        let areas = if areas.is_empty() { "- nothing in particular".to_owned() } else { areas.join("\n") };
        let round = self.refinements + 1;
        format!(
            "{first}Your answer to the request below was judged. Make it better: this is refinement \
             {round}.\n\n<request>\n{request}\n</request>\n\n<answer>\n{answer}\n</answer>\n\n\
             <rating>{rating}</rating>\n\n<feedback>\n{feedback}\n</feedback>\n\n\
             <work_on>\n{areas}\n</work_on>\n\nAct on every point of the feedback, keep what is good, and \
             stay with what the request asks for. Answer with the whole improved answer and nothing else."
        )
    }
}

impl Workflow for EvaluatorOptimizerWorkflow {
    fn begin(&mut self, _: &AgentGraph, request: Vec<Message>) -> NodeAction {
        self.request.clone_from(&request);
        have(GENERATOR, self.generator, self.form, request)
    }

    fn handle_agent_end(&mut self, graph: &AgentGraph, key: usize, answer: AgentAnswer) -> NodeAction {
        let agent_index = if key == EVALUATOR { self.evaluator } else { self.generator };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return failed(graph, agent_index, error),
        };
        if key == GENERATOR {
            return self.have_judged(answer);
        }
        match read(&answer) {
            Ok(opinion) => self.judged(opinion),
            Err(error) => failed(graph, agent_index, error),
        }
    }

    fn low_rating(&self) -> Option<LowRating> {
        let (agent_index, min_rating) = (self.agent_index, self.min_rating);
        let rating = self.given.filter(|given| *given < min_rating)?;
        Some(LowRating { agent_index, rating, min_rating })
    }
}
