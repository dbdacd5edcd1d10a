//! Numbers that look random and are the same in every run.

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    /// A stream of its own for each text, whatever was asked before.
    pub(crate) fn about(seed: u64, text: &str) -> Random {
        // FNV-1a.
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix);
        Random(hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is 1 or more.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("it is below a `usize`")
    }

    /// True in so many cases of a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// At most `count` of these, in their order.
    pub(crate) fn some<T>(&mut self, mut all: Vec<T>, count: usize) -> Vec<T> {
        while all.len() > count {
            all.remove(self.below(all.len()));
        }
        all
    }
}
