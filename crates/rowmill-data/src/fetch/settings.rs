//! Where fetched files are cached, and how the hub is reached.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rowmill_types::Secret;

/// The hub's address, unless `HF_ENDPOINT` names another.
const ENDPOINT: &str = "https://huggingface.co";

/// The settings for fetching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchSettings {
    /// The folder for files that can be fetched again; empty if none is known.
    pub cache: PathBuf,
    /// How the hub is reached.
    pub hub: HubSettings,
    /// How often and after what wait a request is retried.
    pub patience: RetrySettings,
}

/// How the Hugging Face hub is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubSettings {
    /// Its address, without a slash at the end.
    pub endpoint: String,
    /// The user's access token.
    pub token: Option<Secret>,
    /// Whether only the cache is used.
    pub offline: bool,
}

/// How often and after what wait a request is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// This many consecutive attempts may make almost no progress.
    pub tries: u32,
    /// The wait after the first of them; it doubles with each one.
    pub wait: Duration,
    /// If a server asks for a longer wait than this, the request fails.
    pub longest_wait: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            tries: 5,
            wait: Duration::from_millis(500),
            // The hub counts requests in windows of five minutes.
            longest_wait: Duration::from_secs(300),
        }
    }
}

impl FetchSettings {
    /// Reads the settings from the environment: `ROWMILL_CACHE_DIR`, `HF_ENDPOINT`, `HF_TOKEN`,
    /// `HF_HUB_OFFLINE`, and the token file of the hub's own client.
    #[must_use]
    pub fn from_environment(environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| environment(name).filter(|value| !value.trim().is_empty());
        let own = set("ROWMILL_CACHE_DIR").map(PathBuf::from);
        let cache = own.or_else(|| Some(caches(&set)?.join("rowmill"))).unwrap_or_default();
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.into());
        let hub = HubSettings {
            endpoint: endpoint.trim().trim_end_matches('/').to_owned(),
            token: token(&set),
            offline: set("HF_HUB_OFFLINE").is_some_and(|value| is_yes(&value)),
        };
        Self { cache, hub, patience: RetrySettings::default() }
    }
}

/// The folder of all of this user's caches.
fn caches(set: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    set("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(Path::new(&set("HOME")?).join(".cache")))
}

/// The token that was given, or the one stored by the hub's own client on sign-in.
fn token(set: &dyn Fn(&str) -> Option<String>) -> Option<Secret> {
    let given = set("HF_TOKEN").or_else(|| set("HUGGING_FACE_HUB_TOKEN"));
    let text = given.or_else(|| fs::read_to_string(token_file(set)?).ok())?;
    let text = text.trim();
    (!text.is_empty()).then(|| Secret::new(text))
}

fn token_file(set: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    if let Some(path) = set("HF_TOKEN_PATH") {
        return Some(at_home(&path, set));
    }
    let home = set("HF_HOME").map(|path| at_home(&path, set));
    Some(home.or_else(|| Some(caches(set)?.join("huggingface")))?.join("token"))
}

/// Expands `~`, as the hub's own client does in its variables.
fn at_home(path: &str, set: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    match (path.strip_prefix("~/"), set("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

fn is_yes(value: &str) -> bool {
    matches!(value.trim().to_ascii_uppercase().as_str(), "1" | "ON" | "YES" | "TRUE")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> FetchSettings {
        FetchSettings::from_environment(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_cache_is_where_the_environment_says() {
        for (variables, expected) in [
            (&[("ROWMILL_CACHE_DIR", "/c"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")][..], "/c"),
            (&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")], "/x/rowmill"),
            (&[("XDG_CACHE_HOME", ""), ("HOME", "/h")], "/h/.cache/rowmill"),
            (&[], ""),
        ] {
            assert_eq!(settings(variables).cache, Path::new(expected));
        }
    }

    #[test]
    fn the_token_is_the_one_given_or_the_one_of_the_hubs_own_client() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().display().to_string();
        let write = |name: &str, token: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, token).unwrap();
        };
        write(".cache/huggingface/token", "hf_default\n");
        write("hf/token", "hf_home");
        write("own", " hf_path ");
        for (variables, expected) in [
            (&[][..], "hf_default"),
            (&[("HF_HOME", "~/hf")], "hf_home"),
            (&[("HF_HOME", "~/hf"), ("HF_TOKEN_PATH", "~/own")], "hf_path"),
            (&[("HF_TOKEN", " hf_given"), ("HF_TOKEN_PATH", "~/own")], "hf_given"),
            (&[("HUGGING_FACE_HUB_TOKEN", "hf_old")], "hf_old"),
        ] {
            let found = settings(&[&[("HOME", home.as_str())], variables].concat()).hub.token.unwrap();
            assert_eq!(found.reveal(), expected);
        }
        assert_eq!(settings(&[("HOME", "/nowhere")]).hub.token, None);
    }

    #[test]
    fn endpoint_and_offline_are_taken_from_the_environment() {
        assert_eq!(settings(&[]).hub.endpoint, "https://huggingface.co");
        assert_eq!(settings(&[("HF_ENDPOINT", "http://h:1/ ")]).hub.endpoint, "http://h:1");
        for (value, expected) in [("1", true), ("true", true), ("0", false), ("", false)] {
            assert_eq!(settings(&[("HF_HUB_OFFLINE", value)]).hub.offline, expected);
        }
    }
}
