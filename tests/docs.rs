//! The pages of `docs/`, held to what they show.

mod directives;
