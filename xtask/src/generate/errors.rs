//! `docs/errors.md`: every code and every error type.

use rowmill_cli::COMMAND_LINE_VOCABULARY;
use rowmill_types::{DiagnosticText, ProblemCode, RowErrorKind};

/// The text of the document.
pub(super) fn document() -> String {
    let mut out = String::from(
        "<!-- Made by `cargo xtask generate`; do not edit. -->\n\
         # Errors\n\n\
         There are two kinds of errors. A **problem** stops the command; it has a code whose meaning never\n\
         changes, and scripts can check the [exit code](exit-codes.md). A **failed row** is data: its envelope has\n\
         `\"ok\": false` and an error with a `type`, and the run continues.\n\n\
         ## Problems that stop a command\n",
    );
    for code in ProblemCode::ALL {
        entry(&mut out, code.code(), &code.description(), &code.advice());
    }
    out.push_str("\n## Error types of failed rows\n");
    for kind in RowErrorKind::ALL {
        entry(&mut out, kind.name(), &kind.description(), &kind.advice());
    }
    out
}

fn entry(out: &mut String, name: &str, what: &DiagnosticText, next: &DiagnosticText) {
    let (what, next) = (what.render(COMMAND_LINE_VOCABULARY), next.render(COMMAND_LINE_VOCABULARY));
    out.push_str(&format!("\n### {name}\n\n{what}\n\n*What to do:* {next}\n"));
}
