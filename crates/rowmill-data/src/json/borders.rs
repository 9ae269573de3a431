//! Finds where the items of an array begin and end: strings and brackets, nothing else.

use memchr::memchr2;

/// How many levels of brackets are told apart. Deeper values are no rows anyway.
const LEVELS: u32 = 128;

/// What a look at the unused bytes found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// So many bytes are no part of an item.
    PassOver(usize),
    /// The first `length` bytes are an item; with what ends it, it takes `used`.
    Item { length: usize, used: usize },
    /// The array is broken here, for this reason.
    Broken(String),
    /// More bytes are needed; at the end of the input, nothing is left.
    More,
}

/// Where in the array the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the `[`.
    Start,
    /// Before the first item, or the `]` of an empty array.
    First,
    /// After a comma.
    Next,
    /// Inside an item, but in no string.
    Value,
    String,
    /// Behind an item that is complete.
    Complete,
    /// Behind the `]`.
    After,
    /// Nothing more is looked at.
    Ended,
}

/// The place in an array, kept from one look to the next.
#[derive(Debug)]
pub(crate) struct Borders {
    state: State,
    /// The bytes of the item at hand that were looked at.
    searched: usize,
    depth: u64,
    /// Which of the open brackets are braces, the innermost in the lowest bit.
    braces: u128,
}

impl Default for Borders {
    fn default() -> Self {
        Self { state: State::Start, searched: 0, depth: 0, braces: 0 }
    }
}

impl Borders {
    /// How much of the item at hand was looked at.
    pub(crate) fn searched(&self) -> usize {
        self.searched
    }

    /// The same, when those bytes are given up.
    pub(crate) fn forget(&mut self) -> usize {
        std::mem::take(&mut self.searched)
    }

    /// Looks at the bytes that are not used, which begin with those that were looked at before.
    pub(crate) fn look(&mut self, bytes: &[u8]) -> Look {
        match self.state {
            State::Value | State::String | State::Complete => self.look_inside(bytes),
            State::Ended => Look::More,
            State::Start | State::First | State::Next | State::After => self.look_between(bytes),
        }
    }

    /// What the end of the input means.
    pub(crate) fn close(&mut self) -> Look {
        let what = match self.state {
            State::Complete => {
                self.state = State::Next;
                let length = self.forget();
                return Look::Item { length, used: length };
            }
            State::After | State::Ended => return Look::More,
            State::Start => "the input is empty; expected `[` and a list of objects",
            State::First | State::Next => "the input ends before the `]` of the list",
            State::Value | State::String => "the input ends in the middle of it",
        };
        self.state = State::Ended;
        Look::Broken(what.to_owned())
    }

    fn look_between(&mut self, bytes: &[u8]) -> Look {
        let space = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        let Some(&byte) = bytes.get(space) else {
            return if space == 0 { Look::More } else { Look::PassOver(space) };
        };
        match (self.state, byte) {
            (State::Start, b'[') => self.state = State::First,
            (State::First, b']') => self.state = State::After,
            (State::Start, _) => return self.broken("expected `[`", byte),
            (State::After, _) => return self.broken("expected nothing after the `]` of the list", byte),
            (_, b',' | b']' | b'}' | b':') => return self.broken("expected an object", byte),
            _ => {
                self.state = State::Value;
                return if space == 0 { self.look_inside(bytes) } else { Look::PassOver(space) };
            }
        }
        Look::PassOver(space + 1)
    }

    fn look_inside(&mut self, bytes: &[u8]) -> Look {
        while let Some(&byte) = bytes.get(self.searched) {
            if self.state == State::String {
                let rest = bytes.get(self.searched..).unwrap_or_default();
                let Some(found) = memchr2(b'"', b'\\', rest) else {
                    self.searched = bytes.len();
                    break;
                };
                match rest.get(found..) {
                    Some([b'"', ..]) => {
                        self.searched += found + 1;
                        self.state = if self.depth == 0 { State::Complete } else { State::Value };
                    }
                    Some([_, _, ..]) => self.searched += found + 2,
                    // What is escaped has not come yet.
                    _ => {
                        self.searched += found;
                        break;
                    }
                }
                continue;
            }
            match byte {
                b',' | b']' if self.depth == 0 => return self.item(byte),
                b' ' | b'\t' | b'\n' | b'\r' => {}
                _ if self.state == State::Complete => {
                    return self.broken("expected `,` or `]` after it", byte);
                }
                b'"' => self.state = State::String,
                b'{' | b'[' => self.open(byte),
                // Where it does close one, that is all there is to do.
                b'}' | b']' if !self.closes(byte) => return self.broken("brackets do not match", byte),
                _ => {}
            }
            self.searched += 1;
        }
        Look::More
    }

    fn item(&mut self, end: u8) -> Look {
        self.state = if end == b',' { State::Next } else { State::After };
        let length = self.forget();
        Look::Item { length, used: length + 1 }
    }

    fn open(&mut self, bracket: u8) {
        self.depth += 1;
        self.braces = (self.braces << 1) | u128::from(bracket == b'{');
    }

    /// Closes the innermost bracket; `false` when it is of the other kind, or none is open.
    fn closes(&mut self, bracket: u8) -> bool {
        let known = self.depth <= u64::from(LEVELS);
        if self.depth == 0 || (known && (self.braces & 1 == 1) != (bracket == b'}')) {
            return false;
        }
        self.depth -= 1;
        self.braces >>= 1;
        if self.depth == 0 {
            self.state = State::Complete;
        }
        true
    }

    fn broken(&mut self, what: &str, byte: u8) -> Look {
        self.state = State::Ended;
        let found = if byte.is_ascii() { format!("`{}`", byte.escape_ascii()) } else { "other text".into() };
        Look::Broken(format!("{what}, found {found}; nothing after it could be read"))
    }
}
