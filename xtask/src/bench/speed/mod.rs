//! The speed and the cost of rowmill, compared with `wrk`.

mod capture;
mod durable;
mod rows;
mod scenarios;
mod wrk;

pub(super) use scenarios::ALL;
pub(super) use wrk::version as yardstick;
