//! Models that answer in this process, without a network.

mod echo;
mod make;
mod playback;
#[cfg(test)]
mod tests;

pub(crate) use make::build;
