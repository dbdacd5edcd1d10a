//! Finds fields in the text of one line of JSON, and keeps nothing else of it.
//!
//! Events carry whole files in fields that no reader needs; a tree of them would take many times their size. A field
//! that is missing, or not of the kind that is asked for, is simply not there. Never recurses.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON value as it is written; `null` where there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// The object that `line` is; none when it is anything else.
    pub(super) fn object(line: &'a str) -> Option<Json<'a>> {
        let line = line.trim_ascii();
        let whole = line.starts_with('{') && serde_json::from_str::<IgnoredAny>(line).is_ok();
        whole.then_some(Json(line))
    }

    /// The field `key` of an object; of several, the last.
    pub(super) fn get(self, key: &str) -> Json<'a> {
        let mut found = Json("null");
        let visitor = Fields { each: &mut |value| found = value, key: Some(key) };
        // What is no object has no fields.
        let _ = serde_json::Deserializer::from_str(self.0).deserialize_any(visitor);
        found
    }

    /// Hands out the items of an array, or the values of an object.
    pub(super) fn each(self, each: &mut dyn FnMut(Json<'a>)) {
        let _ = serde_json::Deserializer::from_str(self.0).deserialize_any(Fields { each, key: None });
    }

    /// The text of a string; half of a surrogate pair, which programs in JavaScript write, becomes U+FFFD.
    pub(super) fn text(self) -> Option<String> {
        if !self.0.starts_with('"') {
            return None;
        }
        serde_json::Deserializer::from_str(self.0).deserialize_bytes(Text).ok()
    }

    /// What is told in words: a text, the texts of a list of blocks one under the other, or else the value as it is
    /// written; empty where there is nothing.
    pub(super) fn words(self) -> String {
        if self.is_null() {
            return String::new();
        }
        if let Some(text) = self.text() {
            return text;
        }
        let mut texts = Vec::new();
        if self.0.starts_with('[') {
            self.each(&mut |block| texts.extend(block.get("text").text()));
        }
        if texts.is_empty() { self.0.to_owned() } else { texts.join("\n") }
    }

    /// A number that is neither negative nor too large to count with.
    pub(super) fn count(self) -> Option<u64> {
        self.0.parse().ok().or_else(|| {
            let number = self.number()?;
            (0.0..9e15).contains(&number).then_some(number as u64)
        })
    }

    /// A finite number.
    pub(super) fn number(self) -> Option<f64> {
        serde_json::from_str(self.0).ok().filter(|number: &f64| number.is_finite())
    }

    /// Whether it is this string.
    pub(super) fn is(self, text: &str) -> bool {
        // No event has an escape in the words that are compared; the fast way is the usual one.
        let quoted = self.0.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        quoted == Some(text) || (self.0.contains('\\') && self.text().as_deref() == Some(text))
    }

    /// Whether it is `true`.
    pub(super) fn is_true(self) -> bool {
        self.0 == "true"
    }

    /// Whether there is nothing.
    pub(super) fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// The value as it is written.
    pub(super) fn raw(self) -> &'a str {
        self.0
    }

    /// The value as it is written, and nothing where there is none.
    pub(super) fn written(self) -> &'a str {
        if self.is_null() { "" } else { self.0 }
    }
}

/// Hands out the values of an array or object: all, or those of one key.
struct Fields<'k, 'f, 'a> {
    each: &'f mut dyn FnMut(Json<'a>),
    key: Option<&'k str>,
}

impl<'a> Visitor<'a> for Fields<'_, '_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(wanted) = map.next_key_seed(Key(self.key))? {
            if wanted {
                (self.each)(Json(map.next_value::<&'a RawValue>()?.get()));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<(), A::Error> {
        if self.key.is_some() {
            return Ok(());
        }
        while let Some(item) = items.next_element::<&'a RawValue>()? {
            (self.each)(Json(item.get()));
        }
        Ok(())
    }
}

/// Whether a key is the one that is wanted, or any when none is named.
struct Key<'k>(Option<&'k str>);

impl<'a> DeserializeSeed<'a> for Key<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'a>>(self, key: D) -> Result<bool, D::Error> {
        let key = key.deserialize_bytes(Text)?;
        Ok(self.0.is_none_or(|wanted| wanted == key))
    }
}

/// A string as bytes, which may hold half of a surrogate pair.
struct Text;

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_what_is_not_there_is_null() {
        let json = Json::object(r#" {"a":{"b":[1,"two",3.0]},"n":-1,"t":"x\ny","a":{"b":[7]}} "#).unwrap();
        let mut items = Vec::new();
        json.get("a").get("b").each(&mut |item| items.push(item.raw()));
        assert_eq!(items, ["7"], "of two fields the last one counts");
        assert_eq!(json.get("t").text().unwrap(), "x\ny");
        assert!(json.get("t").is("x\ny"));
        assert_eq!(json.get("n").count(), None);
        assert_eq!(json.get("n").number(), Some(-1.0));
        assert!(json.get("t").get("deeper").get("still").is_null());
        assert_eq!(Json("3.0").count(), Some(3));
        assert_eq!(Json("1e300").count(), None);
    }

    #[test]
    fn only_whole_objects_are_read() {
        for line in ["", "null", "[1]", "{", "{}}", "{\"a\":}", "warning: {}", "\u{feff}{}"] {
            assert!(Json::object(line).is_none(), "{line}");
        }
    }

    #[test]
    fn half_of_a_surrogate_pair_costs_one_character_and_not_the_line() {
        let json = Json::object(r#"{"\ud83d":1,"text":"cut \ud83d"}"#).unwrap();
        assert_eq!(json.get("text").text().unwrap().trim_end_matches('\u{fffd}'), "cut ");
    }

    #[test]
    fn depth_is_no_danger() {
        let line = format!("{{\"a\":{}{}}}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        let json = Json::object(&line).unwrap();
        assert_eq!(json.get("a").raw().len(), 2 << 20);
        assert!(json.get("a").get("b").is_null());
    }
}
