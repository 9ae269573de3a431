//! Strings for regular expressions that use only common features.

use crate::generation_budget::GenerationBudget;
use crate::text;
use crate::value::SeededRandom;

/// How many repeats `*` and `+` may add to the minimum.
const EXTRA_REPEATS: u64 = 4;

/// The maximum number of repeats of one piece, unless the pattern requires more.
const REPEAT_LIMIT: u64 = 200;

/// The maximum nesting of groups.
const MOST_GROUPS: u32 = 64;

/// A string that matches `pattern`, or `None` if it uses more than groups, choices, classes, repeats and literals.
pub(crate) fn matching(pattern: &str, dice: &mut SeededRandom, work: &GenerationBudget) -> Option<String> {
    let letters: Vec<char> = pattern.chars().collect();
    let mut reader = PatternParser { letters: &letters, at: 0, groups: 0 };
    let node = reader.choice()?;
    if reader.at != letters.len() {
        return None;
    }
    let mut out = String::new();
    node.write(dice, &mut out, work);
    Some(out)
}

#[derive(Debug)]
enum PatternNode {
    Letter(char),
    OneOf(Vec<(char, char)>),
    Any,
    Sequence(Vec<Self>),
    Choice(Vec<Self>),
    Repeat(Box<Self>, u64, u64),
}

impl PatternNode {
    fn write(&self, dice: &mut SeededRandom, out: &mut String, work: &GenerationBudget) {
        match self {
            // An empty piece that is repeated takes time, too.
            Self::Sequence(_) | Self::Choice(_) | Self::Repeat(..) => work.count_steps(1),
            Self::Letter(letter) => work.count_text(letter.len_utf8()),
            Self::OneOf(_) | Self::Any => work.count_text(1),
        }
        match self {
            Self::Letter(letter) => out.push(*letter),
            Self::OneOf(ranges) => {
                if let Some((first, last)) = dice.pick(ranges) {
                    let span = u64::from(u32::from(*last).saturating_sub(u32::from(*first))) + 1;
                    let offset = u32::try_from(dice.below(span)).unwrap_or(0);
                    out.push(char::from_u32(u32::from(*first) + offset).unwrap_or(*first));
                }
            }
            Self::Any => out.extend(text::word(dice).chars().next()),
            Self::Sequence(nodes) => nodes.iter().for_each(|node| node.write(dice, out, work)),
            Self::Choice(nodes) => {
                if let Some(node) = dice.pick(nodes) {
                    node.write(dice, out, work);
                }
            }
            Self::Repeat(node, least, most) => {
                let more = dice.below(most.saturating_sub(*least).saturating_add(1));
                let times = least.saturating_add(more).min(REPEAT_LIMIT.max(*least));
                for _ in 0..times {
                    if work.is_exceeded() {
                        break;
                    }
                    node.write(dice, out, work);
                }
            }
        }
    }
}

#[derive(Debug)]
struct PatternParser<'p> {
    letters: &'p [char],
    at: usize,
    groups: u32,
}

impl PatternParser<'_> {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn take(&mut self, letter: char) -> bool {
        let found = self.peek() == Some(letter);
        self.at += usize::from(found);
        found
    }

    fn choice(&mut self) -> Option<PatternNode> {
        let mut branches = vec![self.sequence()?];
        while self.take('|') {
            branches.push(self.sequence()?);
        }
        if branches.len() == 1 { branches.pop() } else { Some(PatternNode::Choice(branches)) }
    }

    fn sequence(&mut self) -> Option<PatternNode> {
        let mut nodes = Vec::new();
        while let Some(letter) = self.peek() {
            match letter {
                '|' | ')' => break,
                '^' | '$' => self.at += 1,
                _ => {
                    let node = self.atom()?;
                    nodes.push(self.repeated(node)?);
                }
            }
        }
        Some(PatternNode::Sequence(nodes))
    }

    fn atom(&mut self) -> Option<PatternNode> {
        let letter = self.peek()?;
        self.at += 1;
        Some(match letter {
            '.' => PatternNode::Any,
            '(' => {
                if self.take('?') && !self.take(':') {
                    return None;
                }
                self.groups += 1;
                if self.groups > MOST_GROUPS {
                    return None;
                }
                let node = self.choice()?;
                self.groups -= 1;
                if !self.take(')') {
                    return None;
                }
                node
            }
            '[' => PatternNode::OneOf(self.class()?),
            '\\' => escape(self.next()?)?,
            '*' | '+' | '?' | '{' => return None,
            _ => PatternNode::Letter(letter),
        })
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        Some(letter)
    }

    fn class(&mut self) -> Option<Vec<(char, char)>> {
        if self.peek() == Some('^') {
            return None;
        }
        let mut ranges = Vec::new();
        loop {
            let first = match self.next()? {
                ']' => return (!ranges.is_empty()).then_some(ranges),
                '\\' => match escape(self.next()?)? {
                    PatternNode::Letter(letter) => letter,
                    PatternNode::OneOf(more) => {
                        ranges.extend(more);
                        continue;
                    }
                    _ => return None,
                },
                letter => letter,
            };
            let is_range = self.peek() == Some('-') && self.letters.get(self.at + 1) != Some(&']');
            let last = if is_range {
                self.at += 1;
                self.next()?
            } else {
                first
            };
            ranges.push((first, last));
        }
    }

    fn repeated(&mut self, node: PatternNode) -> Option<PatternNode> {
        let (least, most) = match self.peek() {
            Some('*') => (0, EXTRA_REPEATS),
            Some('+') => (1, 1 + EXTRA_REPEATS),
            Some('?') => (0, 1),
            Some('{') => {
                self.at += 1;
                let bounds = self.bounds()?;
                self.take('?');
                return Some(PatternNode::Repeat(Box::new(node), bounds.0, bounds.1));
            }
            _ => return Some(node),
        };
        self.at += 1;
        self.take('?');
        Some(PatternNode::Repeat(Box::new(node), least, most))
    }

    /// The content of the braces of a repeat: `n`, `n,` or `n,m`.
    fn bounds(&mut self) -> Option<(u64, u64)> {
        let end = self.letters.get(self.at..)?.iter().position(|letter| *letter == '}')?;
        let inside: String = self.letters.get(self.at..self.at + end)?.iter().collect();
        self.at += end + 1;
        match inside.split_once(',') {
            None => inside.parse().ok().map(|exactly| (exactly, exactly)),
            Some((least, "")) => {
                least.parse().ok().map(|least: u64| (least, least.saturating_add(EXTRA_REPEATS)))
            }
            Some((least, most)) => Some((least.parse().ok()?, most.parse().ok()?)),
        }
    }
}

fn escape(letter: char) -> Option<PatternNode> {
    Some(match letter {
        'd' => PatternNode::OneOf(vec![('0', '9')]),
        'w' => PatternNode::OneOf(vec![('a', 'z'), ('A', 'Z'), ('0', '9')]),
        's' => PatternNode::Letter(' '),
        'n' => PatternNode::Letter('\n'),
        't' => PatternNode::Letter('\t'),
        letter if letter.is_alphanumeric() => return None,
        letter => PatternNode::Letter(letter),
    })
}
