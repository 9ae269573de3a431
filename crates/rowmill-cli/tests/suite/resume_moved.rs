//! Resuming a run whose files were moved to another folder.

use std::fs;

use crate::faults_support::Home;
use rowmill_testkit::{Simulator, SimulatorScript};
use serde_json::Value;

const WITH_IDS: [&str; 2] = ["--id-field", "id"];
const SIDE_FILES: [&str; 4] = ["--error-output", "errors.jsonl", "--telemetry-output", "telemetry.jsonl"];

/// Rows of which the first one is rejected by the provider.
fn write_rows(home: &Home, count: usize) {
    let prompt = |number: usize| if number == 1 { "[[400]]".to_owned() } else { format!("row {number}") };
    let row = |number| format!("{{\"id\":\"r{number}\",\"p\":\"{}\"}}\n", prompt(number));
    home.write("in.jsonl", &(1..=count).map(row).collect::<String>());
}

/// The same files in another folder, and none left where they were.
fn moved(home: Home) -> Home {
    let other = Home::new();
    for entry in fs::read_dir(home.path("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        fs::rename(home.path(&name), other.path(&name)).unwrap();
    }
    drop(home);
    other
}

#[test]
fn a_folder_that_was_moved_after_a_kill_is_resumed_as_if_it_had_not_been() {
    for ids in [&[][..], &WITH_IDS] {
        let home = Home::new();
        write_rows(&home, 6);
        let args = [&SIDE_FILES[..], &["--parallel", "1"], ids].concat();
        let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(3));
        let running = home.run().on(&simulator).args(&args).start();
        simulator.wait_until_blocking(|stats| stats.requests == 4);
        running.kill();

        let home = moved(home);
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let resume = || home.run().on(&simulator).args(&args).args(&["--resume"]).ends_with(3);
        resume().resumed(2, 1, 1);
        assert_eq!(simulator.stats().requests, 4, "{ids:?}: rows 2 and 3 were paid for");
        let sent = |telemetry: &Value| telemetry["row_number"].as_u64().unwrap();
        let lines = home.json_lines("telemetry.jsonl");
        assert_eq!(lines.iter().map(sent).collect::<Vec<_>>(), [1, 2, 3, 1, 4, 5, 6], "{ids:?}");
        // It is at home in its new folder.
        resume().resumed(5, 1, 0);
        assert_eq!(simulator.stats().requests, 5, "{ids:?}");
    }
}

#[test]
fn an_input_at_another_path_is_the_same_one_only_if_its_content_is() {
    for ids in [&[][..], &WITH_IDS] {
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let home = Home::new();
        write_rows(&home, 3);
        let run = |input: &str, args: &[&str]| {
            home.run_with(&["-i", input, "-o", "out.jsonl"]).on(&simulator).args(ids).args(args)
        };
        run("in.jsonl", &[]).ends_with(3);
        fs::create_dir(home.path("new")).unwrap();
        fs::rename(home.path("in.jsonl"), home.path("new/in.jsonl")).unwrap();
        run("new/in.jsonl", &["--resume"]).ends_with(3).resumed(2, 1, 0);
        assert_eq!(simulator.stats().requests, 4, "{ids:?}");

        let rows = home.read("new/in.jsonl").replace("row 3", "row 4");
        home.write("other.jsonl", &rows);
        let refused = run("other.jsonl", &["--resume"]).ends_with(1);
        refused.says(&["error[RM1306]", "  input: `", "new/in.jsonl` -> `", "other.jsonl`\n"]);
        // Rows that were drawn by chance from the first input are not those of another path.
        let drawn = ["--resume", "--where", "random() < 2"];
        let drawn = run("in.jsonl", &drawn);
        fs::copy(home.path("new/in.jsonl"), home.path("in.jsonl")).unwrap();
        drawn.ends_with(1).says(&["error[RM1306]"]);
        assert_eq!(simulator.stats().requests, 4, "{ids:?}");
    }
}
