//! Sampling that selects the same rows as CPython's `random.Random(seed).sample`.

use rand_mt::Mt;

use super::number_set::NumberSet;

/// The sorted indexes that `random.Random(seed).sample(range(population), count)` returns.
///
/// All of them if `count` is not less than `population`. Memory grows with `count`, not with `population`.
///
/// ```
/// # use rowmill_core::select::sample_indexes;
/// assert_eq!(sample_indexes(20, 5, 7), [1, 2, 4, 10, 12]);
/// ```
#[must_use]
pub fn sample_indexes(population: u64, count: u64, seed: u64) -> Vec<u64> {
    if count >= population {
        return (0..population).collect();
    }
    let mut random = PythonRandom::new(seed);
    if population > pool_bound(count) {
        draw_into_set(&mut random, population, count)
    } else if let Ok(small) = u32::try_from(population) {
        draw_from_pool(&mut random, (0..small).collect(), count)
    } else {
        draw_from_pool(&mut random, (0..population).collect(), count)
    }
}

/// Up to this population CPython draws from a pool, above it into a set. The sizes are those of its lists and sets;
/// which rows are drawn depends on the choice.
fn pool_bound(count: u64) -> u64 {
    let mut bound = 21;
    if count > 5 {
        let mut table = 1u64;
        while table < count.saturating_mul(3) {
            table = table.saturating_mul(4);
        }
        bound += table.min(u64::MAX - bound);
    }
    bound
}

fn draw_into_set(random: &mut PythonRandom, population: u64, count: u64) -> Vec<u64> {
    let mut drawn = NumberSet::default();
    for _ in 0..count {
        while !drawn.insert(random.below(population)) {}
    }
    drawn.sorted()
}

/// Draws are moved to the end of the pool, which CPython never looks at again.
fn draw_from_pool<T: Copy + Ord + Into<u64>>(
    random: &mut PythonRandom,
    mut pool: Vec<T>,
    count: u64,
) -> Vec<u64> {
    let mut left = pool.len();
    for _ in 0..count {
        let at = usize::try_from(random.below(left as u64)).unwrap_or_default();
        left -= 1;
        pool.swap(at, left);
    }
    let drawn = pool.get_mut(left..).unwrap_or_default();
    drawn.sort_unstable();
    drawn.iter().map(|index| (*index).into()).collect()
}

/// The parts of CPython's `random.Random` that sampling needs.
struct PythonRandom(Mt);

impl PythonRandom {
    /// Seeds like CPython does with an integer: by its 32-bit words, lowest first.
    fn new(seed: u64) -> Self {
        let low = low_word(seed);
        let high = low_word(seed >> 32);
        let words = [low, high];
        let used = if high == 0 { 1 } else { 2 };
        Self(Mt::new_with_key(words.into_iter().take(used)))
    }

    /// A number less than `bound`, which must not be 0.
    fn below(&mut self, bound: u64) -> u64 {
        let bits = u64::BITS - bound.leading_zeros();
        loop {
            let number = self.bits(bits);
            if number < bound {
                return number;
            }
        }
    }

    /// A number of 1 to 64 random bits.
    fn bits(&mut self, bits: u32) -> u64 {
        if bits <= 32 {
            return u64::from(self.0.next_u32() >> (32 - bits));
        }
        let low = u64::from(self.0.next_u32());
        let high = u64::from(self.0.next_u32() >> (64 - bits));
        high << 32 | low
    }
}

fn low_word(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_samples_are_those_of_cpython() {
        let table: [(u64, u64, u64, &[u64]); 10] = [
            (20, 5, 7, &[1, 2, 4, 10, 12]),
            (20, 5, 0, &[1, 8, 12, 13, 15]),
            (1000, 10, 0, &[41, 265, 394, 430, 497, 523, 776, 864, 911, 988]),
            (21, 6, 1, &[2, 3, 4, 8, 15, 18]),
            (22, 6, 1, &[2, 3, 4, 8, 15, 18]),
            (1, 1, 3, &[0]),
            (10, 0, 3, &[]),
            (1 << 33, 6, 9, &[595022250, 1627876803, 4322605648, 4642063575, 5898329840, 6454399878]),
            (
                1_000_000_000_000,
                7,
                (1 << 40) + 3,
                &[
                    65368487886,
                    334927569269,
                    471476022802,
                    516401889588,
                    618881645672,
                    768382512971,
                    917187984466,
                ],
            ),
            (0, 3, 1, &[]),
        ];
        for (population, count, seed, expected) in table {
            assert_eq!(sample_indexes(population, count, seed), expected, "{population} {count} {seed}");
        }
    }

    #[test]
    fn large_samples_are_those_of_cpython() {
        for (population, count, seed, sum, first, last) in [
            (1_000_000, 100, 42, 44_882_648, [6814, 26225], [935_518, 967_096]),
            (85, 21, 5, 858, [1, 3], [78, 79]),
            (86, 21, 5, 864, [1, 3], [79, 83]),
            (5000, 4999, 123_456_789, 12_493_632, [0, 1], [4998, 4999]),
        ] {
            let drawn = sample_indexes(population, count, seed);
            assert_eq!(drawn.iter().sum::<u64>(), sum);
            assert_eq!((&drawn[..2], &drawn[drawn.len() - 2..]), (&first[..], &last[..]));
        }
    }

    #[test]
    fn the_bound_between_pool_and_set_is_that_of_cpython() {
        for (count, bound) in [(0, 21), (5, 21), (6, 85), (21, 85), (22, 277), (85, 277), (86, 1045)] {
            assert_eq!(pool_bound(count), bound, "{count}");
        }
        assert_eq!(pool_bound(u64::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_sample_is_sorted_distinct_and_inside(population in 0u64..3000, count in 0u64..3000, seed: u64) {
            let drawn = sample_indexes(population, count, seed);
            prop_assert_eq!(drawn.len() as u64, count.min(population));
            prop_assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(drawn.last().is_none_or(|last| *last < population));
        }
    }
}
