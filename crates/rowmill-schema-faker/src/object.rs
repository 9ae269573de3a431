//! Objects.

use serde_json::{Map, Value};

use crate::generation_budget::{GenerationLimitExceeded, MOST_VALUES};
use crate::text;
use crate::value::{GROWTH_DEPTH, ValueGenerator, count};

/// How often an optional property is present, in percent.
const OPTIONAL: u64 = 70;

impl ValueGenerator<'_> {
    pub(crate) fn object(&mut self, map: &Map<String, Value>, depth: u32) -> Value {
        let empty = Map::new();
        let properties = map.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let least = count(map, "minProperties").unwrap_or(0);
        let most = count(map, "maxProperties").unwrap_or(usize::MAX);
        let names = self.names(map, properties, depth, least..=most);

        let mut object = Map::new();
        for name in properties.keys().filter(|name| names.contains(&name.as_str())) {
            let value = self.make(&properties[name.as_str()], depth + 1);
            self.work.count_text(name.len());
            object.insert(name.clone(), value);
        }
        let additional = map.get("additionalProperties").unwrap_or(&Value::Bool(true));
        for name in names.iter().filter(|name| !properties.contains_key(**name)) {
            let value = self.make(additional, depth + 1);
            self.work.count_text(name.len());
            object.insert((*name).to_owned(), value);
        }
        let room = most.saturating_sub(object.len());
        let extra = self.extra_count(map, depth).min(room).max(least.saturating_sub(object.len()));
        if *additional != Value::Bool(false) {
            self.add_extras((map, additional), extra, depth, &mut object);
        }
        Value::Object(object)
    }

    /// The names of the properties to fill: every required one, and optional ones by chance.
    fn names<'m>(
        &mut self,
        map: &'m Map<String, Value>,
        properties: &'m Map<String, Value>,
        depth: u32,
        counts: std::ops::RangeInclusive<usize>,
    ) -> Vec<&'m str> {
        let required = map.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut names: Vec<&str> = Vec::new();
        for name in required.filter_map(Value::as_str) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let optional = properties
            .iter()
            .filter(|(_, schema)| **schema != Value::Bool(false))
            .map(|(name, _)| name.as_str());
        for name in optional {
            if names.contains(&name) || names.len() >= *counts.end() {
                continue;
            }
            let grows = depth < GROWTH_DEPTH && self.dice.chance(OPTIONAL);
            if grows || names.len() < *counts.start() {
                names.push(name);
            }
        }
        if let Some(Value::Object(dependent)) = map.get("dependentRequired") {
            let mut at = 0;
            while let Some(name) = names.get(at) {
                let needed = dependent.get(*name).and_then(Value::as_array).into_iter().flatten();
                for name in needed.filter_map(Value::as_str) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                at += 1;
            }
        }
        names
    }

    /// The number of additional entries: more than zero only if the schema describes a map.
    fn extra_count(&mut self, map: &Map<String, Value>, depth: u32) -> usize {
        let is_map = map.get("additionalProperties").is_some_and(Value::is_object)
            && !map.contains_key("properties")
            && !map.contains_key("unevaluatedProperties");
        if is_map && depth < GROWTH_DEPTH { usize::try_from(1 + self.dice.below(2)).unwrap_or(1) } else { 0 }
    }

    fn add_extras(
        &mut self,
        (map, additional): (&Map<String, Value>, &Value),
        extra: usize,
        depth: u32,
        object: &mut Map<String, Value>,
    ) {
        if extra as u64 > MOST_VALUES {
            self.work.mark_exceeded(GenerationLimitExceeded::Values);
        }
        let wanted = object.len().saturating_add(extra);
        for attempt in 0..extra.saturating_mul(16) {
            if object.len() >= wanted || self.work.is_exceeded() {
                break;
            }
            // Names that exist already are skipped, but the search must end.
            self.work.count_steps(1);
            let name = match map.get("propertyNames") {
                Some(names) => self.make(names, depth + 1).as_str().map(str::to_owned),
                None => None,
            };
            let name = name.unwrap_or_else(|| format!("{}_{attempt}", text::word(&mut self.dice)));
            if !object.contains_key(&name) {
                let value = self.make(additional, depth + 1);
                self.work.count_text(name.len());
                object.insert(name, value);
            }
        }
    }
}
