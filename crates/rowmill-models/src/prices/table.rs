//! The price table: the rows of `rowmill.toml`, then the built-in rows.

use std::collections::BTreeMap;

use rowmill_core::cost::{Price, TokenPrices};
use rowmill_types::{Problem, ProblemCode};
use serde::Deserialize;

use super::config::{PriceConfig, PriceRow, scale_price};
use super::names;
use crate::nearest::nearest_names;
use crate::provider_table::is_builtin;

/// The built-in rows.
const BUILT_IN: &str = include_str!("../../prices.toml");

/// Stands for every model of a provider in a key.
const ALL: &str = "*";

/// The prices of models.
///
/// ```
/// # use {rowmill_models::PriceTable, rowmill_types::TokenUsage, std::collections::BTreeMap};
/// let table = PriceTable::with_config(&BTreeMap::new())?;
/// let priced = table.find("responses", "gpt-4o-2024-08-06", None).unwrap();
/// let usage = TokenUsage { input: 1_000, output: 100, ..TokenUsage::default() };
/// assert_eq!(priced.price.cost(&usage).to_string(), "$0.003500");
/// # Ok::<(), rowmill_types::Problem>(())
/// ```
#[derive(Debug, Clone)]
pub struct PriceTable {
    vendors: BTreeMap<String, VendorPrices>,
    user: BTreeMap<(String, String), PriceRow>,
}

/// Where a price comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceSource {
    /// The table that is compiled into the program, with its date.
    BuiltIn,
    /// `rowmill.toml`.
    Config,
}

impl PriceSource {
    /// The name of the source.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built in",
            Self::Config => "rowmill.toml",
        }
    }
}

/// The price of a model and what else is known about its cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPrice<'a> {
    /// The price in the service tier that was asked for.
    pub price: Price,
    /// The maximum tokens of one answer, if known.
    pub max_output: Option<u64>,
    /// The date of the price; empty if there is none, as for prices of `rowmill.toml`.
    pub as_of: &'a str,
    /// Where the price comes from.
    pub source: PriceSource,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceEntry<'a> {
    /// The provider.
    pub provider: &'a str,
    /// The model; `*` stands for all models of the provider.
    pub model: &'a str,
    /// The price of a standard call and further facts.
    pub priced: ModelPrice<'a>,
    /// The factors of service tiers.
    pub tiers: &'a BTreeMap<String, f64>,
}

impl PriceTable {
    /// The built-in table with the additions and changes of `[prices]` in `rowmill.toml`.
    ///
    /// # Errors
    ///
    /// A key is not `provider.model`, or a price is negative or not a number.
    pub fn with_config(user: &BTreeMap<String, PriceConfig>) -> Result<Self, Problem> {
        let files: BTreeMap<String, VendorPriceFile> = toml::from_str(BUILT_IN).map_err(|error| {
            Problem::new(ProblemCode::Internal, "the built-in price table cannot be read").cause(error)
        })?;
        let mut vendors = BTreeMap::new();
        for (name, file) in files {
            vendors.insert(name.clone(), VendorPrices::read(&name, file)?);
        }
        let rows = user.iter().map(|(key, config)| Ok((split(key)?, PriceRow::read(key, config)?)));
        Ok(Self { vendors, user: rows.collect::<Result<_, Problem>>()? })
    }

