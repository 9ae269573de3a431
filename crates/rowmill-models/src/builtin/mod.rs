//! Models that answer in this process, without a network.

mod echo;
mod make;
mod playback;
mod simulated;
#[cfg(test)]
mod tests;

pub(crate) use make::build;
