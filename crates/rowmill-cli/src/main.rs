//! The command `rowmill`.

fn main() -> std::process::ExitCode {
    rowmill_cli::main()
}
