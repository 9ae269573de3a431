//! Messages that precede the message of the row: examples of how to answer.

use rowmill_types::{Message, Problem};

use crate::messages_json::{read_json_messages as json, resource_text};
use crate::mistake::CardMistake;

/// The format of a file of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageFileFormat {
    /// Text with lines of `---USER`, `---ASSISTANT` and `---RESOURCE`; without such a line it is one
    /// message of the user.
    Delimited,
    /// `{"messages": [{"role": …, "content": …}]}` in a file with the extension `.json`.
    Json,
}

impl MessageFileFormat {
    /// The format that the extension of a file name indicates.
    #[must_use]
    pub fn from_file_name(name: &str) -> Self {
        let extension = std::path::Path::new(name).extension();
        let json = extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        if json { Self::Json } else { Self::Delimited }
    }
}

/// Reads the messages of a file.
///
/// ```
/// # use rowmill_cards::{MessageFileFormat, parse_message_file};
/// let text = "---USER\ncat\n---ASSISTANT\nanimal";
/// let messages = parse_message_file(text, MessageFileFormat::Delimited, "examples.txt").unwrap();
/// assert_eq!(messages[1].text, "animal");
/// ```
///
/// # Errors
///
/// There is no message, a message is neither text nor tool calls with their results, or a call has no
/// result.
pub fn parse_message_file(
    text: &str,
    form: MessageFileFormat,
    source: &str,
) -> Result<Vec<Message>, Problem> {
    let messages = match form {
        MessageFileFormat::Delimited => delimited(text),
        MessageFileFormat::Json => json(text),
    };
    let messages = messages.map_err(|mistake| mistake.into_problem(source))?;
    if messages.is_empty() {
        let mistake = CardMistake::in_card("there is no message").hint("write one after a line of `---USER`");
        return Err(mistake.into_problem(source));
    }
    Ok(messages)
}

/// The role of the lines after a delimiter.
#[derive(Clone, Copy)]
enum MessageBlock {
    User,
    Assistant,
    /// A text that belongs to the previous message.
    Resource,
}

fn delimited(text: &str) -> Result<Vec<Message>, CardMistake> {
    let mut messages = Vec::new();
    // Text before the first delimiter belongs to the user.
    let (mut block, mut first) = (MessageBlock::User, 1);
    let mut lines: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let next = match line.trim() {
            "---USER" => MessageBlock::User,
            "---ASSISTANT" => MessageBlock::Assistant,
            "---RESOURCE" => MessageBlock::Resource,
            _ => {
                lines.push(line);
                continue;
            }
        };
        add_block(&mut messages, (block, first), &lines.join("\n"))?;
        lines.clear();
        (block, first) = (next, index as u64 + 1);
    }
    add_block(&mut messages, (block, first), &lines.join("\n"))?;
    Ok(messages)
}

fn add_block(
    messages: &mut Vec<Message>,
    (block, line): (MessageBlock, u64),
    text: &str,
) -> Result<(), CardMistake> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(());
    }
    match block {
        MessageBlock::User => messages.push(Message::user(text)),
        MessageBlock::Assistant => messages.push(Message::assistant(text)),
        MessageBlock::Resource => {
            let resource = resource_text(text).ok_or_else(|| {
                CardMistake::at(line, "a resource of a message must be text, written as JSON")
                    .hint("write the text of the file in the message")
            })?;
            match messages.last_mut() {
                Some(message) => message.text.push_str(&format!("\n\n{resource}")),
                None => messages.push(Message::user(resource)),
            }
        }
    }
    Ok(())
}