    /// The price of a model in a service tier; `None` if it is not known.
    ///
    /// `rowmill.toml` takes precedence; if it does not give the maximum length of an answer, the built-in
    /// table does. A tier that the row does not name costs the same as a standard call, unless the vendor
    /// charges more for that tier on other models: then the price is not known.
    #[must_use]
    pub fn find(&self, provider: &str, model: &str, service_tier: Option<&str>) -> Option<ModelPrice<'_>> {
        let provider = names::provider(provider);
        let tier = service_tier.map(|tier| if tier == "fast" { "priority" } else { tier });
        if let Some(row) = self.configured(provider, model) {
            let factor = tier.and_then(|tier| row.tiers.get(tier)).copied();
            let priced = row.priced("", PriceSource::Config, factor.unwrap_or(1.0));
            return Some(self.with_known_length(priced, provider, model));
        }
        if is_builtin(provider) {
            return Some(FREE);
        }
        let (vendor, row) = self.built_in(provider, model)?;
        let mut priced = row.priced(&vendor.as_of, PriceSource::BuiltIn, vendor.factor(row, tier)?);
        if provider == "openrouter" {
            priced.price.batch_percent = None;
        }
        Some(priced)
    }

    /// All rows, those of `rowmill.toml` first, without the built-in rows that they replace.
    pub fn entries(&self) -> impl Iterator<Item = PriceEntry<'_>> {
        let user = self.user.iter().map(|((provider, model), row)| {
            let entry = row.entry((provider.as_str(), model.as_str()), "", PriceSource::Config);
            PriceEntry { priced: self.with_known_length(entry.priced, provider, model), ..entry }
        });
        let built_in = self.vendors.iter().flat_map(|(provider, vendor)| {
            vendor.models.iter().map(move |(model, row)| {
                row.entry((provider.as_str(), model.as_str()), &vendor.as_of, PriceSource::BuiltIn)
            })
        });
        user.chain(built_in.filter(|entry| self.configured(entry.provider, entry.model).is_none()))
    }

    /// The price rows for the models of a provider.
    pub fn entries_of(&self, provider: &str) -> impl Iterator<Item = PriceEntry<'_>> {
        let provider = names::provider(provider).to_owned();
        let vendor = names::vendor(&provider, "").map(|(vendor, _)| vendor.to_owned());
        self.entries().filter(move |entry| {
            entry.provider == provider
                || names::peers(&provider).contains(&entry.provider)
                || (entry.priced.source == PriceSource::BuiltIn && Some(entry.provider) == vendor.as_deref())
        })
    }

    /// Similar names of a provider's models for a name without a price. Providers release models before this
    /// table lists them, so the name may well be correct.
    #[must_use]
    pub fn similar_models(&self, provider: &str, model: &str) -> Vec<&str> {
        let names: Vec<&str> = self.entries_of(provider).map(|entry| entry.model).collect();
        nearest_names(model, &names)
    }

    /// The built-in row for a model, and its vendor.
    fn built_in(&self, provider: &str, model: &str) -> Option<(&VendorPrices, &PriceRow)> {
        let (vendor, model) = names::vendor(provider, model)?;
        let vendor = self.vendors.get(vendor)?;
        let rows = vendor.models.iter().filter(|(name, _)| names::covers(name, &model));
        rows.max_by_key(|(name, _)| name.len()).map(|(_, row)| (vendor, row))
    }

    /// A price of `rowmill.toml`, with the maximum answer length of the built-in table if it gives none.
    fn with_known_length<'a>(&self, priced: ModelPrice<'a>, provider: &str, model: &str) -> ModelPrice<'a> {
        let known = || self.built_in(provider, model).and_then(|(_, row)| row.max_output);
        ModelPrice { max_output: priced.max_output.or_else(known), ..priced }
    }

    /// The row of `rowmill.toml` for a model: its own, or the one for all models of the provider.
    fn configured(&self, provider: &str, model: &str) -> Option<&PriceRow> {
        let mut places = vec![provider];
        places.extend(names::peers(provider).iter().filter(|peer| **peer != provider));
        let rows_of = |place: &str| {
            let place = place.to_owned();
            self.user.iter().filter(move |((owner, _), _)| *owner == place)
        };
        let own = places.iter().find_map(|place| {
            let rows = rows_of(place).filter(|((_, name), _)| names::covers(name, model));
            rows.max_by_key(|((_, name), _)| name.len())
        });
        let row =
            own.or_else(|| places.iter().find_map(|place| rows_of(place).find(|((_, name), _)| name == ALL)));
        row.map(|(_, row)| row)
    }
}

/// The price of models that answer in this process.
const FREE: ModelPrice<'static> = ModelPrice {
    price: Price {
        tokens: {
            let nothing = rowmill_types::Money::ZERO;
            TokenPrices {
                input: nothing,
                cached: nothing,
                cache_write: nothing,
                output: nothing,
                reasoning: nothing,
            }
        },
        long: None,
        batch_percent: None,
    },
    max_output: None,
    as_of: "",
    source: PriceSource::BuiltIn,
};

/// A vendor in the built-in table, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VendorPriceFile {
    as_of: String,
    models: BTreeMap<String, PriceConfig>,
}

/// A vendor in the built-in table.
#[derive(Debug, Clone)]
struct VendorPrices {
    as_of: String,
    models: BTreeMap<String, PriceRow>,
}

impl VendorPrices {
    fn read(name: &str, file: VendorPriceFile) -> Result<Self, Problem> {
        let rows = file.models.into_iter().map(|(model, config)| {
            let row = PriceRow::read(&format!("{name}.{model}"), &config)?;
            Ok((model, row))
        });
        Ok(Self { as_of: file.as_of, models: rows.collect::<Result<_, Problem>>()? })
    }

    /// The factor of a tier; `None` if the tier is more expensive and its price is not known.
    fn factor(&self, row: &PriceRow, tier: Option<&str>) -> Option<f64> {
        let Some(tier) = tier else { return Some(1.0) };
        if let Some(factor) = row.tiers.get(tier) {
            return Some(*factor);
        }
        let dearer = |row: &PriceRow| row.tiers.get(tier).is_some_and(|factor| *factor > 1.0);
        (!self.models.values().any(dearer)).then_some(1.0)
    }
}

impl PriceRow {
    fn priced<'a>(&self, as_of: &'a str, source: PriceSource, factor: f64) -> ModelPrice<'a> {
        ModelPrice { price: scale_price(self.price, factor), max_output: self.max_output, as_of, source }
    }

    fn entry<'a>(
        &'a self,
        (provider, model): (&'a str, &'a str),
        as_of: &'a str,
        source: PriceSource,
    ) -> PriceEntry<'a> {
        PriceEntry { provider, model, priced: self.priced(as_of, source, 1.0), tiers: &self.tiers }
    }
}

/// Provider and model of a key; a built-in model is its own provider.
fn split(key: &str) -> Result<(String, String), Problem> {
    let parts = key.split_once('.').filter(|(provider, model)| !provider.is_empty() && !model.is_empty());
    match parts {
        Some((provider, model)) if !model.contains('?') => {
            Ok((names::provider(provider).to_owned(), model.to_owned()))
        }
        None if is_builtin(key) => Ok((key.to_owned(), ALL.to_owned())),
        _ => {
            let message = format!("`[prices.\"{key}\"]` does not name a provider and a model");
            Err(Problem::new(ProblemCode::InvalidConfig, message).hint(
                "write `[prices.\"provider.model\"]`, or `[prices.\"provider.*\"]` for all its models, \
                 without settings",
            ))
        }
    }
}
