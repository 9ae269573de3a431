//! One value for a schema: which of its parts is made how, and what the choices are drawn from.

use serde_json::{Map, Value};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::generation_budget::{self, GenerationBudget, GenerationLimitExceeded, MOST_DEPTH};
use crate::{merge, number, text};

/// The number of seeds tried before a value that does not validate is returned anyway.
const TRIES: u64 = 24;

/// Below this depth nothing optional is added, so that recursive schemas end.
pub(crate) const GROWTH_DEPTH: u32 = 4;

/// The maximum nesting of choices that are followed before a value is started.
const MOST_NESTED: u32 = 4 * MOST_DEPTH;

/// Keywords that a value can violate although each part of it is valid.
const CHECKED_KEYWORDS: &[&str] = &[
    "oneOf",
    "allOf",
    "not",
    "if",
    "pattern",
    "patternProperties",
    "propertyNames",
    "contains",
    "uniqueItems",
    "dependentSchemas",
    "dependencies",
    "maxProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// A value that satisfies `schema`, generated from `seed`.
///
/// Equal arguments give equal values. For a schema that no value can satisfy, or that only rare values satisfy, the
/// value comes near.
///
/// # Errors
///
/// The schema requires a value that is larger than the maximum.
///
/// ```
/// # use rowmill_schema_faker::simulated_value;
/// # use serde_json::json;
/// let schema = json!({"type": "object", "properties": {"grade": {"enum": ["a", "b"]}}, "required": ["grade"]});
/// let value = simulated_value(&schema, 7).unwrap();
/// assert!(["a", "b"].contains(&value["grade"].as_str().unwrap()));
/// assert_eq!(Ok(value), simulated_value(&schema, 7));
/// assert!(simulated_value(&json!({"type": "string", "minLength": 4_000_000_000u64}), 7).is_err());
/// ```
pub fn simulated_value(schema: &Value, seed: u64) -> Result<Value, GenerationLimitExceeded> {
    let work = GenerationBudget::default();
    let make = |attempt: u64| {
        work.begin_attempt();
        let seed = seed.wrapping_add(attempt.wrapping_mul(STEP));
        let value =
            ValueGenerator { root: schema, dice: SeededRandom(seed), work: &work, nested: 0 }.make(schema, 0);
        work.exceeded().map_or(Ok(value), Err)
    };
    let first = make(0)?;
    if !needs_check(schema) {
        return Ok(first);
    }
    let Ok(validator) = jsonschema::validator_for(schema) else { return Ok(first) };
    if validator.is_valid(&first) {
        return Ok(first);
    }
    let others = (1..TRIES).map_while(|attempt| make(attempt).ok());
    Ok(others.into_iter().find(|value| validator.is_valid(value)).unwrap_or(first))
}

/// A seed from texts, the same on every machine. The boundaries between the texts matter.
///
/// ```
/// # use rowmill_schema_faker::seed_from;
/// assert_eq!(seed_from(&["a", "b"]), seed_from(&["a", "b"]));
/// assert_ne!(seed_from(&["a", "b"]), seed_from(&["ab"]));
/// ```
#[must_use]
pub fn seed_from(parts: &[&str]) -> u64 {
    let mut hash = Xxh3::new();
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.digest()
}

/// A short sentence that answers `prompt`, generated from `seed`.
///
/// ```
/// # use rowmill_schema_faker::simulated_sentence;
/// let sentence = simulated_sentence("What is a mill?", 3);
/// assert!(sentence.ends_with('.'));
/// assert_eq!(sentence, simulated_sentence("What is a mill?", 3));
/// ```
#[must_use]
pub fn simulated_sentence(prompt: &str, seed: u64) -> String {
    let mut dice = SeededRandom(seed ^ xxh3_64(prompt.as_bytes()));
    text::sentence(prompt, &mut dice)
}

/// Whether a value generated part by part could still violate the schema as a whole.
fn needs_check(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.keys().any(|key| CHECKED_KEYWORDS.contains(&key.as_str())) || map.values().any(needs_check)
        }
        Value::Array(items) => items.iter().any(needs_check),
        _ => false,
    }
}

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of numbers from a seed (SplitMix64): small, fast and the same everywhere.
#[derive(Debug)]
pub(crate) struct SeededRandom(pub(crate) u64);

impl SeededRandom {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let at = usize::try_from(self.below(choices.len() as u64)).unwrap_or(0);
        choices.get(at)
    }

    /// True `percent` times out of a hundred.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Generates one value; holds the schema's root for references.
#[derive(Debug)]
pub(crate) struct ValueGenerator<'s> {
    pub(crate) root: &'s Value,
    pub(crate) dice: SeededRandom,
    pub(crate) work: &'s GenerationBudget,
    /// The number of values being generated, each nested in the previous one.
    pub(crate) nested: u32,
}

