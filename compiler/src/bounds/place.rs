//! From the places in a plan back to those in its sources.

use swarmc_plan::Origin;

use crate::source::{Sources, Span};

/// The word, string or directive that begins at a place.
pub(crate) fn find_span(origin: &Origin, sources: &Sources) -> Option<Span> {
    let file = sources.find(&origin.file)?;
    let start = sources.file(file).offset(origin.line as usize, origin.column as usize);
    let rest = &sources.text(file)[start..];
    let line = rest.split(['\n', '\r']).next().unwrap_or_default();
    let closed = |open: &str, close: &str| Some(line.strip_prefix(open)?.find(close)? + open.len() + close.len());
    let length = closed("<<", ">>")
        .or_else(|| closed("{{", "}}"))
        .or_else(|| closed("{%", "%}"))
        .or_else(|| closed("\"", "\""))
        .unwrap_or_else(|| line.find(|c: char| c.is_whitespace() || "{};=()\"".contains(c)).unwrap_or(line.len()));
    let byte = |at: usize| u32::try_from(at).expect("files are under 4 GiB");
    Some(Span::new(file, byte(start), byte(start + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_thing_that_begins_there_is_marked() {
        let mut sources = Sources::new();
        sources
            .add("a.kdl", "task näme { budget calls=2; for-each \"output.find\" }\nsee <<output:x | raw>> and {{ y }}");
        let check = |line: u32, column: u32| {
            let span = find_span(&Origin { file: "a.kdl".to_owned(), line, column }, &sources).unwrap();
            sources.slice(span).to_owned()
        };
        assert_eq!(check(1, 6), "näme");
        assert_eq!(check(1, 13), "budget");
        assert_eq!(check(1, 38), "\"output.find\"");
        assert_eq!(check(2, 5), "<<output:x | raw>>");
        assert_eq!(check(2, 28), "{{ y }}");
        assert_eq!(check(9, 9), "");
        assert!(super::find_span(&Origin::default(), &sources).is_none());
    }
}
