//! The flags of `swarmc agent NAME`, as data: the table of operations declares them, the binary reads them.

/// A flag of an operation, and the field of its arguments that the flag sets.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its name, without `--`.
    pub name: &'static str,
    /// The field that it sets, or `FIELD.FIELD` within an object. Two flags for one field exclude each other.
    pub field: &'static str,
    /// What stands for its value in a usage line.
    pub value_name: &'static str,
    /// What its value is.
    pub kind: FlagKind,
    /// Whether it must be given.
    pub is_required: bool,
    /// What it says, for `--help` and the pages.
    pub help: &'static str,
}

/// What the value of a flag is.
#[derive(Clone, Copy, Debug)]
pub enum FlagKind {
    /// A text.
    Text,
    /// A text without a flag before it.
    Positional,
    /// A text; `-` reads it from standard input, this many characters at most.
    Input(usize),
    /// The same, for a field that takes an object or a text.
    ObjectInput(usize),
    /// A whole number.
    Count,
    /// A JSON value.
    Json,
    /// One of these words, each with what it means.
    Choice(&'static [(&'static str, &'static str)]),
    /// No value: the flag sets this text.
    Switch(&'static str),
    /// How something went: well or not, with an optional reason.
    Verdict(bool),
    /// `REF` or `TYPE=REF`; may be repeated.
    Artifacts,
    /// `NAME=VALUE`; may be repeated.
    Pairs,
}

impl Flag {
    /// A flag that may be left out.
    pub(super) const fn new(
        name: &'static str,
        field: &'static str,
        value_name: &'static str,
        kind: FlagKind,
        help: &'static str,
    ) -> Flag {
        Flag { name, field, value_name, kind, is_required: false, help }
    }

    /// The same flag, which must be given.
    pub(super) const fn required(self) -> Flag {
        Flag { is_required: true, ..self }
    }
}