impl ValueGenerator<'_> {
    pub(crate) fn make(&mut self, schema: &Value, depth: u32) -> Value {
        self.work.count_values(1);
        if depth > MOST_DEPTH || self.nested > MOST_NESTED {
            self.work.mark_exceeded(GenerationLimitExceeded::Depth);
        }
        if self.work.is_exceeded() {
            return Value::Null;
        }
        self.nested += 1;
        let value = self.made(schema, depth);
        self.nested -= 1;
        value
    }

    fn made(&mut self, schema: &Value, depth: u32) -> Value {
        let Value::Object(map) = schema else {
            let word = text::word(&mut self.dice);
            self.work.count_text(word.len());
            return Value::from(word);
        };
        let flat = merge::flatten(self.root, map, self.work);
        let map = flat.as_ref();
        if let Some(value) = map.get("const") {
            return self.copied(value);
        }
        if let Some(Value::Array(choices)) = map.get("enum") {
            return self.choose(map, choices);
        }
        match self.branch(map, depth) {
            Some(branch) => self.make(&Value::Object(branch), depth),
            None => self.make_typed(map, depth),
        }
    }

    /// A value that the schema contains verbatim.
    fn copied(&self, value: &Value) -> Value {
        self.work.count_copied(value);
        if self.work.is_exceeded() { Value::Null } else { value.clone() }
    }

    /// One of the listed values, of a type that the schema allows.
    fn choose(&mut self, map: &Map<String, Value>, choices: &[Value]) -> Value {
        let types = type_names(map);
        let fitting: Vec<&Value> =
            choices.iter().filter(|value| types.is_empty() || has_type(value, &types)).collect();
        let chosen = self.dice.pick(&fitting).copied();
        chosen.map_or(Value::Null, |value| self.copied(value))
    }

    /// The schema with one branch of `anyOf` or `oneOf` merged in; at great depth the branch that ends soonest.
    fn branch(&mut self, map: &Map<String, Value>, depth: u32) -> Option<Map<String, Value>> {
        let keyword =
            ["anyOf", "oneOf"].into_iter().find(|key| map.get(*key).is_some_and(Value::is_array))?;
        let branches: Vec<&Value> = map.get(keyword)?.as_array()?.iter().collect();
        let chosen = if depth < GROWTH_DEPTH {
            let usable: Vec<&Value> =
                branches.iter().copied().filter(|branch| **branch != Value::Bool(false)).collect();
            self.dice.pick(&usable).copied()
        } else {
            branches.iter().copied().min_by_key(|branch| merge::height(self.root, branch, (12, self.work)))
        };
        self.work.count_steps(generation_budget::schema_parts(map));
        let mut merged = map.clone();
        merged.remove(keyword);
        if let Some(Value::Object(chosen)) = chosen {
            let flat = merge::flatten(self.root, chosen, self.work);
            merge::into(&mut merged, flat.as_ref(), self.work);
        }
        Some(merged)
    }

    fn make_typed(&mut self, map: &Map<String, Value>, depth: u32) -> Value {
        let types = type_names(map);
        let chosen = if depth < GROWTH_DEPTH {
            self.dice.pick(&types).copied()
        } else {
            types.iter().copied().min_by_key(|name| merge::type_height(name))
        };
        match chosen.unwrap_or_else(|| implied_type(map)) {
            "object" => self.object(map, depth),
            "array" => self.array(map, depth),
            "integer" => number::integer(map, &mut self.dice),
            "number" => number::number(map, &mut self.dice),
            "boolean" => Value::Bool(self.dice.chance(50)),
            "null" => Value::Null,
            _ => Value::String(text::string(map, &mut self.dice, self.work)),
        }
    }
}

/// The types that a schema names; empty if it names none.
pub(crate) fn type_names(map: &Map<String, Value>) -> Vec<&str> {
    match map.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn has_type(value: &Value, types: &[&str]) -> bool {
    types.iter().any(|name| match *name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => value.is_number(),
    })
}

/// The type that a schema without `type` implies.
fn implied_type(map: &Map<String, Value>) -> &'static str {
    let has = |names: &[&str]| names.iter().any(|name| map.contains_key(*name));
    if has(&["properties", "required", "additionalProperties", "patternProperties", "minProperties"]) {
        "object"
    } else if has(&["items", "prefixItems", "minItems", "contains", "uniqueItems"]) {
        "array"
    } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        "number"
    } else {
        "string"
    }
}

/// A count keyword such as `minItems`, which may be written as `2.0`.
pub(crate) fn count(map: &Map<String, Value>, keyword: &str) -> Option<usize> {
    let value = map.get(keyword)?;
    let whole = value.as_u64().and_then(|number| usize::try_from(number).ok());
    // A number that is too large for its type becomes the largest one.
    whole.or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as usize))
}
