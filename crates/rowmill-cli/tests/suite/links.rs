//! Outputs behind links whose targets do not exist yet.

use std::fs;
use std::os::unix::fs::symlink;

use crate::paths::{ASK, refused};
use crate::support::Place;

/// A folder with rows, and links with these names into a missing folder.
fn with_links(names: &[&str]) -> Place {
    let place = Place::new();
    place.write_rows(2);
    for name in names {
        symlink(format!("elsewhere/{name}"), place.path(name)).unwrap();
    }
    place
}

#[test]
fn every_output_behind_a_link_is_made_where_the_link_leads() {
    let names = ["out.jsonl", "out.csv", "out.parquet", "errors", "telemetry", "summary", "traces", "parts"];
    let place = with_links(&names);
    for output in ["out.jsonl", "out.csv", "out.parquet"] {
        let sides = ["--error-output", "errors", "--telemetry-output", "telemetry"];
        let more = ["--summary-output", "summary", "--export-traces", "traces"];
        // Repeatedly, because the existing files are replaced.
        for existing in [&[][..], &["--overwrite"], &["--resume"]] {
            let io = ["-i", "rows.jsonl", "-o", output, "-p", "{{n}}"];
            place.run(&[&io[..], &sides, &more, existing, ASK].concat()).ok();
        }
        fs::remove_dir_all(place.path("elsewhere/traces")).unwrap();
    }
    let split = ["--output-dir", "parts", "--split-by", "ok", "--output-format", "csv"];
    place.run(&[&["-i", "rows.jsonl"], &split[..], ASK].concat()).ok();
    place.rowmill(&["export", "out.jsonl", "-o", "out.csv", "--overwrite"]).ok();
    for name in names {
        assert!(place.path(name).is_symlink(), "{name}");
        assert!(name == "traces" || place.exists(&format!("elsewhere/{name}")), "{name}");
    }
    assert_eq!(place.json("out.jsonl").len(), 2);
    assert_eq!(place.read("out.csv").lines().count(), 3);
}

#[test]
fn a_run_that_is_refused_leaves_links_as_they_were() {
    let place = with_links(&["out.jsonl", "errors"]);
    place.write("rows.jsonl", "{\"id\":\"a\"}\n{\"id\":\"a\"}\n");
    let flags = ["-i", "rows.jsonl", "-o", "out.jsonl", "--error-output", "errors", "--id-field", "id"];
    refused(&place, &flags, &["error[RM1005]"]);
    assert!(place.path("out.jsonl").is_symlink() && place.path("errors").is_symlink());
}

#[test]
fn links_that_lead_in_a_circle_are_refused_before_anything_is_sent() {
    let place = with_links(&[]);
    symlink("circle.csv", place.path("circle.csv")).unwrap();
    for flags in [&["-o", "circle.csv"][..], &["-o", "out.jsonl", "--error-output", "circle.csv"]] {
        let message = ["error[RM1302]: `circle.csv`", "is a symbolic link loop"];
        refused(&place, &[&["-i", "rows.jsonl"], flags].concat(), &message);
    }
}
