//! Files beside the specs: `swarmc.kdl`, and baselines. They are no specs, and take nothing of the language.

use super::words::PROFILES;
use super::{Argument, Kind, Node, Property, default_argument, required_argument};

const CODE: &[Argument] = &[required_argument("CODE", Kind::Text)];

/// The top level of `swarmc.kdl`.
pub static CONFIG: Node = Node::new("", "The settings of `swarmc check` in a workspace.")
    .children(&[&PROFILE, &DENY, &WARN, &ALLOWED, &BASELINE]);

static PROFILE: Node = Node::new("profile", "How much is shown.").arguments(&[default_argument(
    "PROFILE",
    Kind::Choice(PROFILES),
    "default",
)]);
static DENY: Node = Node::new("deny", "Treats problems as errors: codes, names, or `warnings` for all of them.")
    .arguments(CODE)
    .rest("CODE", Kind::Text)
    .many();
static WARN: Node = Node::new("warn", "Treats problems as warnings.").arguments(CODE).rest("CODE", Kind::Text).many();
static ALLOWED: Node = Node::new("allow", "Leaves problems out.").arguments(CODE).rest("CODE", Kind::Text).many();
static BASELINE: Node = Node::new("baseline", "The file of known problems, which are not shown.")
    .arguments(&[required_argument("FILE", Kind::Path)]);

/// The top level of a baseline.
pub(crate) static KNOWN: Node = Node::new("", "Problems that are known.").children(&[&FILE]);

static FILE: Node = Node::new("file", "A file with problems that are known.")
    .arguments(&[required_argument("PATH", Kind::Text)])
    .children(&[&PROBLEM])
    .many();
static PROBLEM: Node = Node::new("known", "A problem that is known.")
    .arguments(&[required_argument("CODE", Kind::Text), required_argument("MESSAGE", Kind::Text)])
    .properties(&[Property::new("count", Kind::Count(1, u32::MAX as u64), "How many of them.").default("1")])
    .many();
