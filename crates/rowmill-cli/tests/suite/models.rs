//! `rowmill models`: prices, and what is known about one model.

use crate::support::Place;
use serde_json::{Value, json};

const OWN_PRICES: &str = "[providers.lab]\nbase_url = \"http://lab.test/v1\"\n\
    [prices.\"lab.my-model\"]\ninput = 0.25\ncached = 0.025\noutput = 2\nbatch = 0.5\nmax_output = 16384\n\
    above = { tokens = 200000, input = 0.5, output = 3 }\n\
    [prices.\"openai.gpt-5\"]\ninput = 7\noutput = 8\n";

fn place() -> Place {
    let place = Place::new();
    place.write("rowmill.toml", OWN_PRICES);
    place
}

fn json_of(place: &Place, arguments: &[&str]) -> Value {
    place.rowmill(arguments).ok().summary()
}

#[test]
fn the_price_table_is_aligned_and_tells_its_date() {
    let text = Place::new().rowmill(&["models", "--prices", "anthropic"]).ok().stdout;
    assert!(text.starts_with("Dollars per million tokens.\n\nanthropic, as of 2026-"), "{text}");
    let table: Vec<&str> = text.lines().skip(2).collect();
    let ends = |line: &str, word: &str| line.find(word).map(|start| start + word.len());
    let heading = table[0];
    let sonnet = table.iter().find(|line| line.starts_with("  claude-sonnet-4-5 ")).unwrap();
    for (column, price) in [("input", " 3.00"), ("cached", " 0.30"), ("write", " 3.75"), ("output", " 15.00")]
    {
        assert_eq!(ends(heading, column), ends(sonnet, price), "{column}: {text}");
    }
    assert_eq!(ends(heading, "max output"), ends(sonnet, "64,000"), "{text}");
    assert!(text.contains("\n    above 200,000 "), "{text}");
    assert!(!text.contains("gpt-"), "{text}");
}

#[test]
fn the_price_table_has_all_providers_and_those_of_the_configuration_first() {
    let place = place();
    let text = place.rowmill(&["models", "--prices"]).ok().stdout;
    let place_of = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(place_of("lab, rowmill.toml") < place_of("anthropic, as of"));
    for part in ["google, as of", "  gemini-2.5-pro ", "  deepseek-chat ", "flex × 0.50, priority × 2.00"] {
        place_of(part);
    }
    let rows = json_of(&place, &["models", "--prices", "--json"]);
    let find = |provider: &str, model: &str| {
        let fits = |row: &&Value| row["provider"] == provider && row["model"] == model;
        let found: Vec<&Value> = rows.as_array().unwrap().iter().filter(fits).collect();
        assert_eq!(found.len(), 1, "{provider}.{model}");
        found[0].clone()
    };
    let own = find("lab", "my-model");
    assert_eq!((&own["source"], &own["as_of"]), (&json!("rowmill.toml"), &Value::Null));
    assert_eq!(
        (&own["cached"], &own["cache_write"], &own["batch"]),
        (&json!(0.025), &json!(0.25), &json!(0.5))
    );
    assert_eq!((&own["above"]["tokens"], &own["above"]["output"]), (&json!(200_000), &json!(3.0)));
    assert_eq!(find("openai", "gpt-5")["input"], 7.0);
    let mini = find("openai", "gpt-5-mini");
    assert_eq!((&mini["input"], &mini["tiers"]["flex"]), (&json!(0.25), &json!(0.5)));
}

#[test]
fn a_provider_without_prices_says_how_to_give_one_and_an_unknown_one_is_an_error() {
    let place = Place::new();
    let text = place.rowmill(&["models", "--prices", "ollama"]).ok().stdout;
    assert!(text.contains("[prices.\"ollama.MODEL\"]"), "{text}");
    assert_eq!(json_of(&place, &["models", "--prices", "ollama", "--json"]), json!([]));
    place.rowmill(&["models", "--prices", "nowhere"]).code(1).says("unknown provider `nowhere`");
    place.rowmill(&["models", "gpt-5", "--prices"]).code(2);
}

