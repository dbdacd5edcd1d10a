//! The pages of `docs/`, held to what they show.

mod cookbook;
mod directives;
mod listings;
mod real;
mod summary;
