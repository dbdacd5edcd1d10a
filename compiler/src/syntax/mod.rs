//! The KDL 2.0 front end: text in, lossless tree and problems out.
//!
//! [`parse`] never fails, never recurses and takes linear time on every input. A broken node is reported and kept as far as
//! it could be read; every other node is kept whole. Nothing outside this module knows KDL's grammar.

mod between;
mod chars;
mod cursor;
mod entry;
mod habit;
mod lex;
mod list;
mod meant;
mod parse;
mod problem;
mod reparse;
mod string;
#[cfg(test)]
mod tests;
mod text;
mod token;
mod tree;
mod word;

pub use parse::parse;
pub use problem::{Fix, Problem, ProblemKind};
pub use reparse::reparse;
pub use text::{Form, Text};
pub use token::{Token, TokenKind};
pub use tree::{Block, Entry, Name, Node, Number, Tree, Value, ValueKind};
pub(crate) use word::quote_text;
