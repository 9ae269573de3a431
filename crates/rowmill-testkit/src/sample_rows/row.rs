//! One sample row.

/// The first day that occurs in rows: 2020-01-01, counted from 1970-01-01.
pub(super) const FIRST_DAY: i32 = 18_262;
/// How many days there are.
pub(super) const DAYS: u64 = 1_826;

const WORDS: [&str; 64] = [
    "the",
    "kettle",
    "arrived",
    "late",
    "but",
    "works",
    "well",
    "and",
    "looks",
    "nicer",
    "than",
    "in",
    "pictures",
    "a",
    "handle",
    "broke",
    "after",
    "week",
    "of",
    "light",
    "use",
    "seller",
    "answered",
    "quickly",
    "sent",
    "another",
    "part",
    "without",
    "asking",
    "price",
    "is",
    "fair",
    "for",
    "what",
    "you",
    "get",
    "would",
    "buy",
    "again",
    "not",
    "sure",
    "about",
    "colour",
    "café",
    "naïve",
    "größer",
    "quiet",
    "heavy",
    "small",
    "box",
    "was",
    "damaged",
    "inside",
    "fine",
    "instructions",
    "only",
    "on",
    "paper",
    "easy",
    "to",
    "clean",
    "daily",
    "since",
    "東京",
];
const TAGS: [&str; 8] = ["new", "used", "gift", "kitchen", "broken", "fast", "slow", "5 stars"];
const LANGUAGES: [&str; 6] = ["en", "de", "fr", "es", "ja", "pt"];
const SITES: [&str; 4] = ["shop.example", "market.example", "forum.example", "blog.example"];

/// One sample row. It is overwritten for each row, so that a row needs no allocation.
#[derive(Debug, Default)]
pub(super) struct SampleRow {
    pub(super) id: i64,
    pub(super) split: &'static str,
    pub(super) score: Option<f64>,
    /// In hundredths.
    pub(super) price: Option<i64>,
    pub(super) flag: Option<bool>,
    /// Counted from [`FIRST_DAY`].
    pub(super) day: Option<u16>,
    /// The day of the timestamp, its second, and its microseconds.
    pub(super) at: (u16, u32, u32),
    /// Empty for null.
    pub(super) title: String,
    pub(super) text: String,
    pub(super) tags: Option<Vec<&'static str>>,
    pub(super) meta: Option<SampleMeta>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SampleMeta {
    pub(super) lang: &'static str,
    pub(super) stars: Option<i32>,
    /// The site of the source, if there is a source.
    pub(super) source: Option<&'static str>,
}

impl SampleRow {
    /// Generates the row at `index`, counted from 0.
    pub(super) fn make(&mut self, seed: u64, index: u64) {
        let mut draw = SeededRandom {
            state: seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ index.wrapping_mul(0x9e37_79b9),
        };
        self.id = i64::try_from(index + 1).unwrap_or(i64::MAX);
        self.split = match draw.below(10) {
            0 => "eval",
            1 => "test",
            _ => "train",
        };
        self.score = draw.unless_one_in(20).map(|draw| draw.below(10_000) as f64 / 10_000.0);
        self.price = draw.unless_one_in(50).map(|draw| draw.below(200_000) as i64 - 1_000);
        self.flag = draw.unless_one_in(10).map(|draw| draw.below(2) == 1);
        self.day = draw.unless_one_in(100).map(|draw| draw.below(DAYS) as u16);
        let microseconds = if draw.below(8) == 0 { draw.below(1_000_000) as u32 } else { 0 };
        self.at = (draw.below(DAYS) as u16, draw.below(86_400) as u32, microseconds);
        self.title.clear();
        if draw.unless_one_in(33).is_some() {
            let count = 2 + draw.below(3);
            write_words(&mut draw, count, &mut self.title);
            if draw.below(32) == 0 {
                self.title.push_str(", \"as new\"");
            }
        }
        self.text.clear();
        let count = 12 + draw.below(6);
        write_words(&mut draw, count, &mut self.text);
        self.make_tags(&mut draw);
        self.meta = draw.unless_one_in(40).map(|draw| SampleMeta {
            lang: pick(&LANGUAGES, draw),
            stars: draw.unless_one_in(15).map(|draw| draw.below(6) as i32),
            source: draw.unless_one_in(10).map(|draw| pick(&SITES, draw)),
        });
    }

    fn make_tags(&mut self, draw: &mut SeededRandom) {
        let mut tags = self.tags.take().unwrap_or_default();
        tags.clear();
        if draw.unless_one_in(20).is_some() {
            for _ in 0..draw.below(4) {
                tags.push(pick(&TAGS, draw));
            }
            self.tags = Some(tags);
        }
    }
}

fn pick(from: &[&'static str], draw: &mut SeededRandom) -> &'static str {
    let at = draw.below(from.len() as u64) as usize;
    from.get(at).copied().unwrap_or_default()
}

/// Appends words separated by spaces; one random number is enough for ten.
fn write_words(draw: &mut SeededRandom, count: u64, out: &mut String) {
    let mut bits = 0;
    for at in 0..count {
        if at % 10 == 0 {
            bits = draw.next();
        }
        if at > 0 {
            out.push(' ');
        }
        out.push_str(WORDS.get((bits & 63) as usize).copied().unwrap_or_default());
        bits >>= 6;
    }
}

/// Deterministic pseudo-random numbers from a seed (SplitMix64).
struct SeededRandom {
    state: u64,
}

impl SeededRandom {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    fn unless_one_in(&mut self, count: u64) -> Option<&mut Self> {
        (self.below(count) != 0).then_some(self)
    }
}
