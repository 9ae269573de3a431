//! The crate graph and the licences of its dependencies.

use xtask::{
    Workspace, avoided_in_code, avoided_in_page, check_layers, check_licences, flags_in_texts,
    forbidden_lines, layer_violations, paths_in,
};

#[test]
fn crates_depend_on_each_other_only_in_the_directions_of_the_design() {
    if let Err(violation) = check_layers(&Workspace::here().unwrap()) {
        panic!("{violation}");
    }
}

#[test]
fn an_adapter_that_sees_another_is_named_and_a_test_dependency_is_not() {
    let mut crates = Workspace::here().unwrap().own_crates().unwrap();
    let of = |name: &str, crates: &[xtask::WorkspaceCrate]| {
        crates.iter().position(|own| own.name == name).unwrap()
    };
    let (data, cli) = (of("rowmill-data", &crates), of("rowmill-cli", &crates));
    let needed = crates[cli].dependencies.iter().find(|needed| needed.name == "rowmill").unwrap().clone();
    for (name, kind) in [("rowmill-models", None), ("rowmill-testkit", None), ("rowmill-engine", Some("dev"))]
    {
        let mut needed = needed.clone();
        needed.name = name.to_owned();
        needed.kind = kind.map(ToOwned::to_owned);
        crates[data].dependencies.push(needed);
    }
    let found = layer_violations(&crates);
    assert_eq!(
        found,
        [
            "`rowmill-data` must not depend on `rowmill-models`",
            "`rowmill-data` must not depend on `rowmill-testkit`",
        ]
    );
}

#[test]
fn a_new_crate_must_get_a_place_in_the_graph() {
    let mut crates = Workspace::here().unwrap().own_crates().unwrap();
    let mut stranger = crates[0].clone();
    stranger.name = "rowmill-stranger".to_owned();
    stranger.dependencies.clear();
    crates.push(stranger);
    assert_eq!(layer_violations(&crates), ["`rowmill-stranger` has no place in the graph"]);
}

#[test]
fn code_below_the_entry_points_that_looks_at_the_process_is_named_by_its_line() {
    let code = "use std::env;\n// env::var is fine in words\nlet home = env::var_os(\"HOME\");\n\
                #[cfg(test)]\nmod tests {\n    env::var(\"HOME\");\n}\n";
    assert_eq!(forbidden_lines("a.rs", code), ["`a.rs:3` has `env::var`"]);
    let code = "std::panic::set_hook(hook);\nlet all = std::env::split_paths(&path);\n";
    assert_eq!(forbidden_lines("b.rs", code), ["`b.rs:1` has `set_hook`"]);
}

#[test]
fn a_text_that_names_a_flag_is_found_and_a_comment_or_a_test_is_not() {
    let flags = ["resume", "max-cost"].map(str::to_owned).into();
    for (code, expected) in [
        (r#"hint("go on with `--resume`")"#, &["resume"][..]),
        (r#"["--max-cost", 'x', "a\"--resume=1\" b"]"#, &["max-cost", "resume"]),
        ("r#\"say \"--resume\" `rowmill run --max-cost 1`\"#", &["resume", "max-cost"]),
        ("let quote = '\"'; // `--resume`\nlet name: &'static str = \"--other --- --max-costs\";", &[]),
        ("#[cfg(test)]\nmod tests {\n\"--resume\"", &[]),
        ("let escaped = ('\\'', '\\\\', \"--resume\");", &["resume"]),
    ] {
        assert_eq!(flags_in_texts(code, &flags).unwrap(), expected, "{code}");
    }
}

#[test]
fn a_path_in_a_page_is_found_where_it_looks_like_one() {
    let page = "`limits/limiter.rs`, `rowmill-core/src/ports/` and `RowSource`, see [the ADR](docs/adr/0001-a.md): `a b.rs`";
    assert_eq!(paths_in(page), ["limits/limiter.rs", "rowmill-core/src/ports/"]);
}

#[test]
fn every_crate_is_under_an_allowed_licence() {
    if let Err(refused) = check_licences(&Workspace::here().unwrap()) {
        panic!("{refused}");
    }
}

#[test]
fn an_avoided_word_is_found_in_names_messages_files_and_pages() {
    let found = |name: &str, code: &str| avoided_in_code(name, code).unwrap();
    for code in [
        "struct AgentCast;",
        "fn open_stage() {}",
        "fn f() { let told = 1; }",
        "fn f() { g(\"the crew stops\") }",
    ] {
        assert_eq!(found("crates/a/src/a.rs", code).len(), 1, "{code}");
    }
    assert_eq!(
        found("crates/a/src/a.rs", "fn f() { let told = 1; }"),
        ["`told` in `crates/a/src/a.rs`: write “message, text; reported, distinguished” in place of “told”"]
    );
    assert_eq!(found("crates/a/src/turnstile.rs", "").len(), 1);
    assert_eq!(avoided_in_page("docs/a.md", "A row\nhas a voice.").len(), 1);
}

#[test]
fn an_avoided_word_may_be_used_where_it_is_the_ordinary_one() {
    let code = "fn calls_in_flight() -> CallInFlight { f(\"calls in flight, of course\") }";
    assert_eq!(avoided_in_code("crates/a/src/a.rs", code).unwrap(), Vec::<String>::new());
    assert_eq!(
        avoided_in_code("crates/rowmill-sql/src/a.rs", "struct CastMode;").unwrap(),
        Vec::<String>::new()
    );
    assert_eq!(
        avoided_in_code("crates/a/tests/a.rs", "fn f() { g(\"the crew\") }").unwrap(),
        Vec::<String>::new()
    );
    assert_eq!(avoided_in_page("docs/a.md", "forecast, broadcast"), Vec::<String>::new());
}
