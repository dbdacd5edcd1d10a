//! A node that may be left out, with the numbers that hold then: what is written, or else the table's default.

use super::datum::Datum;
use super::element::Element;
use super::value;
use crate::schema::{Kind, Node};

/// A node of the table, written or not.
#[derive(Clone, Copy)]
pub(super) struct Section<'e> {
    schema: &'static Node,
    element: Option<&'e Element>,
}

impl<'e> Section<'e> {
    /// A node that is there.
    pub(super) fn of(element: &'e Element) -> Section<'e> {
        Section { schema: element.schema, element: Some(element) }
    }

    /// A node that is not there.
    pub(super) fn absent(schema: &'static Node) -> Section<'e> {
        Section { schema, element: None }
    }

    /// The node called `name` in its block.
    pub(super) fn child(self, name: &str) -> Section<'e> {
        let schema = self.schema.find_child(name).expect("the table has this node");
        Section { schema, element: self.element.and_then(|element| element.child(name)) }
    }

    /// What is written, if it is.
    pub(super) fn element(self) -> Option<&'e Element> {
        self.element
    }

    /// The number that its first argument is: a count, milliseconds, bytes or micro-dollars.
    pub(super) fn number(self) -> u64 {
        let argument = self.schema.arguments.first().expect("the table gives it an argument");
        let given = self.element.and_then(|element| element.argument(0));
        number_or_default(given, argument.kind, argument.default)
    }

    /// The number that a property is.
    pub(super) fn number_of(self, property: &str) -> u64 {
        let property = self.schema.find_property(property).expect("the table has this property");
        let given = self.element.and_then(|element| element.property(property.name));
        number_or_default(given, property.kind, property.default)
    }

    /// The word that its first argument is.
    pub(super) fn word(self) -> String {
        let argument = self.schema.arguments.first().expect("the table gives it an argument");
        let given = self.element.and_then(|element| element.argument(0)).map(|datum| datum.text.as_str().to_owned());
        given.unwrap_or_else(|| argument.default.expect("the table has a default for it").to_owned())
    }

    /// The word that a property is.
    pub(super) fn word_of(self, property: &str) -> String {
        let property = self.schema.find_property(property).expect("the table has this property");
        let given = self.element.and_then(|element| element.property(property.name));
        let default = || property.default.expect("the table has a default for it").to_owned();
        given.map_or_else(default, |datum| datum.text.as_str().to_owned())
    }

    /// As [`Section::number`], for what 32 bits count.
    pub(super) fn count(self) -> u32 {
        u32::try_from(self.number()).unwrap_or(u32::MAX)
    }

    /// As [`Section::number_of`], for what 32 bits count.
    pub(super) fn count_of(self, property: &str) -> u32 {
        u32::try_from(self.number_of(property)).unwrap_or(u32::MAX)
    }

    /// Whether a property is `#true`.
    pub(super) fn is_set(self, property: &str) -> bool {
        self.number_of(property) == 1
    }
}

fn number_or_default(given: Option<&Datum>, kind: Kind, default: Option<&str>) -> u64 {
    if let Some(datum) = given {
        return u64::try_from(datum.number).unwrap_or(u64::MAX);
    }
    let default = default.expect("the table has a default for it");
    match kind {
        Kind::Duration => value::parse_duration(default).expect("the table's default is a duration"),
        Kind::Size => value::parse_size(default).expect("the table's default is a size"),
        Kind::Money => value::parse_money(default).expect("the table's default is an amount"),
        Kind::Bool => u64::from(default == "#true"),
        _ => default.parse().expect("the table's default is a number"),
    }
}
