//! Finds where the items of an array start and end, looking only at strings and brackets.

use memchr::memchr2;

/// How many levels of brackets are tracked. Deeper values are never valid rows.
const LEVELS: u32 = 128;

/// The result of scanning the unused bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// This many bytes are not part of an item.
    PassOver(usize),
    /// The first `length` bytes are an item; including its terminator, it takes `used`.
    Item { length: usize, used: usize },
    /// The array is broken here, for this reason.
    Broken(String),
    /// More bytes are needed; at the end of the input, nothing is left.
    More,
}

/// The position of the next byte in the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the `[`.
    Start,
    /// Before the first item, or the `]` of an empty array.
    First,
    /// After a comma.
    Next,
    /// Inside an item, but not in a string.
    Value,
    String,
    /// After a complete item.
    Complete,
    /// After the `]`.
    After,
    /// Nothing more is scanned.
    Ended,
}

/// The state of the scan, kept from one call to the next.
#[derive(Debug)]
pub(crate) struct Borders {
    state: State,
    /// The scanned bytes of the current item.
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
    /// How many bytes of the current item were scanned.
    pub(crate) fn searched(&self) -> usize {
        self.searched
    }

    /// The same number, when those bytes are discarded.
    pub(crate) fn forget(&mut self) -> usize {
        std::mem::take(&mut self.searched)
    }

    /// Scans the unused bytes, which begin with those that were scanned before.
    pub(crate) fn look(&mut self, bytes: &[u8]) -> Look {
        match self.state {
            State::Value | State::String | State::Complete => self.look_inside(bytes),
            State::Ended => Look::More,
            State::Start | State::First | State::Next | State::After => self.look_between(bytes),
        }
    }

    /// The result at the end of the input.
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
                    // The escaped character has not arrived yet.
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
                // If it does close one, there is nothing else to do.
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

    /// Closes the innermost bracket; `false` if it is of another kind, or none is open.
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
