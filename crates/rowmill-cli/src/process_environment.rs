//! The environment that commands pass to the library: that of this process, read once.

use std::sync::OnceLock;

use rowmill::RunEnvironment;

/// The variables of this process; the program that extracts text is this executable.
pub(crate) fn process_environment() -> &'static RunEnvironment {
    static ENVIRONMENT: OnceLock<RunEnvironment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let environment = RunEnvironment::from_process();
        match std::env::current_exe() {
            Ok(program) => environment.with_text_extractor(program, vec!["extract-text".into()]),
            Err(_) => environment,
        }
    })
}
