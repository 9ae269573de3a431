//! The one driver of runs. It names no adapter: everything outside comes
//! through the ports of `rowmill-core`.

mod arrivals;
mod drive;
mod feed;
mod plan;
mod publish;
mod stop;
mod work;

pub use drive::{RunEnd, StopCause, run};
pub use plan::{IdCheck, Plan, Sinks, Worker};
pub use stop::Stop;
