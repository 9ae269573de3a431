//! The engine that carries out runs. It knows no adapter: everything outside is reached through the ports of
//! `rowmill-core`.

mod account;
mod act;
mod arrivals;
mod aside;
mod ask;
mod asking;
mod batch_queue;
mod call_report;
mod checks;
mod commit;
mod crew;
mod cut;
mod drive;
mod feed;
mod finishing;
mod flight;
mod gate;
mod heads;
mod intake;
mod keys;
mod lane;
mod limits;
mod memory;
mod panics;
mod plan;
mod policy;
mod prepared;
mod publish;
mod replay;
mod row;
mod run;
mod stop;
mod tries;
mod wake;
mod walk;
mod work;

pub use asking::OutputCaps;
pub use gate::Gate;
pub use lane::Lane;
pub use limits::{LaneKey, LaneSettings, Limits, OnQuota};
pub use memory::ROW_MEMORY;
pub use plan::{
    Answers, Casting, Crew, Crews, ErrorRate, IdCheck, Plan, ReadingThread, Sinks, StopRules, Tools, Voice,
    Worker,
};
pub use policy::StopCause;
pub use run::{RunEnd, run};
pub use stop::Stop;
pub use work::said;
