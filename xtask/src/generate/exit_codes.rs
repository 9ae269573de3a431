//! `docs/exit-codes.md`: the exit codes of the process.

use rowmill_cli::COMMAND_LINE_VOCABULARY;
use rowmill_types::ExitCode;

/// The text of the document.
pub(super) fn document() -> String {
    let mut out = String::from(
        "<!-- Made by `cargo xtask generate`; do not edit. -->\n\
         # Exit codes\n\n\
         The same for every command.\n\n\
         | code | meaning |\n\
         |---:|---|\n",
    );
    for &code in ExitCode::ALL {
        out.push_str(&format!("| {} | {} |\n", code as u8, code.meaning().render(COMMAND_LINE_VOCABULARY)));
    }
    out.push_str("\nEach problem that stops a run has its own error code: see [errors](errors.md).\n");
    out
}
