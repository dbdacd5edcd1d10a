//! The last bytes of a stream of any length, in a ring of bounded size.

/// Keeps the last `limit` bytes of what is pushed.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    limit: usize,
    ring: Vec<u8>,
    /// Where the oldest byte is, once the ring is full.
    start: usize,
    /// Bytes pushed in all.
    total: u64,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Tail {
        Tail { limit, ring: Vec::new(), start: 0, total: 0 }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(self.limit)..];
        let room = self.limit - self.ring.len();
        let (fits, over) = bytes.split_at(room.min(bytes.len()));
        self.ring.extend_from_slice(fits);
        let (right, left) = over.split_at(over.len().min(self.limit - self.start));
        self.ring[self.start..][..right.len()].copy_from_slice(right);
        self.ring[..left.len()].copy_from_slice(left);
        if !over.is_empty() {
            self.start = (self.start + over.len()) % self.limit;
        }
    }

    /// Whether nothing was ever pushed.
    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Whether earlier bytes were dropped.
    pub(crate) fn is_cut(&self) -> bool {
        self.total > self.ring.len() as u64
    }

    /// The last bytes in order. Where earlier ones were dropped, they begin at a character, not within one.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        let cut = self.is_cut();
        self.ring.rotate_left(self.start);
        if cut {
            // At most three bytes of UTF-8 can follow the one that a cut took away.
            let cut = self.ring.iter().take(3).take_while(|&&byte| byte & 0b1100_0000 == 0b1000_0000).count();
            self.ring.drain(..cut);
        }
        self.ring
    }
}

/// `bytes` as text of at most `limit` bytes, cut at a character; bytes that are not UTF-8 become U+FFFD.
pub(crate) fn decode_text(bytes: Vec<u8>, limit: usize) -> String {
    let mut text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    // Replacement characters are longer than what they replace.
    keep_last(&mut text, limit);
    text
}

/// Cuts `text` from the front so that at most `limit` bytes remain.
pub(crate) fn keep_last(text: &mut String, limit: usize) {
    if text.len() > limit {
        let mut cut = text.len() - limit;
        while !text.is_char_boundary(cut) {
            cut += 1;
        }
        text.drain(..cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_chunking_keeps_the_same_last_bytes() {
        let stream: Vec<u8> = (0..200_u16).map(|number| (number % 128) as u8).collect();
        for limit in [1, 2, 7, 199, 200, 201] {
            for chunk in [1, 3, 6, 7, 8, 50, 200] {
                let mut tail = Tail::new(limit);
                stream.chunks(chunk).for_each(|bytes| tail.push(bytes));
                let expected = &stream[stream.len().saturating_sub(limit)..];
                assert_eq!(tail.into_bytes(), expected, "limit {limit}, chunks of {chunk}");
            }
        }
    }

    #[test]
    fn the_cut_never_splits_a_character() {
        for limit in 1..12 {
            let mut tail = Tail::new(limit);
            tail.push("aé漢😀b".as_bytes());
            let kept = String::from_utf8(tail.into_bytes()).unwrap();
            assert!("aé漢😀b".ends_with(&kept) && kept.len() <= limit, "{kept}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_become_replacement_characters_within_the_limit() {
        assert_eq!(decode_text(vec![b'a', 0xff, b'b'], 100), "a\u{fffd}b");
        let cut = decode_text(vec![0xff; 100], 100);
        assert_eq!((cut.len(), cut.chars().count()), (99, 33));
    }
}
