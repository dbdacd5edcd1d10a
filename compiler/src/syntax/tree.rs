//! The tree of a KDL document: nodes, entries, values, and the tokens that cover every byte.
//!
//! Everything is owned, so a tree outlives the text it was read from and can be edited in place. Broken parts are here too:
//! what could be read of a broken node stays, marked as broken.

use super::problem::Problem;
use super::text::Text;
use super::token::Token;
use crate::source::Span;

/// What was read from a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The top-level nodes in order; commented-out ones are left out.
    pub nodes: Vec<Node>,
    /// What is wrong, by place.
    pub problems: Vec<Problem>,
    /// Every byte of the text, in order.
    pub tokens: Vec<Token>,
    /// For each top-level node the offset after the line break that ends its last line, if nothing else follows it there:
    /// a place where a parse may start afresh.
    pub(super) cuts: Vec<Option<u32>>,
    /// Whether every part was read without regard to what stands far from it: braces match, and nothing lacks its end.
    pub(super) local: bool,
}

impl Tree {
    /// The innermost node that covers a place.
    pub fn node_at(&self, place: Span) -> Option<&Node> {
        let covers = |node: &&Node| node.span.start <= place.start && place.end <= node.span.end;
        let (mut nodes, mut found) = (self.nodes.as_slice(), None);
        while let Some(node) = nodes.iter().find(covers) {
            found = Some(node);
            nodes = node.children();
        }
        found
    }
}

/// A node: `(annotation)name entries { children }`.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The name.
    pub name: Name,
    /// The type annotation before the name.
    pub annotation: Option<Box<Name>>,
    /// Arguments and properties in the order written, repeated ones included.
    pub entries: Vec<Entry>,
    /// The children block.
    pub children: Option<Block>,
    /// From the annotation or name to the end of the last entry or children block.
    pub span: Span,
    /// Whether something in it could not be read; a problem says what. Broken children do not make their parent broken.
    pub broken: bool,
    /// The comments on the lines directly above, with no blank line in between.
    pub comments: Vec<Span>,
    /// The comment at the end of the node's first line: after its last entry, or after its `{`.
    pub trailing: Option<Span>,
}

impl Node {
    /// The arguments in order.
    pub fn arguments(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.name.is_none())
    }

    /// The properties in order, repeated ones included.
    pub fn properties(&self) -> impl Iterator<Item = (&Name, &Entry)> {
        self.entries.iter().filter_map(|entry| Some((entry.name.as_ref()?, entry)))
    }

    /// The nodes of the children block; none when there is no block.
    pub fn children(&self) -> &[Node] {
        self.children.as_ref().map_or(&[], |block| &block.nodes)
    }
}

/// An argument or a property of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key, for a property.
    pub name: Option<Name>,
    /// The `=`, for a property.
    pub equals: Option<Span>,
    /// The type annotation of the value.
    pub annotation: Option<Box<Name>>,
    /// The value.
    pub value: Value,
    /// From the key, annotation or value to the end of the value.
    pub span: Span,
}

/// The name of a node, a property or a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    /// The name itself, without quotes.
    pub text: Box<str>,
    /// Where it stands, quotes included.
    pub span: Span,
    /// Whether it is written in quotes.
    pub quoted: bool,
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// What it is.
    pub kind: ValueKind,
    /// Where it stands, quotes included, annotation excluded.
    pub span: Span,
}

/// The kinds of value.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueKind {
    /// A string of any form.
    String(Text),
    /// A number.
    Number(Number),
    /// `#true` or `#false`.
    Bool(bool),
    /// `#null`.
    Null,
    /// A value that is missing or could not be read; a problem says why.
    Missing,
}

/// The nodes between `{` and `}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The nodes in order; commented-out ones are left out.
    pub nodes: Vec<Node>,
    /// The `{`.
    pub open: Span,
    /// The `}`; none when it is missing, and then a problem says so.
    pub close: Option<Span>,
}

/// A number as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    written: Box<str>,
}

impl Number {
    /// A number of the grammar; what is not one has no value.
    pub(super) fn new(written: &str) -> Self {
        Self { written: written.into() }
    }

    /// The number as written: `0x1F`, `1_000`, `#inf`.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The value of a number without fraction and exponent, when it fits.
    pub fn as_i128(&self) -> Option<i128> {
        let (negative, digits, radix) = self.split_literal();
        let digits: String = digits.chars().filter(|&digit| digit != '_').collect();
        let sign = if negative { "-" } else { "" };
        // With its sign: the digits of the least value alone do not fit.
        i128::from_str_radix(&format!("{sign}{digits}"), radix).ok()
    }

    /// The nearest floating-point value.
    pub fn as_f64(&self) -> f64 {
        match &*self.written {
            "#inf" => return f64::INFINITY,
            "#-inf" => return f64::NEG_INFINITY,
            "#nan" => return f64::NAN,
            _ => {}
        }
        let (negative, digits, radix) = self.split_literal();
        let digits = digits.chars().filter(|&digit| digit != '_');
        let size = if radix == 10 {
            digits.collect::<String>().parse().unwrap_or(f64::NAN)
        } else {
            let value = |digit: char| f64::from(digit.to_digit(radix).unwrap_or(0));
            digits.fold(0.0, |sum, digit| sum * f64::from(radix) + value(digit))
        };
        if negative { -size } else { size }
    }

    /// Sign, digits without prefix, and radix.
    fn split_literal(&self) -> (bool, &str, u32) {
        let written = &*self.written;
        let digits = written.strip_prefix(['+', '-']).unwrap_or(written);
        let negative = written.starts_with('-');
        let radix = match digits.as_bytes() {
            [b'0', b'x', ..] => 16,
            [b'0', b'o', ..] => 8,
            [b'0', b'b', ..] => 2,
            _ => return (negative, digits, 10),
        };
        (negative, &digits[2..], radix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_values() {
        let whole = |written| Number::new(written).as_i128();
        assert_eq!(whole("1_000"), Some(1000));
        assert_eq!(whole("-0x1F_"), Some(-31));
        assert_eq!(whole("+0b101"), Some(5));
        assert_eq!(whole("0o17"), Some(15));
        assert_eq!(whole("-170141183460469231731687303715884105728"), Some(i128::MIN));
        assert_eq!(whole("170141183460469231731687303715884105728"), None);
        assert_eq!(whole("1.5"), None);
        assert_eq!(whole("1e3"), None);
        assert_eq!(whole("#inf"), None);
        let float = |written| Number::new(written).as_f64();
        assert_eq!(float("1_0.5e-1"), 1.05);
        assert_eq!(float("-0x10"), -16.0);
        assert_eq!(float("#-inf"), f64::NEG_INFINITY);
        assert!(float("#nan").is_nan());
    }
}
