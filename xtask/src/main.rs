//! The command `cargo xtask`.

use std::process::ExitCode;

/// What is measured here should be what the program does, which has this allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    xtask::main()
}
