//! The command `cargo xtask`.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::main()
}
