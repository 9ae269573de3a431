//! Numbers between bounds.

use serde_json::{Map, Number, Value};

use crate::value::SeededRandom;

/// The bounds that a schema sets; exclusive ones are marked.
#[derive(Debug, Clone, Copy)]
struct NumberBounds {
    low: Option<f64>,
    low_open: bool,
    high: Option<f64>,
    high_open: bool,
}

impl NumberBounds {
    fn of(map: &Map<String, Value>) -> Self {
        let number = |key: &str| map.get(key).and_then(Value::as_f64);
        // Draft 4 writes `exclusiveMinimum: true` beside `minimum`.
        let flag = |key: &str| map.get(key) == Some(&Value::Bool(true));
        let (mut low, mut low_open) = (number("minimum"), flag("exclusiveMinimum"));
        let (mut high, mut high_open) = (number("maximum"), flag("exclusiveMaximum"));
        if let Some(open) = number("exclusiveMinimum")
            && low.is_none_or(|held| open >= held)
        {
            (low, low_open) = (Some(open), true);
        }
        if let Some(open) = number("exclusiveMaximum")
            && high.is_none_or(|held| open <= held)
        {
            (high, high_open) = (Some(open), true);
        }
        Self { low, low_open, high, high_open }
    }

    /// Both ends, with a range of `width` if the schema leaves one open.
    fn range(self, width: f64) -> (f64, f64) {
        match (self.low, self.high) {
            (Some(low), Some(high)) => (low, high),
            (Some(low), None) => (low, low + width),
            (None, Some(high)) => (if high >= 0.0 && high <= width { 0.0 } else { high - width }, high),
            (None, None) => (0.0, width),
        }
    }

    fn hold(self, value: f64) -> bool {
        self.low.is_none_or(|low| value > low || (value >= low && !self.low_open))
            && self.high.is_none_or(|high| value < high || (value <= high && !self.high_open))
    }
}

/// An integer inside the schema's bounds.
pub(crate) fn integer(map: &Map<String, Value>, dice: &mut SeededRandom) -> Value {
    let step = map.get("multipleOf").and_then(Value::as_f64).filter(|step| *step > 0.0);
    // A step such as 0.5 or 1.5 is met by integers that are multiples of the next whole step.
    let step = step.map_or(1.0, |step| {
        (1..=1000).map(|times| step * f64::from(times)).find(|whole| whole.fract() == 0.0).unwrap_or(1.0)
    });
    whole(multiple(NumberBounds::of(map), step, dice))
}

/// A number inside the schema's bounds, with few decimals if they allow it.
pub(crate) fn number(map: &Map<String, Value>, dice: &mut SeededRandom) -> Value {
    let bounds = NumberBounds::of(map);
    if let Some(step) = map.get("multipleOf").and_then(Value::as_f64).filter(|step| *step > 0.0) {
        return rounded(multiple(bounds, step, dice), decimals(step));
    }
    let (low, high) = bounds.range(100.0);
    // Strictly between the ends, so that exclusive bounds are met, too.
    let share = (1 + dice.below(999)) as f64 / 1000.0;
    let exact = low + (high - low) * share;
    let short = (exact * 100.0).round() / 100.0;
    let value = if bounds.hold(short) { short } else { exact };
    Number::from_f64(value).map_or(Value::from(0), Value::Number)
}

/// A multiple of `step` inside the bounds.
fn multiple(bounds: NumberBounds, step: f64, dice: &mut SeededRandom) -> f64 {
    let (low, high) = bounds.range(100.0 * step);
    let mut first = (low / step).ceil();
    let mut last = (high / step).floor();
    if bounds.low_open && first * step <= low {
        first += 1.0;
    }
    if bounds.high_open && last * step >= high {
        last -= 1.0;
    }
    let span = (last - first).max(0.0) as u64;
    let chosen = first + dice.below(span.saturating_add(1)) as f64;
    chosen * step
}

fn decimals(step: f64) -> usize {
    step.to_string().split_once('.').map_or(0, |(_, digits)| digits.len())
}

/// `value` without the rounding noise in its last digits.
fn rounded(value: f64, decimals: usize) -> Value {
    if decimals == 0 {
        return whole(value);
    }
    let text = format!("{value:.decimals$}");
    text.parse::<f64>().ok().and_then(Number::from_f64).map_or(Value::from(0), Value::Number)
}

fn whole(value: f64) -> Value {
    let exact = value as i64;
    Value::from(exact)
}
