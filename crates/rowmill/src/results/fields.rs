//! Summarizes the values of results, field by field, in constant memory.

use std::collections::HashMap;

use rowmill_core::json_text::decode_string;
use rowmill_types::Row;
use serde::Serialize;

use crate::json_kinds::{JsonKind, JsonKindCounts};

/// The maximum number of distinct values of a field that are counted individually.
const MOST_VALUES: usize = 20;
/// The longest value that is counted, in bytes.
const LONGEST_VALUE: usize = 64;
/// The maximum number of fields that are summarized.
const MOST_FIELDS: usize = 200;

/// A summary of the values of one field of the results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldSummary {
    /// The field; `None` for results that are not objects.
    pub name: Option<String>,
    /// The kinds of the values.
    pub kinds: JsonKindCounts,
    /// How often each value occurs, the most frequent first, if there are few values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<(String, u64)>>,
    /// The minimum of the numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The mean of the numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The maximum of the numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// Collects results.
#[derive(Debug, Default)]
pub(super) struct FieldCollector {
    places: HashMap<String, usize>,
    seen: Vec<(String, FieldValues)>,
    whole: FieldValues,
}

impl FieldCollector {
    /// Adds the result of a row that is ok.
    pub(super) fn add(&mut self, result: &str) {
        if JsonKind::of_json(result) != JsonKind::Object {
            self.whole.add(result);
            return;
        }
        let Ok(fields) = Row::parse(0, result.to_owned()) else { return };
        for (name, json) in fields.fields() {
            let place = match self.places.get(name) {
                Some(place) => *place,
                None if self.seen.len() >= MOST_FIELDS => continue,
                None => {
                    self.places.insert(name.to_owned(), self.seen.len());
                    self.seen.push((name.to_owned(), FieldValues::default()));
                    self.seen.len() - 1
                }
            };
            if let Some((_, values)) = self.seen.get_mut(place) {
                values.add(json);
            }
        }
    }

    /// The summaries.
    pub(super) fn summaries(self) -> Vec<FieldSummary> {
        let whole = (self.whole.kinds.all() > 0).then(|| self.whole.summary(None));
        let fields = self.seen.into_iter().map(|(name, values)| values.summary(Some(name)));
        whole.into_iter().chain(fields).collect()
    }
}

/// The values of one field.
#[derive(Debug, Default)]
struct FieldValues {
    kinds: JsonKindCounts,
    counts: HashMap<String, u64>,
    /// There are too many distinct values, or they are too long, to count them.
    many: bool,
    numbers: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl FieldValues {
    fn add(&mut self, json: &str) {
        let kind = JsonKind::of_json(json);
        self.kinds.add(kind);
        match kind {
            JsonKind::Null => return,
            JsonKind::List | JsonKind::Object => self.many = true,
            JsonKind::Integer | JsonKind::Number => {
                if let Ok(number) = json.trim().parse::<f64>() {
                    self.min = if self.numbers == 0 { number } else { self.min.min(number) };
                    self.max = if self.numbers == 0 { number } else { self.max.max(number) };
                    self.numbers += 1;
                    self.sum += number;
                }
            }
            JsonKind::Text | JsonKind::Boolean => {}
        }
        if !self.many {
            self.count(json);
        }
    }

    fn count(&mut self, json: &str) {
        let text = decode_string(json).unwrap_or(json.into());
        if let Some(count) = self.counts.get_mut(&*text) {
            *count += 1;
        } else if text.len() <= LONGEST_VALUE && self.counts.len() < MOST_VALUES {
            self.counts.insert(text.into_owned(), 1);
        } else {
            self.many = true;
            self.counts = HashMap::new();
        }
    }

    fn summary(self, name: Option<String>) -> FieldSummary {
        let counted = self.kinds.all() - self.kinds.count_of(JsonKind::Null);
        // Values that occur only once each are not categories but names or texts.
        let few = !self.many && counted > 0 && ((self.counts.len() as u64) < counted || counted == 1);
        let values = few.then(|| {
            let mut values: Vec<(String, u64)> = self.counts.into_iter().collect();
            values.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
            values
        });
        let some = |value: f64| (self.numbers > 0).then_some(value);
        FieldSummary {
            name,
            kinds: self.kinds,
            values,
            min: some(self.min),
            mean: some(self.sum / self.numbers.max(1) as f64),
            max: some(self.max),
        }
    }
}
