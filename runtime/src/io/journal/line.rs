//! One line of a journal: a JSON object whose first field is the checksum of all that follows it.
//!
//! `{"crc":"1c291ca3","seq":1,"at":1763750000000,"event":"run_resumed"}`: CRC-32 (IEEE), as eight hexadecimal digits, of
//! the bytes from `"seq"` to the closing brace.

use std::io::Write;

use crate::types::event::Record;

const HEAD: &[u8] = br#"{"crc":""#;
const DIGITS: usize = 8;
const TAIL: &[u8] = br#"","#;

/// Appends the line of `record`, newline included.
pub(super) fn encode(record: &Record, line: &mut Vec<u8>) {
    let start = line.len();
    line.extend_from_slice(HEAD);
    // The checksum is of what follows, and is filled in when that is there.
    line.extend_from_slice(b"00000000");
    line.extend_from_slice(TAIL);
    let body = line.len();
    serde_json::to_writer(&mut *line, record).expect("a record has string keys only");
    // The record's own opening brace is ours already.
    line.remove(body);
    let checksum = crc32fast::hash(&line[body..]);
    let mut digits = &mut line[start + HEAD.len()..][..DIGITS];
    write!(digits, "{checksum:08x}").expect("eight digits fit into eight bytes");
    line.push(b'\n');
}

/// The checksum that a line begins with; none where it is no line.
pub(super) fn read_sum(line: &[u8]) -> Option<u32> {
    let digits = line.strip_prefix(HEAD)?.get(..DIGITS)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The JSON object that `line` (without its newline) protects, or what is wrong with it.
pub(super) fn verify(line: &[u8]) -> Result<Vec<u8>, &'static str> {
    let rest = line.strip_prefix(HEAD).ok_or("it does not begin with a checksum")?;
    let (digits, rest) = rest.split_at_checked(DIGITS).ok_or("it is cut short")?;
    let body = rest.strip_prefix(TAIL).ok_or("it does not begin with a checksum")?;
    let digits = std::str::from_utf8(digits).map_err(|_| "its checksum is not a number")?;
    let expected = u32::from_str_radix(digits, 16).map_err(|_| "its checksum is not a number")?;
    if crc32fast::hash(body) != expected {
        return Err("its checksum does not match");
    }
    Ok([b"{", body].concat())
}

/// Whether a whole line begins anywhere in `bytes`. Inside a line its first bytes cannot occur: quotes are escaped
/// there.
pub(super) fn any_whole(bytes: &[u8]) -> bool {
    memchr::memmem::find_iter(bytes, HEAD).any(|start| {
        let line = &bytes[start..];
        let end = memchr::memchr(b'\n', line).unwrap_or(line.len());
        verify(&line[..end]).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::event::Event;

    #[test]
    fn a_line_holds_its_record_and_no_flipped_bit_goes_unseen() {
        let record = Record { seq: 7, at: 1_763_750_000_000, event: Event::RunResumed };
        let mut line = Vec::new();
        encode(&record, &mut line);
        let line = line.strip_suffix(b"\n").unwrap();
        let json = verify(line).unwrap();
        assert_eq!(serde_json::from_slice::<Record>(&json).unwrap(), record);
        for position in 0..line.len() {
            for bit in 0..8 {
                let mut damaged = line.to_vec();
                damaged[position] ^= 1 << bit;
                let same = verify(&damaged).is_ok_and(|found| found == json);
                // Upper-case digits of a checksum are the same number.
                assert!(verify(&damaged).is_err() || same, "byte {position} bit {bit}");
            }
        }
    }
}
