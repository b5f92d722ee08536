//! Tests of the exchange of facts between crawlgate instances (such as which crawler fetched which
//! robots.txt). They use several simulated instances, and a shared store in memory.

mod life;
mod lives;
mod merge;
mod operator_commands;
pub(crate) mod simulated;
mod two;

/// Numbers that a seed determines (splitmix64).
pub struct TestRandom(pub u64);

impl TestRandom {
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`.
    pub fn below(&mut self, end: i64) -> i64 {
        i64::try_from(self.next_number() % u64::try_from(end.max(1)).expect("positive"))
            .expect("below end")
    }

    /// One time in so many.
    pub fn one_in(&mut self, many: i64) -> bool {
        self.below(many) == 0
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[usize::try_from(self.below(of.len() as i64)).expect("small")]
    }
}
