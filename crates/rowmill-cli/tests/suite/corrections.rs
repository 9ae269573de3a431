//! What the summary advises to do about rows that have to be corrected, and that doing it is enough.

use crate::faults_support::{Home, assert_all_ok};
use rowmill_testkit::{Simulator, SimulatorScript};

const WITH_IDS: [&str; 2] = ["--id-field", "id"];
const PLAIN: [&str; 1] = ["--resume"];
const ACCEPTING: [&str; 2] = ["--resume", "--accept-changes"];

const GOOD: &str = "{\"id\":\"a\",\"p\":\"A\"}\n{\"id\":\"b\",\"p\":\"B\"}\n";
const ONE_BROKEN: &str = "{\"id\":\"a\",\"p\":\"A\"}\n{\"id\":\"b\",\"p\":\n";
const ONE_WITHOUT_ID: &str = "{\"id\":\"a\",\"p\":\"A\"}\n{\"p\":\"B\"}\n";
const ONE_WITHOUT_FIELD: &str = "{\"id\":\"a\",\"p\":\"A\"}\n{\"id\":\"b\"}\n";

/// A run whose input is wrong, what it advises, and the correction.
struct Case {
    input: &'static str,
    ids: &'static [&'static str],
    advice: &'static str,
    /// The input and the template that are right, and the flags of the resume.
    right: (&'static str, &'static str, &'static [&'static str]),
}

const CASES: [Case; 6] = [
    Case {
        input: ONE_BROKEN,
        ids: &[],
        advice: "fix the input, then run the same command with `--resume --accept-changes` to retry",
        right: (GOOD, "{{p}}", &ACCEPTING),
    },
    Case {
        input: ONE_BROKEN,
        ids: &WITH_IDS,
        advice: "fix the input, then run the same command with `--resume` to retry",
        right: (GOOD, "{{p}}", &PLAIN),
    },
    Case {
        input: ONE_WITHOUT_ID,
        ids: &WITH_IDS,
        advice: "fix the input, then run the same command with `--resume` to retry",
        right: (GOOD, "{{p}}", &PLAIN),
    },
    Case {
        input: ONE_WITHOUT_FIELD,
        ids: &[],
        advice: "fix the input or the template, then run the same command with `--resume --accept-changes` to retry",
        right: (ONE_WITHOUT_FIELD, "{{id}}", &ACCEPTING),
    },
    Case {
        input: ONE_WITHOUT_FIELD,
        ids: &WITH_IDS,
        advice: "with `--resume` (with `--accept-changes` if the template changes) to retry",
        right: (GOOD, "{{p}}", &PLAIN),
    },
    Case {
        input: ONE_WITHOUT_FIELD,
        ids: &WITH_IDS,
        advice: "with `--resume` (with `--accept-changes` if the template changes) to retry",
        right: (ONE_WITHOUT_FIELD, "{{id}}", &ACCEPTING),
    },
];

#[test]
fn accepting_changes_is_advised_only_for_corrections_that_a_resume_takes_for_changes() {
    for Case { input, ids, advice, right } in CASES {
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let home = Home::new();
        let run = |rows: &str, template: &str, flags: &[&str]| {
            home.write("in.jsonl", rows);
            let io = ["-i", "in.jsonl", "-o", "out.jsonl", "-p", template];
            home.run_with(&io).on(&simulator).args(ids).args(flags)
        };
        let ended = run(input, "{{p}}", &[]).end();
        assert!(ended.err.contains("next:   fix the input"), "{input}: {}", ended.err);
        ended.says(&[advice, "rows that are ok are kept"]);
        let (rows, template, flags) = right;
        if flags.len() > PLAIN.len() {
            run(rows, template, &PLAIN).ends_with(1).says(&["error[RM1306]"]);
        }
        run(rows, template, flags).ends_with(0);
        assert_all_ok(&home.envelopes(), 2);
        assert_eq!(simulator.stats().requests, 2, "{input}: no row is asked twice");
    }
}

#[test]
fn a_file_that_goes_with_a_row_is_corrected_without_accepting_changes() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let home = Home::new();
    home.write("in.jsonl", "{\"p\":\"A\",\"file\":\"a.txt\"}\n{\"p\":\"B\",\"file\":\"b.txt\"}\n");
    home.write("a.txt", "Hello");
    let run = |flags: &[&str]| {
        home.run().on(&simulator).args(&["--attach", "file", "--extract", "text"]).args(flags)
    };
    run(&[]).ends_with(3).says(&["next:   run the same command with `--resume` to retry the failed rows\n"]);
    home.write("b.txt", "Bye");
    run(&PLAIN).ends_with(0);
    assert_all_ok(&home.envelopes(), 2);
}
