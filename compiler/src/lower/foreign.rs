//! Types as other languages write them, `Optional[string]`, `Array<int>`, `string | null`: what they are here.
//!
//! In: the text of a type. Out: the type in the notation of this language, or nothing where that is not certain.

use super::type_text::{is_qualified_type, suggest_type};

/// How deep types nest.
const DEEPEST: usize = 8;

/// What a type is here that is written as in another language.
pub(super) fn translate_type(text: &str) -> Option<String> {
    let mut reader = Reader { rest: text };
    let kind = reader.parse_type(0)?;
    reader.skip_space();
    reader.rest.is_empty().then_some(kind)
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn parse_type(&mut self, depth: usize) -> Option<String> {
        if depth > DEEPEST {
            return None;
        }
        self.skip_space();
        let length = self.rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
        let (word, rest) = self.rest.split_at(length.unwrap_or(self.rest.len()));
        self.rest = rest;
        let inner = self.parse_inner(depth)?;
        let mut optional = false;
        let mut kind = match (word.to_lowercase().as_str(), inner.as_slice()) {
            ("optional" | "option" | "maybe" | "nullable", [one]) => {
                optional = true;
                one.trim_end_matches('?').to_owned()
            }
            (_, [one]) if suggest_type(word, "<") == Some("list") => format!("list<{one}>"),
            (_, [one]) if suggest_type(word, "<") == Some("map") => format!("map<{one}>"),
            // Keys are texts.
            (_, [key, one]) if suggest_type(word, "<") == Some("map") && key == "string" => format!("map<{one}>"),
            (_, []) if is_qualified_type(word) && suggest_type(word, "").is_none() => word.to_owned(),
            (_, []) => suggest_type(word, "").filter(|kind| *kind != "enum")?.to_owned(),
            _ => return None,
        };
        loop {
            self.skip_space();
            if let Some(rest) = self.rest.strip_prefix("[]") {
                self.rest = rest;
                // The `?` before the brackets belongs to the items, and the list itself has none yet.
                kind = format!("list<{kind}{}>", if std::mem::take(&mut optional) { "?" } else { "" });
            } else if let Some(rest) = self.rest.strip_prefix('?') {
                self.rest = rest;
                optional = true;
            } else if let Some(rest) = self.rest.strip_prefix('|') {
                let other = rest.trim_start();
                let nothing = ["null", "None", "undefined", "nil", "none"];
                self.rest = nothing.into_iter().find_map(|word| other.strip_prefix(word))?;
                optional = true;
            } else {
                return Some(if optional { format!("{kind}?") } else { kind });
            }
        }
    }

    /// The types in the brackets behind a word; none where there are no brackets.
    fn parse_inner(&mut self, depth: usize) -> Option<Vec<String>> {
        let close = match self.rest.chars().next() {
            Some('<') => '>',
            Some('[') if !self.rest.starts_with("[]") => ']',
            _ => return Some(Vec::new()),
        };
        self.rest = &self.rest[1..];
        let mut kinds = Vec::new();
        loop {
            kinds.push(self.parse_type(depth + 1)?);
            self.skip_space();
            if let Some(rest) = self.rest.strip_prefix(close) {
                self.rest = rest;
                return Some(kinds);
            }
            self.rest = self.rest.strip_prefix(',')?;
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_other_languages_have_one_notation_here() {
        let check = |text: &str, kind: &str| assert_eq!(translate_type(text).as_deref(), Some(kind), "{text}");
        check("optional<string>", "string?");
        check("Optional[str]", "string?");
        check("Option<String>", "string?");
        check("array<int>", "list<int>");
        check("Array<number>", "list<float>");
        check("List[Optional[Finding]]", "list<Finding?>");
        check("dict[str, int]", "map<int>");
        check("Record<string, lib.Finding>", "map<lib.Finding>");
        check("string | null", "string?");
        check("boolean[]", "list<bool>");
        check("string?[]", "list<string?>");
    }

    #[test]
    fn what_is_not_certain_is_left_alone() {
        for text in
            ["Union[str, int]", "string | int", "Finding<string>", "list<", "map<int, string>", "", "()", "enum"]
        {
            assert_eq!(translate_type(text), None, "{text}");
        }
        assert_eq!(translate_type(&"list<".repeat(10_000)), None);
    }
}
