//! Arrays.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::generation_budget::{GenerationLimitExceeded, MOST_VALUES};
use crate::value::{GROWTH_DEPTH, ValueGenerator, count};

/// The number of values tried for one item of an array of unique items.
const UNIQUE_TRIES: u32 = 64;

impl ValueGenerator<'_> {
    pub(crate) fn array(&mut self, map: &Map<String, Value>, depth: u32) -> Value {
        let least = count(map, "minItems").unwrap_or(0);
        let most = count(map, "maxItems").unwrap_or(usize::MAX);
        let anything = Value::Bool(true);
        // Older drafts allow a list of schemas under `items`.
        let listed = map.get("items").and_then(Value::as_array);
        let prefix = map.get("prefixItems").and_then(Value::as_array).or(listed);
        let prefix: &[Value] = prefix.map_or(&[], Vec::as_slice);
        let rest_keyword = if listed.is_some() { "additionalItems" } else { "items" };
        let rest = map.get(rest_keyword).unwrap_or(&anything);
        let wanted = map.get("contains");
        let wanted_count = wanted.map_or(0, |_| count(map, "minContains").unwrap_or(1));

        let more = if depth < GROWTH_DEPTH && map.get("unevaluatedItems") != Some(&Value::Bool(false)) {
            usize::try_from(1 + self.dice.below(3)).unwrap_or(1)
        } else {
            0
        };
        let mut length = least.max(prefix.len()).max(wanted_count);
        if *rest == Value::Bool(false) {
            length = length.min(prefix.len());
        } else if prefix.is_empty() && wanted_count == 0 {
            length = length.saturating_add(more);
        }
        let length = length.min(most);
        if length as u64 > MOST_VALUES {
            self.work.mark_exceeded(GenerationLimitExceeded::Values);
        }

        let unique = map.get("uniqueItems") == Some(&Value::Bool(true));
        let mut earlier = unique.then(HashSet::new);
        let mut items = Vec::new();
        for at in 0..length {
            if self.work.is_exceeded() {
                break;
            }
            let schema = prefix.get(at).unwrap_or(match wanted {
                Some(wanted) if at < wanted_count => wanted,
                _ => rest,
            });
            match self.item(schema, depth, earlier.as_mut()) {
                Some(item) => items.push(item),
                None => break,
            }
        }
        Value::Array(items)
    }

    /// One item, different from all of `earlier` if given; `None` if none was found.
    fn item(&mut self, schema: &Value, depth: u32, earlier: Option<&mut HashSet<String>>) -> Option<Value> {
        let Some(earlier) = earlier else { return Some(self.make(schema, depth + 1)) };
        (0..UNIQUE_TRIES).map(|_| self.make(schema, depth + 1)).find(|item| earlier.insert(item.to_string()))
    }
}
