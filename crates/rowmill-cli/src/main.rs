//! The command `rowmill`.

/// Records are made on one thread and freed on another. The system's allocator answers
/// that with an arena per thread, so memory creeps up with the number of rows; this one
/// gives such memory back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    rowmill_cli::main()
}
