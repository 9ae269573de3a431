//! Parses the fields that differ between types.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::field::Field;
use crate::fields::{Fields, all};
use crate::mistake::Mistake;
use crate::{CardType, Kind, MatchStrategy, PlanType, Rating};

/// The parsed type-specific fields.
#[derive(Debug)]
pub(crate) struct KindRead {
    pub(crate) kind: Kind,
    /// The line of each child's name.
    pub(crate) child_lines: Vec<u64>,
    pub(crate) max_parallel: Option<NonZeroU32>,
    pub(crate) child_timeout: Option<Duration>,
}

/// Reads the fields of a type.
pub(crate) fn read(card_type: CardType, fields: &mut Fields) -> KindRead {
    let mut reader = Reader { card_type, fields, lines: Vec::new() };
    let kind = reader.kind();
    let child_lines = reader.lines;
    let max_parallel = fields.read("max_parallel", |field| field.count(1)).and_then(NonZeroU32::new);
    let child_timeout = fields.read("child_timeout_sec", Field::seconds);
    KindRead { kind, child_lines, max_parallel, child_timeout }
}

struct Reader<'a> {
    card_type: CardType,
    fields: &'a mut Fields,
    lines: Vec<u64>,
}

impl Reader<'_> {
    fn kind(&mut self) -> Kind {
        match self.card_type {
            CardType::Agent => Kind::Agent { agents: self.optional_children("agents") },
            CardType::Chain => Kind::Chain {
                sequence: self.children("sequence", Repeats::Allowed),
                cumulative: self.fields.flag("cumulative"),
            },
            CardType::Parallel => Kind::Parallel {
                fan_out: self.children("fan_out", Repeats::Refused),
                fan_in: self.optional_child("fan_in"),
                include_request: self.fields.read("include_request", Field::boolean).unwrap_or(true),
            },
            CardType::EvaluatorOptimizer => self.evaluator_optimizer(),
            CardType::Router => Kind::Router { agents: self.children("agents", Repeats::Refused) },
            CardType::Orchestrator => Kind::Orchestrator {
                agents: self.children("agents", Repeats::Refused),
                plan_type: self.fields.read("plan_type", plan_type).unwrap_or(PlanType::Full),
                plan_iterations: self.iterations(NonZeroU32::new(5)),
            },
            CardType::IterativePlanner => Kind::IterativePlanner {
                agents: self.children("agents", Repeats::Refused),
                plan_iterations: self.iterations(None),
            },
            CardType::Maker => self.maker(),
        }
    }

    fn evaluator_optimizer(&mut self) -> Kind {
        Kind::EvaluatorOptimizer {
            generator: self.child("generator"),
            evaluator: self.child("evaluator"),
            min_rating: self.fields.read("min_rating", rating).unwrap_or(Rating::Good),
            max_refinements: self.fields.read("max_refinements", |field| field.count(0)).unwrap_or(3),
            refinement_instruction: self.fields.read("refinement_instruction", Field::any_text),
        }
    }

    fn maker(&mut self) -> Kind {
        Kind::Maker {
            worker: self.child("worker"),
            k: self.fields.read("k", |field| field.count(1)).unwrap_or(3),
            max_samples: self.fields.read("max_samples", |field| field.count(1)).unwrap_or(50),
            match_strategy: self.fields.read("match_strategy", strategy).unwrap_or(MatchStrategy::Exact),
            red_flag_max_length: self.fields.read("red_flag_max_length", |field| field.count(1)),
        }
    }

    fn required(&mut self, name: &str) -> Result<Field, Mistake> {
        let (line, card_type) = (self.fields.line(), self.card_type);
        self.fields.take(name).ok_or_else(|| {
            Mistake::at(line, format!("type `{card_type}` needs `{name}`"))
                .hint(format!("add `{name}` with the names of cards that are loaded with this one"))
        })
    }

    fn child(&mut self, name: &str) -> String {
        let child = self.required(name).and_then(|field| self.named(field));
        self.fields.keep(child)
    }

    fn optional_child(&mut self, name: &str) -> Option<String> {
        let child = self.fields.take(name).map(|field| self.named(field)).transpose();
        self.fields.keep(child)
    }

    fn children(&mut self, name: &str, repeats: Repeats) -> Vec<String> {
        let children = self.required(name).map_err(Vec::from).and_then(|field| {
            let place = field.clone();
            let children = self.all_named(field, repeats)?;
            if children.is_empty() {
                return Err(place.mistake("must name at least one agent").into());
            }
            Ok(children)
        });
        self.fields.keep(children)
    }

    fn optional_children(&mut self, name: &str) -> Vec<String> {
        let field = self.fields.take(name);
        let children = field.map(|field| self.all_named(field, Repeats::Refused)).transpose();
        self.fields.keep(children).unwrap_or_default()
    }

    fn all_named(&mut self, field: Field, repeats: Repeats) -> Result<Vec<String>, Vec<Mistake>> {
        let mut earlier: Vec<String> = Vec::new();
        all(field.list()?.into_iter().map(|item| {
            let place = item.clone();
            let name = self.named(item)?;
            if repeats == Repeats::Refused && earlier.contains(&name) {
                return Err(place.mistake(&format!("lists `{name}` twice")).hint("list it once"));
            }
            earlier.push(name.clone());
            Ok(name)
        }))
    }

    /// The name of a child, in normalized form.
    fn named(&mut self, field: Field) -> Result<String, Mistake> {
        self.lines.push(field.line);
        Ok(field.text()?.replace(' ', "_"))
    }

    /// A number of rounds; -1 means no limit.
    fn iterations(&mut self, default: Option<NonZeroU32>) -> Option<NonZeroU32> {
        let rounds = self.fields.read("plan_iterations", |field| {
            let place = field.clone();
            match field.whole(-1)? {
                -1 => Ok(None),
                0 => Err(place.mistake("must be 1 or more, or -1 for no limit, not 0")),
                _ => Ok(NonZeroU32::new(place.count(1)?)),
            }
        });
        rounds.unwrap_or(default)
    }
}

/// Whether a list may name an agent more than once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeats {
    Allowed,
    Refused,
}

fn rating(field: Field) -> Result<Rating, Mistake> {
    field.choice(&[
        ("POOR", Rating::Poor),
        ("FAIR", Rating::Fair),
        ("GOOD", Rating::Good),
        ("EXCELLENT", Rating::Excellent),
    ])
}

fn plan_type(field: Field) -> Result<PlanType, Mistake> {
    field.choice(&[("full", PlanType::Full), ("iterative", PlanType::Iterative)])
}

fn strategy(field: Field) -> Result<MatchStrategy, Mistake> {
    field.choice(&[
        ("exact", MatchStrategy::Exact),
        ("normalized", MatchStrategy::Normalized),
        ("structured", MatchStrategy::Structured),
    ])
}
