//! Parses the fields that differ between types.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::card_fields::{CardFields, collect_all};
use crate::field::CardField;
use crate::mistake::CardMistake;
use crate::{AnswerEquality, AnswerRating, CardType, CardTypeSettings, OrchestratorPlanType};

/// The parsed type-specific fields.
#[derive(Debug)]
pub(crate) struct ParsedKind {
    pub(crate) kind: CardTypeSettings,
    /// The line of each child's name.
    pub(crate) child_lines: Vec<u64>,
    pub(crate) max_parallel: Option<NonZeroU32>,
    pub(crate) child_timeout: Option<Duration>,
}

/// Reads the fields of a type.
pub(crate) fn read(card_type: CardType, fields: &mut CardFields) -> ParsedKind {
    let mut reader = KindReader { card_type, fields, lines: Vec::new() };
    let kind = reader.kind();
    let child_lines = reader.lines;
    let max_parallel = fields.read("max_parallel", |field| field.integer_u32(1)).and_then(NonZeroU32::new);
    let child_timeout = fields.read("child_timeout_sec", CardField::seconds);
    ParsedKind { kind, child_lines, max_parallel, child_timeout }
}

struct KindReader<'a> {
    card_type: CardType,
    fields: &'a mut CardFields,
    lines: Vec<u64>,
}

impl KindReader<'_> {
    fn kind(&mut self) -> CardTypeSettings {
        match self.card_type {
            CardType::Agent => CardTypeSettings::Agent { agents: self.optional_children("agents") },
            CardType::Chain => CardTypeSettings::Chain {
                sequence: self.children("sequence", RepeatedNames::Allowed),
                cumulative: self.fields.flag("cumulative"),
            },
            CardType::Parallel => CardTypeSettings::Parallel {
                fan_out: self.children("fan_out", RepeatedNames::Refused),
                fan_in: self.optional_child("fan_in"),
                include_request: self.fields.read("include_request", CardField::boolean).unwrap_or(true),
            },
            CardType::EvaluatorOptimizer => self.evaluator_optimizer(),
            CardType::Router => {
                CardTypeSettings::Router { agents: self.children("agents", RepeatedNames::Refused) }
            }
            CardType::Orchestrator => CardTypeSettings::Orchestrator {
                agents: self.children("agents", RepeatedNames::Refused),
                plan_type: self.fields.read("plan_type", plan_type).unwrap_or(OrchestratorPlanType::Full),
                plan_iterations: self.iterations(NonZeroU32::new(5)),
            },
            CardType::IterativePlanner => CardTypeSettings::IterativePlanner {
                agents: self.children("agents", RepeatedNames::Refused),
                plan_iterations: self.iterations(None),
            },
            CardType::Maker => self.maker(),
        }
    }

    fn evaluator_optimizer(&mut self) -> CardTypeSettings {
        CardTypeSettings::EvaluatorOptimizer {
            generator: self.child("generator"),
            evaluator: self.child("evaluator"),
            min_rating: self.fields.read("min_rating", rating).unwrap_or(AnswerRating::Good),
            max_refinements: self.fields.read("max_refinements", |field| field.integer_u32(0)).unwrap_or(3),
            refinement_instruction: self.fields.read("refinement_instruction", CardField::any_text),
        }
    }

    fn maker(&mut self) -> CardTypeSettings {
        CardTypeSettings::Maker {
            worker: self.child("worker"),
            k: self.fields.read("k", |field| field.integer_u32(1)).unwrap_or(3),
            max_samples: self.fields.read("max_samples", |field| field.integer_u32(1)).unwrap_or(50),
            match_strategy: self.fields.read("match_strategy", strategy).unwrap_or(AnswerEquality::Exact),
            red_flag_max_length: self.fields.read("red_flag_max_length", |field| field.integer_u32(1)),
        }
    }

    fn required(&mut self, name: &str) -> Result<CardField, CardMistake> {
        let (line, card_type) = (self.fields.line(), self.card_type);
        self.fields.take(name).ok_or_else(|| {
            CardMistake::at(line, format!("type `{card_type}` needs `{name}`"))
                .hint(format!("add `{name}` with the names of cards that are loaded with this one"))
        })
    }

    fn child(&mut self, name: &str) -> String {
        let child = self.required(name).and_then(|field| self.named(field));
        self.fields.value_or_note(child)
    }

    fn optional_child(&mut self, name: &str) -> Option<String> {
        let child = self.fields.take(name).map(|field| self.named(field)).transpose();
        self.fields.value_or_note(child)
    }

    fn children(&mut self, name: &str, repeats: RepeatedNames) -> Vec<String> {
        let children = self.required(name).map_err(Vec::from).and_then(|field| {
            let place = field.clone();
            let children = self.all_named(field, repeats)?;
            if children.is_empty() {
                return Err(place.mistake("must name at least one agent").into());
            }
            Ok(children)
        });
        self.fields.value_or_note(children)
    }

    fn optional_children(&mut self, name: &str) -> Vec<String> {
        let field = self.fields.take(name);
        let children = field.map(|field| self.all_named(field, RepeatedNames::Refused)).transpose();
        self.fields.value_or_note(children).unwrap_or_default()
    }

    fn all_named(
        &mut self,
        field: CardField,
        repeats: RepeatedNames,
    ) -> Result<Vec<String>, Vec<CardMistake>> {
        let mut earlier: Vec<String> = Vec::new();
        collect_all(field.list()?.into_iter().map(|item| {
            let place = item.clone();
            let name = self.named(item)?;
            if repeats == RepeatedNames::Refused && earlier.contains(&name) {
                return Err(place.mistake(&format!("lists `{name}` twice")).hint("list it once"));
            }
            earlier.push(name.clone());
            Ok(name)
        }))
    }

    /// The name of a child, in normalized form.
    fn named(&mut self, field: CardField) -> Result<String, CardMistake> {
        self.lines.push(field.line);
        Ok(field.text()?.replace(' ', "_"))
    }

    /// A number of rounds; -1 means no limit.
    fn iterations(&mut self, default: Option<NonZeroU32>) -> Option<NonZeroU32> {
        let rounds = self.fields.read("plan_iterations", |field| {
            let place = field.clone();
            match field.integer(-1)? {
                -1 => Ok(None),
                0 => Err(place.mistake("must be 1 or more, or -1 for no limit, not 0")),
                _ => Ok(NonZeroU32::new(place.integer_u32(1)?)),
            }
        });
        rounds.unwrap_or(default)
    }
}

/// Whether a list may name an agent more than once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RepeatedNames {
    Allowed,
    Refused,
}

fn rating(field: CardField) -> Result<AnswerRating, CardMistake> {
    field.choice(&[
        ("POOR", AnswerRating::Poor),
        ("FAIR", AnswerRating::Fair),
        ("GOOD", AnswerRating::Good),
        ("EXCELLENT", AnswerRating::Excellent),
    ])
}

fn plan_type(field: CardField) -> Result<OrchestratorPlanType, CardMistake> {
    field.choice(&[("full", OrchestratorPlanType::Full), ("iterative", OrchestratorPlanType::Iterative)])
}

fn strategy(field: CardField) -> Result<AnswerEquality, CardMistake> {
    field.choice(&[
        ("exact", AnswerEquality::Exact),
        ("normalized", AnswerEquality::Normalized),
        ("structured", AnswerEquality::Structured),
    ])
}
