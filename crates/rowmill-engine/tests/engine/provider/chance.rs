//! Random draws that are repeatable by seed.

/// A generator: SplitMix64.
#[derive(Debug, Clone)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xA076_1D64_78BD_642F) ^ 0x5851_F42D_4C95_7F2D)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn within(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.unit()
    }

    /// A log-uniform draw: small numbers are as likely as large ones.
    pub(super) fn spread(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.unit())
    }

    pub(super) fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.next() % choices.len() as u64) as usize]
    }
}

/// The shape of a distribution.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Constant,
    Uniform,
    HeavyTailed,
}

impl Shape {
    pub(super) const ALL: [Self; 3] = [Self::Constant, Self::Uniform, Self::HeavyTailed];

    /// A value that is `mean` on average.
    pub(super) fn draw(self, mean: f64, chance: &mut Chance) -> f64 {
        match self {
            Self::Constant => mean,
            Self::Uniform => chance.within(0.2 * mean, 1.8 * mean),
            // The Pareto distribution with an exponent of 1.5, whose mean is three times its minimum.
            Self::HeavyTailed => {
                let tail = (1.0 - chance.unit()).powf(-1.0 / 1.5);
                (mean / 3.0 * tail).min(mean * 20.0)
            }
        }
    }
}
