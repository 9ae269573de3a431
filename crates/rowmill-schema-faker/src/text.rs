//! Words, sentences and strings in known formats.

use serde_json::{Map, Value};

use crate::generation_budget::{GenerationBudget, GenerationLimitExceeded, MOST_TEXT};
use crate::pattern;
use crate::value::{SeededRandom, count};

const NOUNS: &[&str] = &[
    "river", "mill", "stone", "garden", "letter", "harbor", "lantern", "meadow", "bridge", "window",
    "copper", "orchard", "paper", "signal", "valley", "winter", "summer", "engine", "basket", "candle",
    "forest", "island", "mirror", "pocket", "ribbon", "saddle", "timber", "violet", "walnut", "anchor",
    "barley", "cotton", "ember", "falcon", "ginger", "hazel", "indigo", "juniper", "kettle", "linen",
];

const ADJECTIVES: &[&str] = &[
    "quiet", "bright", "early", "gentle", "steady", "narrow", "golden", "patient", "modest", "clear", "warm",
    "distant", "simple", "honest", "careful", "open",
];

const VERBS: &[&str] =
    &["carries", "follows", "answers", "keeps", "meets", "turns", "holds", "finds", "joins", "reaches"];

/// Shorter words are too common to show the topic of a prompt.
const TOPIC_LENGTH: usize = 5;

/// One readable word.
pub(crate) fn word(dice: &mut SeededRandom) -> &'static str {
    dice.pick(NOUNS).copied().unwrap_or("word")
}

/// A sentence that mentions one of the longer words of the prompt.
pub(crate) fn sentence(prompt: &str, dice: &mut SeededRandom) -> String {
    let topics: Vec<&str> = prompt
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| word.chars().count() >= TOPIC_LENGTH && word.len() <= 40)
        .take(64)
        .collect();
    let topic = dice.pick(&topics).copied().unwrap_or_else(|| word(dice)).to_lowercase();
    let adjective = dice.pick(ADJECTIVES).copied().unwrap_or("plain");
    let verb = dice.pick(VERBS).copied().unwrap_or("meets");
    format!("The {adjective} {topic} {verb} the {}.", word(dice))
}

/// A string that fits the schema's format, pattern and lengths.
pub(crate) fn string(map: &Map<String, Value>, dice: &mut SeededRandom, work: &GenerationBudget) -> String {
    if let Some(text) =
        map.get("pattern").and_then(Value::as_str).and_then(|text| pattern::matching(text, dice, work))
    {
        return text;
    }
    if let Some(text) = map.get("format").and_then(Value::as_str).and_then(|name| formatted(name, dice)) {
        work.count_text(text.len());
        return text;
    }
    let least = count(map, "minLength").unwrap_or(0);
    let most = count(map, "maxLength").unwrap_or(usize::MAX);
    if least as u64 > MOST_TEXT {
        work.mark_exceeded(GenerationLimitExceeded::Text);
        return String::new();
    }
    let mut text = String::from(word(dice));
    if dice.chance(50) {
        text = format!("{} {text}", dice.pick(ADJECTIVES).copied().unwrap_or("plain"));
    }
    // All words are ASCII, so that their bytes are their characters.
    while text.len() < least {
        text.push(' ');
        text.push_str(word(dice));
    }
    text.truncate(most);
    work.count_text(text.len());
    text
}

fn formatted(name: &str, dice: &mut SeededRandom) -> Option<String> {
    let date = |dice: &mut SeededRandom| {
        format!("20{:02}-{:02}-{:02}", 10 + dice.below(20), 1 + dice.below(12), 1 + dice.below(28))
    };
    let time = |dice: &mut SeededRandom| {
        format!("{:02}:{:02}:{:02}Z", dice.below(24), dice.below(60), dice.below(60))
    };
    Some(match name {
        "date" => date(dice),
        "time" => time(dice),
        "date-time" => format!("{}T{}", date(dice), time(dice)),
        "duration" => format!("PT{}M", 1 + dice.below(59)),
        "email" | "idn-email" => format!("{}@example.com", word(dice)),
        "hostname" | "idn-hostname" => format!("{}.example.com", word(dice)),
        "uri" | "iri" | "url" | "uri-reference" | "iri-reference" => {
            format!("https://example.com/{}", word(dice))
        }
        "uuid" => uuid(dice),
        "ipv4" => format!("192.0.2.{}", 1 + dice.below(254)),
        "ipv6" => format!("2001:db8::{:x}", 1 + dice.below(65_535)),
        _ => return None,
    })
}

fn uuid(dice: &mut SeededRandom) -> String {
    let (high, low) = (dice.next(), dice.next());
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}
