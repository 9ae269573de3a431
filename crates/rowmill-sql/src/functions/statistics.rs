//! Aggregates on numbers: how they spread, and what lies in their middle.

use rusqlite::functions::{Aggregate, Context};
use rusqlite::{Connection, Error, Result};

use super::{flags, number};

pub(super) fn register(connection: &Connection) -> Result<()> {
    let spreads: [(&[&str], Spread); 4] = [
        (&["stddev", "stddev_samp"], Spread { root: true, less: 1.0 }),
        (&["stddev_pop"], Spread { root: true, less: 0.0 }),
        (&["variance", "var_samp"], Spread { root: false, less: 1.0 }),
        (&["var_pop"], Spread { root: false, less: 0.0 }),
    ];
    for (names, spread) in spreads {
        for name in names {
            connection.create_aggregate_function(*name, 1, flags(), spread)?;
        }
    }
    connection.create_aggregate_function("median", 1, flags(), Quantile)?;
    connection.create_aggregate_function("quantile_cont", 2, flags(), Quantile)
}

/// Variance, or its root; divided by the count less one for samples.
#[derive(Clone, Copy)]
struct Spread {
    root: bool,
    less: f64,
}

/// Count, mean, and the sum of squared differences from it, kept so that large numbers do
/// not drown small differences.
#[derive(Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Aggregate<Moments, Option<f64>> for Spread {
    fn init(&self, _: &mut Context<'_>) -> Result<Moments> {
        Ok(Moments::default())
    }

    fn step(&self, context: &mut Context<'_>, moments: &mut Moments) -> Result<()> {
        if let Some(number) = number(context, 0) {
            moments.count += 1.0;
            let before = number - moments.mean;
            moments.mean += before / moments.count;
            moments.squares += before * (number - moments.mean);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, moments: Option<Moments>) -> Result<Option<f64>> {
        let moments = moments.unwrap_or_default();
        let count = moments.count - self.less;
        let variance = moments.squares / count;
        Ok((count > 0.0).then(|| if self.root { variance.sqrt() } else { variance }))
    }
}

/// The value below which a share of all values lies; the median where no share is given.
struct Quantile;

struct Numbers {
    numbers: Vec<f64>,
    share: f64,
}

impl Aggregate<Numbers, Option<f64>> for Quantile {
    fn init(&self, context: &mut Context<'_>) -> Result<Numbers> {
        let share = if context.len() > 1 { number(context, 1) } else { Some(0.5) };
        let share = share
            .filter(|share| (0.0..=1.0).contains(share))
            .ok_or_else(|| Error::UserFunctionError("a quantile lies between 0 and 1".into()))?;
        Ok(Numbers { numbers: Vec::new(), share })
    }

    fn step(&self, context: &mut Context<'_>, all: &mut Numbers) -> Result<()> {
        all.numbers.extend(number(context, 0));
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, all: Option<Numbers>) -> Result<Option<f64>> {
        let Some(mut all) = all else { return Ok(None) };
        all.numbers.sort_by(f64::total_cmp);
        let place = all.share * (all.numbers.len().saturating_sub(1)) as f64;
        let at = |place: f64| all.numbers.get(place as usize).copied();
        Ok(at(place.floor()).zip(at(place.ceil())).map(|(low, high)| low + (high - low) * place.fract()))
    }
}
