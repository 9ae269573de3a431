//! Model prices: a dated built-in table, extended by `rowmill.toml`.

mod config;
mod names;
mod table;
#[cfg(test)]
mod tests;

pub use config::{LongPriceConfig, PriceConfig};
pub use table::{ModelPrice, PriceEntry, PriceSource, PriceTable};
