//! The key under which an answer is stored: a digest of the complete request.

use rowmill_types::{Message, MessageRole};
use xxhash_rust::xxh3::Xxh3Default;

use crate::ports::AnswerKey;

/// Part of every key. It changes when the computation of keys changes, so that answers stored under old keys are never
/// found for new ones.
const KEY_FORMAT: u8 = 1;

/// Identifies a request: `identity`, which is the same for every row of a run, and the messages of the turn.
///
/// The identity must contain everything else that shapes an answer: the model string with its settings, the base URL,
/// and digests of the instruction and the schema. Every part is hashed with its length, so that text cannot move from
/// one part to another unnoticed.
///
/// ```
/// # use {rowmill_core::answer_key::answer_key, rowmill_types::Message};
/// let key = answer_key("openai.small", &[Message::user("Is water wet?")]);
/// assert_eq!(key, answer_key("openai.small", &[Message::user("Is water wet?")]));
/// assert_ne!(key, answer_key("openai.large", &[Message::user("Is water wet?")]));
/// ```
#[must_use]
pub fn answer_key(identity: &str, messages: &[Message]) -> AnswerKey {
    let mut digest = Xxh3Default::new();
    digest.update(&[KEY_FORMAT]);
    add(&mut digest, identity);
    for message in messages {
        digest.update(&[match message.role {
            MessageRole::User => 0,
            MessageRole::Assistant => 1,
            MessageRole::Tool => 3,
        }]);
        add(&mut digest, &message.text);
        for file in &message.attachments {
            digest.update(&[2]);
            for part in [&file.name, &file.media_type, &file.digest] {
                add(&mut digest, part);
            }
        }
    }
    AnswerKey(digest.digest128())
}

fn add(digest: &mut Xxh3Default, text: &str) {
    digest.update(&(text.len() as u64).to_le_bytes());
    digest.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A conversation is a list of (is it the assistant, text).
    fn key(identity: &str, turns: &[(bool, String)]) -> AnswerKey {
        let message = |(assistant, text): &(bool, String)| {
            if *assistant { Message::assistant(text.as_str()) } else { Message::user(text.as_str()) }
        };
        answer_key(identity, &turns.iter().map(message).collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn a_key_is_the_same_only_for_the_same_identity_roles_and_texts(
            // Few letters and short texts, so that many pairs are equal when concatenated.
            one in ("[ab]{0,2}", vec((any::<bool>(), "[ab]{0,2}"), 0..4)),
            other in ("[ab]{0,2}", vec((any::<bool>(), "[ab]{0,2}"), 0..4)),
        ) {
            prop_assert_eq!(key(&one.0, &one.1) == key(&other.0, &other.1), one == other);
        }

        #[test]
        fn text_that_moves_over_a_border_changes_the_key(text in "[a-z]{2,20}", cut in 1usize..20) {
            let (before, after) = text.split_at(cut.min(text.len() - 1));
            let split = |identity: &str, texts: &[&str]| {
                key(identity, &texts.iter().map(|text| (false, (*text).to_owned())).collect::<Vec<_>>())
            };
            let keys = [
                split("", &[&text]),
                split(&text, &[]),
                split(&text, &[""]),
                split("m", &[before, after]),
                split("m", &[&text]),
                split("m", &[&text, ""]),
                split("m", &["", &text, ""]),
            ];
            for (index, key) in keys.iter().enumerate() {
                prop_assert!(!keys[..index].contains(key), "{}", index);
            }
        }

        #[test]
        fn bytes_that_look_like_a_length_and_a_role_are_only_text(text in "[a-z]{0,8}") {
            let mut forged = text.clone();
            forged.push('\0');
            forged.extend((0..8).map(|byte| if byte == 0 { '\u{1}' } else { '\0' }));
            forged.push('x');
            let honest = [(false, text), (false, "x".to_owned())];
            prop_assert_ne!(key("m", &[(false, forged)]), key("m", &honest));
        }
    }

    #[test]
    fn a_file_is_part_of_what_is_asked_by_its_name_its_kind_and_its_content() {
        let file = |name: &str, media_type: &str, digest: &str| rowmill_types::Attachment {
            name: name.into(),
            media_type: media_type.into(),
            digest: digest.into(),
            bytes: bytes::Bytes::new(),
        };
        let asked = |files: Vec<rowmill_types::Attachment>| {
            answer_key("m", &[Message { attachments: files, ..Message::user("What is it?") }])
        };
        let keys = [
            asked(vec![]),
            asked(vec![file("a", "image/png", "1")]),
            asked(vec![file("b", "image/png", "1")]),
            asked(vec![file("a", "image/gif", "1")]),
            asked(vec![file("a", "image/png", "2")]),
            asked(vec![file("a", "image/png", "1"), file("a", "image/png", "1")]),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{index}");
        }
        assert_eq!(keys[1], asked(vec![file("a", "image/png", "1")]));
    }

    #[test]
    fn keys_do_not_change_from_one_version_to_the_next() {
        let asked = [Message::user("Is water wet?"), Message::assistant("Yes."), Message::user("Sure?")];
        assert_eq!(answer_key("openai.small", &asked).0, 22_259_195_634_498_256_724_414_073_593_550_348_417);
    }
}
