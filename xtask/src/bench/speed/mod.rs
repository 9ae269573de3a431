//! How fast rowmill is and what it costs, beside `wrk`.

mod capture;
mod durable;
mod rows;
mod scenarios;
mod wrk;

pub(super) use scenarios::ALL;
pub(super) use wrk::version as yardstick;
