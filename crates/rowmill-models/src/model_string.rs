//! Model strings: `[provider.|provider/]model[:suffix][?key=value&…]`.

use std::fmt;

use rowmill_core::known_secrets::strip_address_secrets;
use rowmill_types::{Problem, ProblemCode};

use crate::aliases::provider_of_bare_name;
use crate::model_settings::{ModelSettingKey, ModelSettings};
use crate::nearest::{nearest_name, nearest_names};
use crate::provider::{Provider, ProviderProtocol, ProviderRegistry};
use crate::provider_table::is_builtin;
use crate::tool_calls::HOSTED;

/// A model, its provider and its settings.
///
/// A short name for a model, such as `haiku`, is an alias: built in, or defined by the configuration. A
/// suffix such as the route in `hf.org/model:groq` or the tag in `ollama.llama3.2:3b` is part of the model's
/// name. [`ToString::to_string`] returns the canonical form, which is used in the fingerprint of a run.
///
/// ```
/// # use rowmill_models::{ModelString, ProviderRegistry};
/// let model = ModelString::parse("openai/gpt-5?temp=0.5&max_tokens=100", &ProviderRegistry::default())?;
/// assert_eq!(model.to_string(), "openai.gpt-5?temperature=0.5&max_tokens=100");
/// # Ok::<(), rowmill_types::Problem>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ModelString {
    /// The provider's name.
    pub provider: String,
    /// The model, as it is sent.
    pub model: String,
    /// The settings after `?`.
    pub settings: ModelSettings,
}

/// Words that older tools accepted after a dot.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Providers that follow from how a model's name starts.
const FAMILIES: &[(&str, &str)] = &[
    // Open models that OpenAI does not serve itself: no particular provider does.
    ("gpt-oss", ""),
    ("gpt-", "responses"),
    ("o1", "responses"),
    ("o3", "responses"),
    ("o4", "responses"),
    ("claude-", "anthropic"),
    ("gemini-", "google"),
    ("grok-", "xai"),
    ("deepseek-", "deepseek"),
];

impl ModelString {
    /// Parses a model string.
    ///
    /// # Errors
    ///
    /// The provider, a key or a value is not known; the problem lists the known ones.
    pub fn parse(text: &str, providers: &ProviderRegistry) -> Result<Self, Problem> {
        let text = text.trim();
        if ["http://", "https://"].iter().any(|scheme| text.to_ascii_lowercase().starts_with(scheme)) {
            let shown = strip_address_secrets(text);
            return Err(invalid(format!("`{shown}` is a URL, not a model")).hint(
                "set `GENERIC_BASE_URL` to the URL, and write `generic.MODEL` with the server's name for the \
                 model",
            ));
        }
        Self::parse_name(text, providers).map_err(|problem| Problem {
            message: problem.message.map_text(strip_address_secrets),
            hint: problem.hint.as_ref().map(|hint| hint.map_text(strip_address_secrets)),
            ..problem
        })
    }

    fn parse_name(text: &str, providers: &ProviderRegistry) -> Result<Self, Problem> {
        let whole = providers.aliases().expand(text)?;
        if whole == text {
            return Self::parse_expanded(text, providers);
        }
        let name = text.split_once('?').map_or(text, |(name, _)| name);
        let means = whole.split_once('?').map_or(whole.as_str(), |(means, _)| means);
        if let Some(provider) = missing_provider(means, providers) {
            return Err(no_provider(&format!("`{name}` means `{whole}`"), provider));
        }
        Self::parse_expanded(&whole, providers).map_err(|mut problem| {
            problem.message =
                format!("`{name}` means `{whole}`: {}", problem.message.with_mention_markers()).into();
            problem
        })
    }

    /// Parses a model string without aliases.
    fn parse_expanded(text: &str, providers: &ProviderRegistry) -> Result<Self, Problem> {
        let (name, query) = text.split_once('?').unwrap_or((text, ""));
        if name.is_empty() {
            return Err(
                invalid("the model is empty".to_owned()).hint("write `provider.model`, e.g. `openai.gpt-5`")
            );
        }
        let (provider, model) = split(name, providers)?;
        if let Some((stem, effort)) = model.rsplit_once('.').filter(|(_, end)| EFFORTS.contains(end)) {
            return Err(invalid(format!(
                "`{text}` ends in `.{effort}`, which is not part of a model's name"
            ))
            .hint(format!("use `?reasoning={effort}`: `{}.{stem}?reasoning={effort}`", provider.name())));
        }
        let settings = read_settings(query, provider, providers)?;
        Ok(Self { provider: provider.name().to_owned(), model: model.to_owned(), settings })
    }
}

impl fmt::Display for ModelString {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_builtin(&self.provider) {
            out.write_str(&self.model)?;
        } else {
            write!(out, "{}.{}", self.provider, self.model)?;
        }
        let mut mark = '?';
        for (key, value) in self.settings.iter() {
            write!(out, "{mark}{}={}", key.name(), encode(&value.to_string()))?;
            mark = '&';
        }
        Ok(())
    }
}

