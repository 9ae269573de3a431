use super::*;

fn revealed(secrets: &[Secret]) -> Vec<&str> {
    secrets.iter().map(Secret::reveal).collect()
}

#[test]
fn headers_are_secrets_unless_they_are_known_to_be_settings() {
    assert_eq!(
        revealed(&header_secrets("Authorization", "Basic YW5uOnMzY3JldA==")),
        ["Basic YW5uOnMzY3JldA==", "YW5uOnMzY3JldA==", "s3cret"]
    );
    assert_eq!(revealed(&header_secrets("cookie", "a=one; b=two")), ["a=one; b=two", "one", "two"]);
    assert_eq!(revealed(&header_secrets("x-team", "some-value")), ["some-value"]);
    for name in ["Content-Type", "accept", "User-Agent", "anthropic-version", "x-region"] {
        assert!(header_secrets(name, "2023-06-01").is_empty(), "{name}");
    }
}

#[test]
fn addresses_lose_user_password_and_query_wherever_they_stand() {
    for (text, bare, secrets) in [
        (
            "http://u:p%40w@h:1/v1?k=a%20b",
            "http://h:1/v1",
            vec!["p%40w", "p@w", "dTpwQHc", "dTpwQHc=", "a%20b", "a b"],
        ),
        ("https://token@h", "https://h", vec!["token", "dG9rZW46"]),
        ("https://token:@h", "https://h", vec!["token", "dG9rZW46"]),
        (
            "x://u:a@b@h/p and http://h2/?abc.",
            "x://h/p and http://h2/",
            vec!["a@b", "dTphQGI", "dTphQGI=", "abc."],
        ),
        ("(http://h/p?k=v): mail ann@h", "(http://h/p): mail ann@h", vec!["v"]),
        ("http://h and u@v", "http://h and u@v", vec![]),
        ("no address ?k=v", "no address ?k=v", vec![]),
    ] {
        assert_eq!(strip_address_secrets(text), bare);
        assert_eq!(revealed(&address_secrets(text)), secrets, "{text}");
    }
}

#[test]
fn arguments_are_shown_without_what_is_secret_in_them() {
    let words = [
        "-y",
        "--api-key",
        "one",
        "--token=two",
        "AUTH=x",
        "--header",
        "Authorization: Bearer three",
        "--header=Accept: text/plain",
        "--db",
        "pg://u:four@h/db?p=five",
        "--key",
        "--verbose",
    ];
    let words = words.map(str::to_owned);
    assert_eq!(
        redacted_arguments(&words).join(" "),
        "-y --api-key *** --token=*** AUTH=*** --header Authorization: *** \
         --header=Accept: text/plain --db pg://h/db --key --verbose"
    );
    assert_eq!(
        revealed(&argument_secrets(&words)),
        ["one", "two", "x", "Bearer three", "three", "four", "dTpmb3Vy", "five"]
    );
}
