//! The price table.

use rowmill::{ModelPrice, Money, Price, PriceEntry, Problem, ProblemCode, TokenPrices};
use serde_json::{Value, json};

use super::{CommandOutput, ModelCatalogue};
use crate::number_text::group_digits;

/// The columns of prices.
const COLUMNS: [&str; 4] = ["input", "cached", "write", "output"];

/// The prices of one provider, or of all.
pub(super) fn prices(known: &ModelCatalogue, provider: Option<&str>) -> Result<CommandOutput, Problem> {
    let entries: Vec<PriceEntry<'_>> = match provider {
        None => known.prices.entries().collect(),
        Some(name) => known.prices.entries_of(name).collect(),
    };
    let json: Vec<Value> = entries.iter().map(as_json).collect();
    let text = match provider {
        Some(name) if entries.is_empty() => none_listed(known, name)?,
        _ => as_text(&entries),
    };
    Ok(CommandOutput { text, json: json.into() })
}

/// The message for a provider without prices.
fn none_listed(known: &ModelCatalogue, name: &str) -> Result<String, Problem> {
    if known.providers.find(name).is_none() {
        let names: Vec<&str> = known.providers.iter().map(|provider| provider.name()).collect();
        let message = format!("unknown provider `{name}`");
        return Err(
            Problem::new(ProblemCode::InvalidModel, message).hint(format!("providers: {}", names.join(", ")))
        );
    }
    Ok(format!(
        "No prices are known for {name}. To set one, add to rowmill.toml:\n{}",
        pricing_hint(name, "MODEL")
    ))
}

/// What to add to `rowmill.toml` to price a model.
pub(super) fn pricing_hint(provider: &str, model: &str) -> String {
    format!(
        "  [prices.\"{provider}.{model}\"]       # dollars per million tokens\n  input = 0.25\n  output = 2.00"
    )
}

/// Dollars per million tokens.
fn dollars(price: Money) -> f64 {
    price.times(1_000_000).dollars()
}

/// Dollars per million tokens with at least two decimals, and as many as the price needs.
pub(super) fn price_text(price: Money) -> String {
    let text = format!("{:.6}", dollars(price));
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}.{:0<2}", part.trim_end_matches('0'))
}

/// One line of the table: the name, the prices, and a remark.
struct PriceLine {
    name: String,
    amounts: Option<[String; 4]>,
    rest: [String; 3],
}

fn as_text(entries: &[PriceEntry<'_>]) -> String {
    let mut parts = vec!["Dollars per million tokens.".to_owned()];
    let same_table = |one: &PriceEntry<'_>, other: &PriceEntry<'_>| {
        (one.provider, one.priced.as_of) == (other.provider, other.priced.as_of)
    };
    for table in entries.chunk_by(same_table) {
        let Some(first) = table.first() else { continue };
        let mut lines = vec![PriceLine {
            name: title(first),
            amounts: None,
            rest: ["batch", "max output", "service tiers"].map(str::to_owned),
        }];
        table.iter().for_each(|entry| lines.extend(lines_of(entry)));
        parts.push(aligned(&lines));
    }
    parts.join("\n\n")
}

fn title(entry: &PriceEntry<'_>) -> String {
    format!("{}, {}", entry.provider, price_origin(&entry.priced))
}

/// The source of a price, and its date.
pub(super) fn price_origin(priced: &ModelPrice<'_>) -> String {
    if priced.as_of.is_empty() { priced.source.name().to_owned() } else { format!("as of {}", priced.as_of) }
}

fn lines_of(entry: &PriceEntry<'_>) -> Vec<PriceLine> {
    let Price { tokens, long, batch_percent } = entry.priced.price;
    let tiers: Vec<String> =
        entry.tiers.iter().map(|(name, factor)| format!("{name} × {factor:.2}")).collect();
    let ordinary = PriceLine {
        name: format!("  {}", entry.model),
        amounts: Some(amounts(&tokens)),
        rest: [
            batch_percent.map_or_else(String::new, |percent| format!("{percent} %")),
            entry.priced.max_output.map_or_else(String::new, group_digits),
            tiers.join(", "),
        ],
    };
    let above = long.map(|(above, prices)| PriceLine {
        name: format!("    above {}", group_digits(above)),
        amounts: Some(amounts(&prices)),
        rest: Default::default(),
    });
    std::iter::once(ordinary).chain(above).collect()
}

fn amounts(prices: &TokenPrices) -> [String; 4] {
    [prices.input, prices.cached, prices.cache_write, prices.output].map(price_text)
}

/// Lines as a table, with amounts aligned at their decimal points.
fn aligned(lines: &[PriceLine]) -> String {
    let width = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let digits = |text: &str| text.split_once('.').map_or(0, |(_, part)| part.len());
    let part_of = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.amounts.as_ref()?.get(column));
        cells.map(|cell| digits(cell)).max().unwrap_or(0)
    };
    let parts: Vec<usize> = (0..COLUMNS.len()).map(part_of).collect();
    let rows = lines.iter().map(|line| {
        let mut row = format!("{:<width$}", line.name);
        for (column, heading) in COLUMNS.iter().enumerate() {
            let cell = line.amounts.as_ref().and_then(|amounts| amounts.get(column));
            let part = parts.get(column).copied().unwrap_or(0);
            let cell = cell.map_or_else(
                || (*heading).to_owned(),
                |cell| format!("{cell}{}", " ".repeat(part - digits(cell))),
            );
            row.push_str(&format!("  {cell:>9}"));
        }
        let [batch, most, tiers] = &line.rest;
        row.push_str(&format!("  {batch:>5}  {most:>10}  {tiers}"));
        row.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn as_json(entry: &PriceEntry<'_>) -> Value {
    let mut row = json!({"provider": entry.provider, "model": entry.model, "tiers": entry.tiers});
    if let (Some(row), Value::Object(price)) = (row.as_object_mut(), price_json(&entry.priced)) {
        row.extend(price);
    }
    row
}

/// A price as JSON, in dollars per million tokens.
pub(super) fn price_json(priced: &ModelPrice<'_>) -> Value {
    let tokens = |prices: &TokenPrices| {
        json!({
            "input": dollars(prices.input),
            "cached": dollars(prices.cached),
            "cache_write": dollars(prices.cache_write),
            "output": dollars(prices.output),
            "reasoning": dollars(prices.reasoning),
        })
    };
    let mut price = tokens(&priced.price.tokens);
    price["above"] = priced.price.long.map_or(Value::Null, |(above, prices)| {
        let mut long = tokens(&prices);
        long["tokens"] = above.into();
        long
    });
    price["batch"] = priced.price.batch_percent.map(|percent| f64::from(percent) / 100.0).into();
    price["max_output"] = priced.max_output.into();
    price["as_of"] = Some(priced.as_of).filter(|day| !day.is_empty()).into();
    price["source"] = priced.source.name().into();
    price
}
