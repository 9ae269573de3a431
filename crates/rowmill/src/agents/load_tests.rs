//! Loads cards from real files and from a real server.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use rowmill_cards::CardType;
use rowmill_core::variables::InstructionVariables;
use rowmill_data::{FetchSettings, Fetcher};
use rowmill_http::HttpClient;
use rowmill_types::{MessageRole, Problem};

use super::{CardFlags, LoadedCards, load_card_set};

fn nothing(_: &str) -> Option<String> {
    None
}

fn load_with(sources: &[String], agent: Option<&str>, variables: &[&str]) -> Result<LoadedCards, Problem> {
    let pairs: Vec<_> = variables.iter().map(ToString::to_string).collect();
    let variables = InstructionVariables::from_settings(None, &[], &pairs).unwrap();
    let flags = CardFlags { sources, agent, variables: &variables };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (settings, http) = (FetchSettings::from_environment(&nothing), HttpClient::new(&nothing));
        load_card_set(&flags, &nothing, &Fetcher { settings: &settings, http: &http, on_event: &|_| {} })
            .await
    })
}

/// A folder with files, and the value of the flag that names it.
fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, [String; 1]) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let source = folder.path().to_string_lossy().into_owned();
    (folder, [source])
}

fn names(loaded: &LoadedCards) -> Vec<&str> {
    loaded.set.cards().iter().map(|card| card.name.as_str()).collect()
}

fn instruction<'a>(loaded: &'a LoadedCards, name: &str) -> &'a str {
    loaded.set.card(name).unwrap().instruction.as_deref().unwrap()
}

#[test]
fn every_example_loads_and_can_be_the_worker_unless_it_is_for_others() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/cards");
    let sources = [folder.to_owned()];
    let all = load_with(&sources, Some("sorter"), &[]).unwrap();
    let files = fs::read_dir(folder).unwrap().filter_map(Result::ok);
    let cards = files.filter(|file| {
        let name = file.file_name().into_string().unwrap();
        name.ends_with(".yaml") || (name.ends_with(".md") && name != "README.md")
    });
    assert_eq!(all.set.cards().len(), cards.count());
    for card in all.set.cards() {
        match load_with(&sources, Some(&card.name), &[]) {
            Ok(loaded) => assert!(loaded.ignored.is_empty(), "{}: {:?}", card.name, loaded.ignored),
            Err(problem) => assert!(card.tool_only, "{}: {problem}", card.name),
        }
    }
    for card_type in CardType::ALL {
        assert!(all.set.cards().iter().any(|card| card.kind.card_type() == card_type), "{card_type}");
    }
}

#[test]
fn a_folder_gives_its_cards_in_order_and_no_other_pages() {
    let (_kept, sources) = folder(&[
        ("b.yml", "tool_only: true"),
        ("a.MD", "---\nagents: [b]\n---\nHello"),
        ("readme.md", "# To be read"),
        ("notes.txt", "x"),
        ("inner/c.yaml", "name: c"),
    ]);
    let loaded = load_with(&sources, None, &[]).unwrap();
    assert_eq!((names(&loaded), loaded.worker.as_str()), (vec!["a", "b"], "a"));
}

#[test]
fn a_single_page_without_front_matter_is_no_card() {
    let (kept, _) = folder(&[("readme.md", "# To be read"), ("SKILL.md", "---\nname: s\n---\n")]);
    let message = |name: &str| {
        let path = kept.path().join(name).to_string_lossy().into_owned();
        let problem = load_with(std::slice::from_ref(&path), None, &[]).unwrap_err();
        problem.message.replace(&path, "PATH")
    };
    assert_eq!(message("readme.md"), "`PATH`: there is no front matter");
    assert_eq!(message("SKILL.md"), "`PATH`: `SKILL.md` describes a skill, not an agent");
    assert_eq!(message("none.md"), "file not found for `agent_card`: `PATH`");
    let (_kept, sources) = folder(&[("readme.md", "# To be read")]);
    let problem = load_with(&sources, None, &[]).unwrap_err();
    assert_eq!(problem.message, format!("there is no agent card in `{}`", sources[0]));
}

#[test]
fn several_sources_make_one_set_and_a_file_counts_once() {
    let (kept, [all]) = folder(&[("a.yaml", "agents: [b]"), ("b.yaml", "name: b\ntool_only: true")]);
    let one = format!("file://{}", kept.path().join("a.yaml").display());
    let (other, [_]) = folder(&[("b.yaml", "name: b")]);
    let loaded = load_with(&[one, all.clone()], None, &[]).unwrap();
    assert_eq!((names(&loaded), loaded.worker.as_str()), (vec!["a", "b"], "a"));
    let second = other.path().join("b.yaml").to_string_lossy().into_owned();
    let problem = load_with(&[all.clone(), second.clone()], None, &[]).unwrap_err();
    let first = Path::new(&all).join("b.yaml");
    assert_eq!(
        problem.message,
        format!("two agent cards have the name `b`: `{}` and `{second}`", first.display())
    );
}

