//! The command `cargo xtask`.

use std::process::ExitCode;

/// The program uses this allocator, so measurements should use it as well.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    xtask::main()
}
