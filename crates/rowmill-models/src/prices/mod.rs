//! What models cost: a dated table as data, and what `rowmill.toml` adds to it.

mod config;
mod names;
mod table;
#[cfg(test)]
mod tests;

pub use config::{LongPriceConfig, PriceConfig};
pub use table::{PriceEntry, PriceSource, PriceTable, Priced};