#[test]
fn what_a_card_names_is_brought_from_its_folder() {
    let (kept, sources) = folder(&[
        (
            "a.md",
            "---\nmessages: [m/1.txt, m/2.json]\nfunction_tools: t.py:f\nskills: s\ncwd: m\nvariables: {tone: dry}\n\
             use_history: true\n---\n{{file:m/style.txt}}{{file_silent:none.txt}} {{tone}} {{lang}}",
        ),
        ("m/1.txt", "---USER\ncat\n---ASSISTANT\nanimal"),
        ("m/2.json", r#"{"messages":[{"role":"user","content":"oak"}]}"#),
        ("m/style.txt", "Be {{tone}}."),
        ("t.py", "def f(): pass"),
        ("s/SKILL.md", "---\nname: s\n---\n"),
    ]);
    let loaded = load_with(&sources, None, &["lang=en", "other=1"]).unwrap();
    let card = loaded.set.card("a").unwrap();
    assert_eq!(instruction(&loaded, "a"), "Be dry. dry en");
    let history: Vec<_> = card.history.iter().map(|message| (message.role, message.text.as_str())).collect();
    assert_eq!(
        history,
        [(MessageRole::User, "cat"), (MessageRole::Assistant, "animal"), (MessageRole::User, "oak")]
    );
    assert_eq!(card.skills, [kept.path().join("s")]);
    assert_eq!(card.function_tools[0].entrypoint.file, kept.path().join("t.py"));
    assert_eq!(card.cwd, Some(kept.path().join("m")));
    assert_eq!(loaded.unused_variables, ["other"]);
    assert_eq!(loaded.ignored, [("a".to_owned(), "use_history".to_owned())]);
}

#[test]
fn what_is_not_there_is_reported_before_the_first_row() {
    for (card, message) in [
        (
            "function_tools: t.py:f",
            "`a.yaml`, line 1: `function_tools` names a file that does not exist: `t.py`",
        ),
        (
            "tool_hooks: {after_tool_call: 't.py:f'}",
            "`a.yaml`, line 1: `tool_hooks` names a file that does not exist: `t.py`",
        ),
        (
            "lifecycle_hooks: {on_start: 't.py:f'}",
            "`a.yaml`, line 1: `lifecycle_hooks` names a file that does not exist: `t.py`",
        ),
        ("skills: [s]", "`a.yaml`, line 1: `skills` names a folder that does not exist: `s`"),
        ("cwd: s", "`a.yaml`, line 1: `cwd` names a folder that does not exist: `s`"),
        ("messages: m.txt", "`a.yaml`, line 1: file not found for `messages`: `m.txt`"),
        ("instruction: '{{file:m.txt}}'", "`a.yaml`, line 1: file not found for `{{file:…}}`: `m.txt`"),
    ] {
        let (kept, sources) = folder(&[("a.yaml", card)]);
        let problem = load_with(&sources, None, &[]).unwrap_err();
        let shown = problem.message.replace(&format!("{}/", kept.path().display()), "");
        assert_eq!(shown, message);
    }
}

#[test]
fn all_that_is_wrong_with_a_folder_of_cards_is_reported_at_once() {
    let (kept, sources) = folder(&[
        ("a.yaml", "modle: m\nshel: true"),
        ("b.md", "---\nagents: [c]\nskills: [s]\n---\n{{file:none.md}} {{env}}"),
        ("c.yaml", "tool_only: true\ncwd: nowhere"),
    ]);
    let reported = |agent: Option<&str>| {
        let problem = load_with(&sources, agent, &[]).unwrap_err();
        problem.message.replace(&format!("{}/", kept.path().display()), "")
    };
    assert_eq!(
        reported(Some("b")),
        "the agent cards have 2 problems:\n  `a.yaml`, line 1: unknown field `modle`\n    help: did you mean \
         `model`?\n  `a.yaml`, line 2: unknown field `shel`\n    help: did you mean `shell`?"
    );
    fs::write(kept.path().join("a.yaml"), "tool_only: true").unwrap();
    assert_eq!(
        reported(None),
        "the agent cards have 4 problems:\n  `b.md`, line 5: file not found for `{{file:…}}`: `none.md`\n  \
         `b.md`, line 3: `skills` names a folder that does not exist: `s`\n  `c.yaml`, line 2: `cwd` names a \
         folder that does not exist: `nowhere`\n    help: relative paths are resolved from the card's \
         folder, then from the current one\n  the instruction uses variables without a value: `{{env}}` \
         (`b.md`, line 5)\n    help: set the values: var: \"env=Working folder: $PWD. Platform: $(uname \
         -sm).\"; the date and the machine are not filled in automatically, because the prompt would then \
         differ between days and machines"
    );
}

#[test]
fn a_folder_that_fast_agent_uses_gives_its_cards_and_not_its_settings() {
    let (_kept, sources) = folder(&[
        ("a.yaml", "name: a"),
        ("fast-agent.yaml", "mcp: {}"),
        ("fastagent.config.yaml", "default_model: m"),
        ("card-pack.yaml", "kind: card"),
    ]);
    assert_eq!(names(&load_with(&sources, None, &[]).unwrap()), ["a"]);
}

#[test]
fn a_card_that_the_worker_does_not_need_may_lack_its_variables() {
    let (_kept, sources) =
        folder(&[("a.md", "---\n---\n{{tone}}"), ("b.md", "---\n---\n{{other}} {{currentDate}}")]);
    let loaded = load_with(&sources, Some("a"), &["tone=dry"]).unwrap();
    assert_eq!(instruction(&loaded, "a"), "dry");
    let problem = load_with(&sources, Some("b"), &["tone=dry"]).unwrap_err();
    let shown = problem.message.replace(&sources[0], "");
    assert_eq!(
        shown,
        "the instruction uses variables without a value: `{{other}}` (`/b.md`, line 3), `{{currentDate}}` \
         (`/b.md`, line 3)"
    );
}

#[test]
fn the_digest_changes_with_what_shapes_answers_and_with_nothing_else() {
    let base = [
        (
            "a.md",
            "---\nmodel: m\nagents: [b]\nmessages: m.txt\nfunction_tools: t.py:f\nskills: s\n---\n{{tone}}",
        ),
        ("b.yaml", "tool_only: true\ndescription: helps"),
        ("c.yaml", "tool_only: true"),
        ("m.txt", "x"),
        ("t.py", "def f(): pass"),
        ("s/one/SKILL.md", "one"),
    ];
    let digest = |files: &[(&str, &str)], tone: &str| {
        let (_kept, sources) = folder(files);
        load_with(&sources, None, &[tone]).unwrap().digest
    };
    let with = |name: &str, text: &'static str| {
        digest(&base.map(|(file, before)| (file, if file == name { text } else { before })), "tone=dry")
    };
    let before = digest(&base, "tone=dry");
    assert_eq!(before, digest(&base, "tone=dry"), "the folder does not count");
    assert_eq!(
        before,
        with("c.yaml", "tool_only: true\ndescription: other"),
        "nor a card that is not needed"
    );
    assert_ne!(before, digest(&base, "tone=warm"));
    for (name, text) in [
        (
            "a.md",
            "---\nmodel: n\nagents: [b]\nmessages: m.txt\nfunction_tools: t.py:f\nskills: s\n---\n{{tone}}",
        ),
        ("b.yaml", "tool_only: true\ndescription: hinders"),
        ("m.txt", "y"),
        ("t.py", "def f(): return 1"),
        ("s/one/SKILL.md", "two"),
    ] {
        assert_ne!(before, with(name, text), "{name}");
    }
}

/// Answers one request with a text.
fn server(text: &'static str) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).unwrap() > 0);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
        stream.write_all(format!("{head}{text}").as_bytes()).unwrap();
    });
    (address, answering)
}

#[test]
fn a_card_from_elsewhere_is_fetched_and_kept_within_bounds() {
    let (address, answering) = server("---\nmodel: m\n---\nYou sort.");
    let loaded = load_with(&[format!("{address}/cards/sort%20it.md?key=planted")], None, &[]).unwrap();
    answering.join().unwrap();
    assert_eq!(instruction(&loaded, &loaded.worker), "You sort.");
    assert_eq!(loaded.set.cards()[0].source, format!("{address}/cards/sort%20it.md"));

    let (address, answering) = server("messages: /etc/passwd");
    let problem = load_with(&[format!("{address}/a.yaml")], None, &[]).unwrap_err();
    answering.join().unwrap();
    let message = format!("`{address}/a.yaml`, line 1: a remote card may not use files: `messages`");
    assert_eq!(problem.message, message);
}
