//! A quick hash of places.

use std::hash::Hasher;

/// Hashes places, which are looked up for every node: no text of a spec can choose them so that many are alike.
#[derive(Default)]
pub(super) struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::*;
    use crate::source::{FileId, Span};

    #[test]
    fn places_that_follow_each_other_differ() {
        let hash = |start: u32, end: u32| {
            BuildHasherDefault::<PlaceHasher>::default().hash_one(Span::new(FileId::new(0), start, end))
        };
        // A table looks at the lowest bits first.
        let low: BTreeSet<u64> = (0..4096).map(|at| hash(at * 20, at * 20 + 7) % 8192).collect();
        assert!(low.len() > 2048, "{}", low.len());
    }
}