/// Finds the provider: before a slash, before a dot, or by the model's name.
fn split<'a, 'p>(name: &'a str, providers: &'p ProviderRegistry) -> Result<(&'p Provider, &'a str), Problem> {
    for separator in ['/', '.'] {
        if let Some((start, model)) = name.split_once(separator)
            && let Some(provider) = providers.find(start)
        {
            if provider.protocol() == ProviderProtocol::Builtin {
                return Err(invalid(format!("`{start}` is built in and takes no model"))
                    .hint(format!("write `{start}` alone")));
            }
            if model.is_empty() {
                return Err(invalid(format!("`{name}` does not name a model"))
                    .hint(format!("add the model after the provider: `{}.MODEL`", provider.name())));
            }
            return Ok((provider, model));
        }
    }
    // A built-in model is its own provider.
    if let Some(provider) = providers.find(name) {
        if provider.protocol() == ProviderProtocol::Builtin {
            return Ok((provider, name));
        }
        return Err(invalid(format!("`{name}` is a provider; the model is missing"))
            .hint(format!("add the model after it: `{}.MODEL`", provider.name())));
    }
    if let Some(listed) = provider_of_bare_name(name) {
        let missing = || no_provider(&format!("`{name}` is a model of `{listed}`"), listed);
        return Ok((providers.find(listed).ok_or_else(missing)?, name));
    }
    let family = FAMILIES.iter().find(|(start, _)| name.starts_with(start));
    if let Some(provider) = family.and_then(|(_, provider)| providers.find(provider)) {
        return Ok((provider, name));
    }
    Err(unknown(name, providers))
}

/// The provider that an alias's model string names, if it does not exist.
fn missing_provider<'a>(means: &'a str, providers: &ProviderRegistry) -> Option<&'a str> {
    let (start, _) = means.split_once('.')?;
    let is_name = start.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let known = providers.find(start).is_some() || split(means, providers).is_ok();
    (is_name && !known).then_some(start)
}

fn no_provider(what: &str, provider: &str) -> Problem {
    invalid(format!("{what}, but rowmill has no provider `{provider}`")).hint(format!(
        "choose another model, or add the provider as `[providers.{provider}]` with a `base_url` in `rowmill.toml`"
    ))
}

fn unknown(name: &str, providers: &ProviderRegistry) -> Problem {
    let all: Vec<&str> = providers.iter().map(Provider::name).collect();
    let Some((start, model)) = name.split_once(['/', '.']) else {
        // Built-in models and aliases have no provider in front.
        let bare = providers.iter().filter(|provider| provider.protocol() == ProviderProtocol::Builtin);
        let aliases = providers.aliases().entries().map(|entry| entry.name);
        let candidates: Vec<&str> = bare.map(Provider::name).chain(aliases).collect();
        let near: Vec<String> =
            nearest_names(name, &candidates).into_iter().map(|near| format!("`{near}`")).collect();
        let near = (!near.is_empty()).then(|| format!("did you mean {}? otherwise ", near.join(" or ")));
        return invalid(format!("no provider is known for the model `{name}`")).hint(format!(
            "{}write `provider.model`, e.g. `generic.{name}`; providers: {}",
            near.unwrap_or_default(),
            all.join(", ")
        ));
    };
    let next = match nearest_name(start, &all) {
        Some(near) => format!("did you mean `{near}.{model}`?"),
        None => format!("write `provider.model`, e.g. `generic.{name}`;"),
    };
    invalid(format!("unknown provider `{start}` in `{name}`"))
        .hint(format!("{next} providers: {}", all.join(", ")))
}

fn read_settings(
    query: &str,
    provider: &Provider,
    providers: &ProviderRegistry,
) -> Result<ModelSettings, Problem> {
    let mut settings = ModelSettings::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(invalid(format!("`{pair}` is not of the form `key=value`")).hint(takes(provider)));
        };
        let known = ModelSettingKey::from_name(name);
        if let Some(tool) =
            known.filter(|key| HOSTED.contains(key) && !provider.model_setting_keys().contains(key))
        {
            return Err(not_hosted(tool, provider, providers));
        }
        let Some(key) = known.filter(|key| provider.model_setting_keys().contains(key)) else {
            let names: Vec<&str> = provider.model_setting_keys().iter().map(|key| key.name()).collect();
            let near = nearest_name(name, &names).map(|near| format!("did you mean `{near}`? "));
            return Err(invalid(format!("`{}` has no key `{name}`", provider.name()))
                .hint(near.unwrap_or_default() + &takes(provider)));
        };
        let wrong = |allowed: String| {
            invalid(format!("`{name}={value}` is not valid for `{}`", provider.name()))
                .hint(format!("`{}` takes: {allowed}", key.name()))
        };
        let Some(text) = decode(value) else {
            return Err(wrong(
                "a value in which `%` is followed by two hexadecimal digits; write `%` itself as `%25`"
                    .to_owned(),
            ));
        };
        let setting = key.read(&text).map_err(wrong)?;
        if let Some(allowed) = provider.refuses(key, &setting) {
            return Err(wrong(allowed));
        }
        settings.set(key, setting);
    }
    Ok(settings)
}

/// The problem that another provider runs a tool and this one does not.
fn not_hosted(tool: ModelSettingKey, provider: &Provider, providers: &ProviderRegistry) -> Problem {
    let hosts = providers.iter().filter(|one| one.model_setting_keys().contains(&tool));
    let hosts: Vec<String> = hosts.map(|one| format!("`{}`", one.name())).collect();
    let name = tool.name();
    invalid(format!("`{}` does not provide `{name}`", provider.name())).hint(format!(
        "these providers do: {}; omit `{name}`, or give the agent a tool for it",
        hosts.join(", ")
    ))
}

fn takes(provider: &Provider) -> String {
    if provider.model_setting_keys().is_empty() {
        return format!("`{}` takes no keys", provider.name());
    }
    let names: Vec<&str> = provider.model_setting_keys().iter().map(|key| key.name()).collect();
    format!("`{}` takes: {}", provider.name(), names.join(", "))
}

fn invalid(message: String) -> Problem {
    Problem::new(ProblemCode::InvalidModel, message)
}

fn decode(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn encode(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '%' | '&') || c.is_ascii_whitespace() || c.is_ascii_control() {
            text.push_str(&format!("%{:02X}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text
}
