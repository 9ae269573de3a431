//! The command `rowmill`.

/// Records are allocated on one thread and freed on another. The system's allocator reacts to that with
/// an arena per thread, so memory grows with the number of rows; this one returns such memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    rowmill_cli::main()
}