#[test]
fn one_model_is_shown_with_its_key_price_and_tokenizer() {
    let mut place = place();
    place.set("OPENAI_API_KEY", "sk-never-shown");
    for (model, parts) in [
        (
            "gpt-5.4-mini-2026-03-17",
            [
                "responses.gpt-5.4-mini-2026-03-17\n",
                "set in OPENAI_API_KEY",
                "$0.75 input, $0.075 cached, $4.50 output per million tokens, as of 2026-",
                "batch API: 50 %",
                "128,000 tokens",
                "o200k_base, exact",
            ]
            .as_slice(),
        ),
        ("openai.gpt-5", &["$7.00 input, $8.00 output per million tokens, rowmill.toml"]),
        ("gpt-5-mini?service_tier=flex", &["$0.125 input", "in the service tier `flex`"]),
        ("gpt-5-nano?service_tier=priority", &["unknown in the service tier `priority`"]),
        ("claude-sonnet-4-5", &["missing: set ANTHROPIC_API_KEY", "above 200,000 prompt tokens", "± 25 %"]),
        ("ollama.llama3.2:3b", &["unknown", "[prices.\"ollama.llama3.2:3b\"]", "± 15 %"]),
        ("simulated", &["price       free", "characters / 4"]),
    ] {
        let text = place.rowmill(&["models", model]).ok().stdout;
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("sk-never-shown"));
    }
    let known = json_of(&place, &["models", "lab.my-model", "--json"]);
    assert_eq!((&known["price"]["output"], &known["price"]["max_output"]), (&json!(2.0), &json!(16_384)));
    assert_eq!((&known["provider"]["provider"], &known["token_error_percent"]), (&json!("lab"), &json!(25)));
    let unknown = json_of(&place, &["models", "lab.other", "--json"]);
    assert_eq!((&unknown["price"], &unknown["tokenizer"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_price_that_cannot_be_is_an_error_that_names_it() {
    for (price, message) in [
        ("[prices.\"lab.m\"]\ninput = -1\noutput = 1\n", "`input` of `[prices.\"lab.m\"]` cannot be `-1`"),
        ("[prices.\"lab.m\"]\ninput = 1\n", "missing field `output`"),
        ("[prices.\"lab.m\"]\ninput = 1\noutput = 1\nper = 2\n", "unknown field `per`"),
        ("[prices.lab]\ninput = 1\noutput = 1\n", "does not name a provider and a model"),
    ] {
        let place = Place::new();
        place.write("rowmill.toml", price);
        place.rowmill(&["models"]).code(1).says("RM1203").says(message);
    }
}

#[test]
fn aliases_are_listed_with_what_they_mean_where_from_and_what_is_missing() {
    let place = Place::new();
    place.write("rowmill.toml", "[aliases]\nquick = \"haiku?temperature=0\"\n");
    let text = place.rowmill(&["models", "--aliases"]).ok().stdout;
    let place_of = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(place_of("rowmill.toml\n  quick ") < place_of("built in, as of 2026-08-18 (fast-agent 0.10.9)"));
    let muse = text.lines().find(|line| line.starts_with("  muse ")).unwrap();
    assert!(muse.ends_with("metaai.muse-spark-1.2   (rowmill has no provider `metaai`)"), "{muse}");
    let rows = json_of(&place, &["models", "--aliases", "--json"]);
    let find = |name: &str| rows.as_array().unwrap().iter().find(|row| row["alias"] == name).unwrap().clone();
    let expected = json!({"alias": "quick", "means": "haiku?temperature=0", "source": "rowmill.toml",
        "model": "anthropic.claude-haiku-4-5?temperature=0", "as_of": null, "problem": null});
    assert_eq!(find("quick"), expected);
    assert_eq!((&find("muse")["model"], &find("muse")["as_of"]), (&Value::Null, &json!("2026-08-18")));
    let one = place.rowmill(&["models", "opus"]).ok().stdout;
    assert!(one.starts_with("anthropic.claude-opus-5 (opus)\n"), "{one}");
    let all = place.rowmill(&["models"]).ok().stdout;
    assert!(all.contains("rowmill models --aliases") && all.contains("2026-08-18"), "{all}");
}
