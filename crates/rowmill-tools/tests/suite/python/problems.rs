//! Problems with functions are reported before the first row, once.

use std::fs;
use std::time::Duration;

use rowmill_tools::{ProcessMoment, PythonLifecycleHook};
use rowmill_types::ProblemCode;

use crate::python::support::folder;

const CODE: &str = r#"
import functools
from typing import Callable

class Plain: pass

def many(*values): pass
def named(**values): pass
def strange(callback: Callable[[int], int]): pass
def plain(thing: list[Plain]): pass
def unknown(a: "Missing"): pass
def fine(code: int): pass
constant = 3
"#;

#[tokio::test]
async fn each_mistake_names_the_function_the_card_and_what_is_wrong() {
    let cases = [
        ("absent", "there is no `absent` in the file"),
        ("constant", "`constant` is not a function"),
        ("many", "it takes `*values`, but a model must know every argument; declare each of them"),
        ("named", "it takes `**values`"),
        (
            "strange",
            "argument `callback`: the type `typing.Callable[[int], int]` cannot be represented as JSON",
        ),
        ("plain", "argument `thing`: the type `Plain` cannot be represented as JSON"),
        (
            "unknown",
            "the types of its arguments cannot be determined: NameError: name 'Missing' is not defined",
        ),
    ];
    for (function, expected) in cases {
        let folder = folder(CODE, &[function]);
        let problem = folder.try_start().await.unwrap_err();
        let start = format!(
            "the function `{}` of `card.md` cannot be used: ",
            folder.settings.functions[0].entrypoint
        );
        assert!(problem.message.starts_with(&start), "{}", problem.message);
        assert!(problem.message.contains(expected), "{}", problem.message);
        assert_eq!(problem.code, ProblemCode::FunctionUnusable);
        assert!(problem.hint.is_some());
    }
}

#[tokio::test]
async fn all_functions_that_cannot_be_used_are_named_in_one_problem() {
    let folder = folder(CODE, &["many", "fine", "absent"]);
    let problem = folder.try_start().await.unwrap_err();
    assert!(problem.message.contains("tools.py:many` of"), "{}", problem.message);
    let last = format!("; also unusable: `{}`", folder.settings.functions[2].entrypoint);
    assert!(problem.message.ends_with(&last), "{}", problem.message);
}

#[tokio::test]
async fn a_file_that_cannot_be_imported_is_reported_with_the_place() {
    let cases = [
        (
            "import no_such_module\n",
            "ModuleNotFoundError: No module named 'no_such_module'",
            "import no_such_module",
        ),
        ("def f(:\n", "SyntaxError", "tools.py:1"),
        (
            "def deep():\n    return 1 / 0\nx = deep()\n",
            "ZeroDivisionError: division by zero",
            "tools.py:2: return 1 / 0",
        ),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3", "tools.py:2"),
    ];
    for (code, message, place) in cases {
        let problem = folder(code, &["f"]).try_start().await.unwrap_err();
        assert!(problem.message.contains(message), "{}", problem.message);
        assert!(problem.cause.as_deref().is_some_and(|cause| cause.contains(place)), "{:?}", problem.cause);
    }
}

#[tokio::test]
async fn a_missing_file_a_missing_python_and_a_missing_folder_are_reported() {
    let folder_without = folder("def f(): pass", &["f"]);
    fs::remove_file(folder_without.path.path().join("tools.py")).unwrap();
    let problem = folder_without.try_start().await.unwrap_err();
    assert!(problem.message.ends_with("there is no such file"), "{}", problem.message);

    let mut absent = folder("def f(): pass", &["f"]);
    absent.settings.interpreter = "no-such-python".into();
    let problem = absent.try_start().await.unwrap_err();
    assert_eq!(problem.message, "function tools and hooks need Python, but `no-such-python` was not found");
    assert!(problem.hint.unwrap().contains("ROWMILL_PYTHON"));

    let mut nowhere = folder("def f(): pass", &["f"]);
    nowhere.settings.folder = nowhere.path.path().join("nowhere");
    let problem = nowhere.try_start().await.unwrap_err();
    assert!(problem.message.starts_with("the folder for Python is missing"), "{}", problem.message);
}

#[tokio::test]
async fn imports_that_hang_or_end_the_process_are_reported() {
    let mut hanging = folder("import signal\nsignal.pause()\n", &["f"]);
    hanging.settings.start_timeout = Duration::from_millis(500);
    let problem = hanging.try_start().await.unwrap_err();
    assert_eq!(problem.message, "Python failed before the first row: its imports took longer than 0.5 s");

    let ending = folder("import os, sys\nprint('last words')\nsys.stdout.flush()\nos._exit(9)\n", &["f"]);
    let problem = ending.try_start().await.unwrap_err();
    assert!(problem.message.contains("(exit status: 9); its last output: last words"), "{}", problem.message);
}

#[tokio::test]
async fn code_needs_an_argument_that_takes_text() {
    let mut folder = folder(CODE, &["fine"]);
    folder.settings.functions[0].code_argument = Some("code".into());
    let problem = folder.try_start().await.unwrap_err();
    assert!(problem.message.contains("needs an argument `code` of the type `str`"), "{}", problem.message);
}

#[tokio::test]
async fn an_on_start_hook_that_fails_stops_the_run_before_it_begins() {
    let mut folder = folder("def begin(ctx): raise RuntimeError('no database')\ndef f(): pass", &["f"]);
    let entrypoint = folder.entrypoint("tools.py:begin");
    folder.settings.lifecycle =
        vec![PythonLifecycleHook { agent: "a".into(), moment: ProcessMoment::Start, entrypoint }];
    let problem = folder.try_start().await.unwrap_err();
    assert!(problem.message.contains("tools.py:begin` of `card.md` cannot be used"), "{}", problem.message);
    assert!(problem.message.contains("RuntimeError: no database"), "{}", problem.message);
}
