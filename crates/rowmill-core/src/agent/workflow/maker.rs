//! Asks the same question until one answer is ahead of all others.

use rowmill_types::{Message, RowError, RowErrorKind};
use serde_json::Value;

use super::{Workflow, failed, have};
use crate::agent::answer_format::AnswerFormat;
use crate::agent::graph::{AgentGraph, AgentKind, AnswerEquality};
use crate::agent::step::{AgentAnswer, NodeAction};

pub(super) struct MakerWorkflow {
    worker: usize,
    k: u32,
    max_samples: u32,
    matching: AnswerEquality,
    red_flag_max_length: Option<usize>,
    form: AnswerFormat,
    request: Vec<Message>,
    samples: u32,
    /// In the order in which the answers were first given.
    ballots: Vec<AnswerVotes>,
}

/// A group of equal answers.
struct AnswerVotes {
    key: String,
    votes: u32,
    /// The last answer of the group.
    answer: String,
}

impl MakerWorkflow {
    pub(super) fn new(kind: &AgentKind, form: AnswerFormat) -> Option<Self> {
        let AgentKind::Maker { worker, k, max_samples, matching, red_flag_max_length } = kind else {
            return None;
        };
        Some(Self {
            worker: *worker,
            k: *k,
            max_samples: *max_samples,
            matching: *matching,
            red_flag_max_length: *red_flag_max_length,
            form,
            request: Vec::new(),
            samples: 0,
            ballots: Vec::new(),
        })
    }

    fn sample(&self) -> NodeAction {
        have(0, self.worker, self.form, self.request.clone())
    }

    fn vote(&mut self, answer: String) {
        let most = self.red_flag_max_length.filter(|most| *most > 0).unwrap_or(usize::MAX);
        if answer.chars().count() > most {
            return;
        }
        let key = key_of(self.matching, &answer);
        match self.ballots.iter_mut().find(|ballot| ballot.key == key) {
            Some(ballot) => {
                ballot.votes += 1;
                ballot.answer = answer;
            }
            None => self.ballots.push(AnswerVotes { key, votes: 1, answer }),
        }
    }

    /// The index of the leader, and by how many votes it leads.
    fn leader(&self) -> Option<(usize, u32)> {
        let mut leader: Option<(usize, u32)> = None;
        let mut second = 0;
        for (index, ballot) in self.ballots.iter().enumerate() {
            match leader {
                Some((_, votes)) if votes >= ballot.votes => second = second.max(ballot.votes),
                _ => {
                    second = second.max(leader.map_or(0, |(_, votes)| votes));
                    leader = Some((index, ballot.votes));
                }
            }
        }
        leader.map(|(index, votes)| (index, votes - second))
    }

    fn take(&mut self, winner: usize) -> NodeAction {
        NodeAction::Done(Ok(self.ballots.swap_remove(winner).answer))
    }

    fn all_discarded(&self, graph: &AgentGraph) -> NodeAction {
        let message = format!(
            "all {} answers are longer than {} characters (`red_flag_max_length`)",
            self.samples,
            self.red_flag_max_length.unwrap_or_default()
        );
        failed(graph, self.worker, RowError::new(RowErrorKind::AnswersDiscarded, message))
    }
}

impl Workflow for MakerWorkflow {
    fn begin(&mut self, _: &AgentGraph, request: Vec<Message>) -> NodeAction {
        self.request = request;
        self.sample()
    }

    fn handle_agent_end(&mut self, graph: &AgentGraph, _: usize, answer: AgentAnswer) -> NodeAction {
        match answer {
            Ok(answer) => self.vote(answer),
            Err(error) => return failed(graph, self.worker, error),
        }
        self.samples += 1;
        match self.leader() {
            Some((leader, margin)) if margin >= self.k => self.take(leader),
            _ if self.samples < self.max_samples => self.sample(),
            Some((leader, _)) => self.take(leader),
            None => self.all_discarded(graph),
        }
    }
}

/// The key that equal answers share.
fn key_of(matching: AnswerEquality, answer: &str) -> String {
    match matching {
        AnswerEquality::Exact => answer.to_owned(),
        AnswerEquality::Normalized => {
            let words: Vec<&str> = answer.split_whitespace().collect();
            // Through upper case, so that letters with two lower-case forms compare as equal.
            words.join(" ").chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
        }
        AnswerEquality::Structured => match serde_json::from_str::<Value>(answer) {
            Ok(mut value) => {
                value.sort_all_objects();
                value.to_string()
            }
            Err(_) => answer.to_owned(),
        },
    }
}
