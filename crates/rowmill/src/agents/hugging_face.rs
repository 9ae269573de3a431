//! MCP servers of Hugging Face, which identify the user by an access token.

use rowmill_data::HubSettings;
use rowmill_http::Url;
use rowmill_tools::{McpServerSettings, McpTransport, SignInMethod};
use rowmill_types::Secret;

/// The hosts of the hub itself.
const HOSTS: [&str; 2] = ["huggingface.co", "hf.co"];
/// The hub accepts the token in the usual header.
const FOR_HUB: &str = "Authorization";
/// A space may use `Authorization` itself, so the token goes into another header.
const FOR_SPACES: &str = "X-HF-Authorization";

/// Sends the user's token to a server of Hugging Face, unless its entry has its own credentials. The
/// token is never sent over plain HTTP, except to a stand-in of the hub on this machine.
pub(super) fn add_hub_token(server: &mut McpServerSettings, hub: &HubSettings) {
    let McpTransport::Http { url, headers, auth } = &mut server.transport else { return };
    let Ok(mut address) = Url::parse(url) else { return };
    let stand_in = stand_in(hub);
    if let Some(stand_in) = stand_in.as_ref().filter(|_| is_hub(&address)) {
        address = moved(&address, stand_in);
        *url = address.to_string();
    }
    let is_local = stand_in.is_some_and(|stand_in| stand_in.origin() == address.origin());
    let header = match (is_local, address.scheme()) {
        (true, _) => FOR_HUB,
        (false, "https") if is_hub(&address) => FOR_HUB,
        (false, "https") if is_space(&address) => FOR_SPACES,
        _ => return,
    };
    server.sign_in = SignInMethod::HuggingFace;
    let says_who =
        |name: &String| [FOR_HUB, FOR_SPACES].iter().any(|known| known.eq_ignore_ascii_case(name.trim()));
    if auth.is_none()
        && !headers.keys().any(says_who)
        && let Some(token) = &hub.token
    {
        headers.insert(header.to_owned(), Secret::new(format!("Bearer {}", token.reveal())));
    }
}

fn is_hub(address: &Url) -> bool {
    address.host_str().is_some_and(|host| HOSTS.contains(&host))
}

/// Whether this is the address of a space: a single name before `hf.space`.
fn is_space(address: &Url) -> bool {
    let name = address.host_str().and_then(|host| host.strip_suffix(".hf.space"));
    name.is_some_and(|name| !name.is_empty() && name != "-" && !name.contains('.'))
}

/// The address in `HF_ENDPOINT` if it is on this machine; a remote mirror has the hub's files but not
/// its tools.
fn stand_in(hub: &HubSettings) -> Option<Url> {
    let endpoint = Url::parse(&hub.endpoint).ok()?;
    let is_local = matches!(endpoint.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    is_local.then_some(endpoint)
}

/// The same path and query at the stand-in.
fn moved(address: &Url, stand_in: &Url) -> Url {
    let mut moved = stand_in.clone();
    moved.set_path(&format!("{}{}", stand_in.path().trim_end_matches('/'), address.path()));
    moved.set_query(address.query());
    moved
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn sent(url: &str, endpoint: &str, headers: &[(&str, &str)]) -> (String, Vec<String>) {
        let headers: BTreeMap<_, _> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect();
        let transport = McpTransport::Http { url: url.to_owned(), headers, auth: None };
        let mut server = McpServerSettings::new("hf", transport);
        let token = Some(Secret::new("hf_planted"));
        let hub = HubSettings { endpoint: endpoint.to_owned(), token, offline: false };
        add_hub_token(&mut server, &hub);
        let McpTransport::Http { url, headers, .. } = server.transport else { panic!("no address") };
        let headers = headers.iter().map(|(name, value)| format!("{name}: {}", value.reveal()));
        (url, headers.collect())
    }

    #[test]
    fn the_token_goes_to_hugging_face_over_https_and_to_nobody_else() {
        const HUB: &str = "https://huggingface.co";
        let token = |header: &str| vec![format!("{header}: Bearer hf_planted")];
        for (url, expected) in [
            ("https://huggingface.co/mcp?login", token("Authorization")),
            ("https://hf.co/mcp", token("Authorization")),
            ("https://me-tools.hf.space/gradio_api/mcp/", token("X-HF-Authorization")),
            ("http://huggingface.co/mcp", vec![]),
            ("https://huggingface.co.evil.test/mcp", vec![]),
            ("https://evil-huggingface.co/mcp", vec![]),
            ("https://mirror.huggingface.co/mcp", vec![]),
            ("https://a.b.hf.space/mcp", vec![]),
            ("https://hf.space/mcp", vec![]),
            ("http://127.0.0.1:8000/mcp", vec![]),
        ] {
            assert_eq!(sent(url, HUB, &[]), (url.to_owned(), expected), "{url}");
        }
        for name in ["authorization", "x-hf-authorization"] {
            let (_, headers) = sent("https://hf.co/mcp", HUB, &[(name, "Bearer own")]);
            assert_eq!(headers, [format!("{name}: Bearer own")]);
        }
    }

    #[test]
    fn a_stand_in_on_this_machine_takes_the_place_of_the_hub_and_a_mirror_does_not() {
        let (url, headers) = sent("https://huggingface.co/mcp?login", "http://127.0.0.1:9", &[]);
        assert_eq!(url, "http://127.0.0.1:9/mcp?login");
        assert_eq!(headers, ["Authorization: Bearer hf_planted"]);
        let (url, _) = sent("https://huggingface.co/mcp?login", "https://mirror.test", &[]);
        assert_eq!(url, "https://huggingface.co/mcp?login");
        let (url, headers) = sent("https://other.test/mcp", "http://localhost:9", &[]);
        assert_eq!((url.as_str(), headers.len()), ("https://other.test/mcp", 0));
    }
}
