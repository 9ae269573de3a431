//! The files that MCP servers are started with.

use std::path::{Path, PathBuf};

use rowmill_tools::McpTransport;

use super::fast_agent_config::with_fast_agent_config;
use super::load::LoadedCards;
use super::servers::resolve_servers;
use crate::environment::RunEnvironment;
use crate::paths::ReadPath;
use crate::work_spec::WorkSpec;

/// The files with which the MCP servers of the worker and of the agents that it uses are started.
pub(crate) fn server_files(
    spec: &WorkSpec,
    loaded: &LoadedCards,
    environment: &RunEnvironment,
) -> Vec<ReadPath> {
    let members = loaded.set.cards_of_worker(&loaded.worker);
    let all = with_fast_agent_config(spec, Some(loaded), &environment.lookup(), &|_| {})
        .and_then(|spec| resolve_servers(&spec, &members, &[], environment))
        .map(|servers| servers.all);
    // Problems with servers are reported when they are started, which is before anything is written.
    let all = all.unwrap_or_default();
    let files = all.iter().flat_map(|server| {
        let flag = format!("a file that the MCP server `{}` is started with", server.name);
        named_files(&server.transport).into_iter().map(move |file| ReadPath::new(&flag, file))
    });
    files.collect()
}

/// The existing files that a command line and its variables name.
fn named_files(transport: &McpTransport) -> Vec<PathBuf> {
    let McpTransport::Stdio { command, args, env, cwd } = transport else { return Vec::new() };
    let start = cwd.as_deref().unwrap_or(Path::new(""));
    let mut words: Vec<String> = Vec::new();
    for word in std::iter::once(command).chain(args) {
        // As in `--config=server.json`.
        words.extend(word.split_once('=').map(|(_, value)| value.to_owned()));
        words.push(word.clone());
    }
    words.extend(env.values().map(|value| value.reveal().to_owned()));
    for pair in args.windows(2) {
        if let [flag, module] = pair
            && flag == "-m"
        {
            let module = module.replace('.', "/");
            words.extend([format!("{module}.py"), format!("{module}/__main__.py")]);
        }
    }
    words.retain(|word| !word.is_empty());
    // As in `uv --directory servers run server.py`.
    let inside = words.iter().map(|word| start.join(word)).filter(|path| path.is_dir());
    let folders: Vec<PathBuf> = std::iter::once(start.to_owned()).chain(inside).collect();
    let named = folders.iter().flat_map(|folder| words.iter().map(|word| folder.join(word)));
    named.filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use rowmill_types::Secret;

    use super::*;

    #[test]
    fn every_file_that_a_command_line_names_is_found_wherever_it_starts() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("deep/tools")).unwrap();
        for file in ["server.py", "conf.json", "deep/main.py", "deep/tools/__main__.py", "memory.json"] {
            fs::write(home.path().join(file), "").unwrap();
        }
        let found = |command: &str, cwd: &str| {
            let mut words = command.split(' ').map(str::to_owned);
            let env = BTreeMap::from([("MEMORY_FILE_PATH".to_owned(), Secret::new("memory.json"))]);
            let command = words.next().unwrap();
            let cwd = Some(home.path().join(cwd));
            let mut files = named_files(&McpTransport::Stdio { command, args: words.collect(), env, cwd });
            files.retain(|file| !file.ends_with("memory.json"));
            files.iter().map(|file| file.strip_prefix(home.path()).unwrap().to_owned()).collect::<Vec<_>>()
        };
        for (command, cwd, expected) in [
            ("python3 server.py --verbose", "", &["server.py"][..]),
            ("./server.py --config=conf.json", "", &["server.py", "conf.json"]),
            ("uv --directory deep run main.py", "", &["deep/main.py"]),
            ("python3 -m tools", "deep", &["deep/tools/__main__.py"]),
            ("npx -y @scope/server /", "", &[]),
        ] {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(found(command, cwd), expected, "{command}");
        }
    }
}
