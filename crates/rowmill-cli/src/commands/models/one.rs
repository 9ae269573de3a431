//! Everything that is known about one model.

use rowmill::{
    CountAccuracy, ModelPrice, ModelSettingKey, ModelString, Problem, TokenPrices, provider_catalogue,
    token_counter,
};
use serde_json::{Value, json};

use super::prices::{price_json, price_origin, price_text, pricing_hint};
use super::providers::{key_text, provider_json};
use super::{CommandOutput, ModelCatalogue};
use crate::number_text::group_digits;
use crate::process_environment::process_environment;

/// Describes the model that a model string names.
pub(super) fn model(known: &ModelCatalogue, text: &str) -> Result<CommandOutput, Problem> {
    let model = ModelString::parse(text, &known.providers)?;
    let tier = model.settings.value(ModelSettingKey::ServiceTier).map(ToString::to_string);
    let priced = known.prices.find(&model.provider, &model.model, tier.as_deref());
    let accuracy = token_counter(&model.provider, &model.model).accuracy();
    let entries = provider_catalogue(&known.providers, &|name| process_environment().provider_variable(name));
    let provider = entries.iter().find(|entry| entry.provider == model.provider);

    let whole = known.providers.aliases().expand(text)?;
    let mut lines = vec![if whole == text.trim() { model.to_string() } else { format!("{model} ({text})") }];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<11} {value}"));
    if let Some(entry) = provider {
        let place = entry.base_url.as_ref().map_or_else(String::new, |url| format!(", at {url}"));
        line("provider", format!("{}{place}", entry.about));
        line("key", key_text(entry).trim_start_matches("key ").to_owned());
    }
    for (index, text) in price_lines(&model, tier.as_deref(), priced.as_ref()).into_iter().enumerate() {
        line(if index == 0 { "price" } else { "" }, text);
    }
    if let Some(most) = priced.and_then(|priced| priced.max_output) {
        line("max output", format!("{} tokens", group_digits(most)));
    }
    line("tokenizer", accuracy_text(accuracy));
    let (tokenizer, error) = match accuracy {
        CountAccuracy::Exact { name } => (Some(name), None),
        CountAccuracy::Estimate { percent } => (None, Some(percent)),
    };
    let json = json!({
        "model": model.to_string(),
        "provider": provider.map_or(Value::Null, provider_json),
        "price": priced.as_ref().map_or(Value::Null, price_json),
        "tokenizer": tokenizer,
        "token_error_percent": error,
    });
    Ok(CommandOutput { text: lines.join("\n"), json })
}

fn accuracy_text(accuracy: CountAccuracy) -> String {
    match accuracy {
        CountAccuracy::Exact { name } => format!("{name}, exact"),
        CountAccuracy::Estimate { percent } => {
            format!("none built in; token counts are estimates, ± {percent} %")
        }
    }
}

fn price_lines(model: &ModelString, tier: Option<&str>, priced: Option<&ModelPrice<'_>>) -> Vec<String> {
    let tier = tier.map_or_else(String::new, |tier| format!(" in the service tier `{tier}`"));
    let Some(priced) = priced else {
        let how = pricing_hint(&model.provider, &model.model);
        let mut lines = vec![format!("unknown{tier}. To set one, add to rowmill.toml:")];
        lines.extend(how.lines().map(str::to_owned));
        return lines;
    };
    let price = &priced.price;
    if price.tokens == TokenPrices::default() && price.long.is_none() {
        return vec!["free".to_owned()];
    }
    let mut lines =
        vec![format!("{} per million tokens{tier}, {}", tokens_text(&price.tokens), price_origin(priced))];
    if let Some((above, prices)) = &price.long {
        lines.push(format!("above {} prompt tokens: {}", group_digits(*above), tokens_text(prices)));
    }
    if let Some(percent) = price.batch_percent {
        lines.push(format!("batch API: {percent} % of that"));
    }
    lines
}

fn tokens_text(prices: &TokenPrices) -> String {
    let mut parts = vec![format!("${} input", price_text(prices.input))];
    let optional = [
        ("cached", prices.cached, prices.input),
        ("cache write", prices.cache_write, prices.input),
        ("output", prices.output, rowmill::Money::MAX),
        ("reasoning", prices.reasoning, prices.output),
    ];
    for (name, price, _) in optional.into_iter().filter(|(_, price, same)| price != same) {
        parts.push(format!("${} {name}", price_text(price)));
    }
    parts.join(", ")
}
