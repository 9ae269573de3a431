//! Models that answer in this process, without a network.

mod build;
mod passthrough;
mod playback;
mod simulated;
#[cfg(test)]
mod tests;

pub(crate) use build::build_builtin_model;
