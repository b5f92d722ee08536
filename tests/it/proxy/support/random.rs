//! [`Random`]: numbers that follow from a seed, for tests that draw what they do. Such a test prints
//! its seed, and `CRAWLGATE_SEED` repeats it.

/// Numbers that follow from a seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// With the seed in `CRAWLGATE_SEED`, and otherwise with this one. Prints the seed; what a test
    /// prints is shown if it fails.
    pub fn seeded(otherwise: u64) -> Random {
        let seed = seed_in_environment().unwrap_or(otherwise);
        println!("CRAWLGATE_SEED={seed}");
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("it is below a usize")
    }

    /// A number from `low` to below `high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.below(usize::try_from(high - low).expect("a range")))
            .expect("a small number")
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of these; `None` of none.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        (!of.is_empty()).then(|| &of[self.below(of.len())])
    }
}

/// The seed in `CRAWLGATE_SEED`, if it is a number.
pub fn seed_in_environment() -> Option<u64> {
    std::env::var("CRAWLGATE_SEED").ok()?.parse().ok()
}
