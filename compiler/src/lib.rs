//! The compiler of swarmc: text in, plan and diagnostics out.
//!
//! `text ─parse► tree ─lower► ast ─resolve► model ─check► diagnostics ─emit► plan`. Pure: the texts of files come
//! through [`Files`]. A problem in the text is a [`Diagnostic`], never an `Err`, and every stage carries on after it.

mod analysis;
mod apply_fixes;
#[expect(dead_code, reason = "the later stages read more and more of it")]
mod ast;
mod baseline;
mod bounds;
mod cancel;
mod check;
mod code;
mod config;
mod diagnostic;
mod emit;
mod files;
mod flow;
mod format;
mod ignored;
mod import;
pub mod index;
pub mod interpolation;
mod library;
mod load;
mod lower;
mod mapped_text;
mod model;
mod modules;
#[cfg(test)]
mod pages;
mod pattern;
mod resolve;
pub mod schema;
mod settings;
mod source;
mod stale;
pub mod stats;
mod suggest;
mod suppress;
mod symbols;
pub mod syntax;
mod template;
mod test;
mod text_cache;
mod tokens;
mod trust;
mod types;

pub use analysis::{Analysis, Compilation, Trees, analyze, compile, compile_with, compile_with_stats};
pub use apply_fixes::{Mended, Overlay, fix_spec};
pub use baseline::Baseline;
pub use bounds::{Turn, Used, compute_bounds, count_turn_inputs, describe_excess};
pub use cancel::Cancel;
pub use check::PROGRAM_TOOLS;
pub use code::{Code, Profile, Severity};
pub use config::{CONFIG_NAME, Config, parse_config};
pub use diagnostic::{Diagnostic, Edit, Fix, Label, Report};
pub use files::{Entry, FileError, Files};
pub use format::format_document;
pub use import::{Import, Route, import_compose};
pub use index::Index;
pub use library::{find_preset, library_parts, preset_names};
pub use load::{join_path, path_from};
pub use pattern::is_match as pattern_matches;
pub use settings::{Levels, Settings};
pub use source::{FileId, Position, SourceFile, Sources, Span};
pub use stale::check_stale;
pub use stats::Stats;
pub use swarmc_plan::tools::{BUILT_IN as BUILT_IN_TOOLS, BuiltIn};
pub use swarmc_plan::{Bound, Bounds, DEFAULT_POOL, ProviderKind, StepKind, When};
pub use test::{Count, Ending, Expectation, Expected, Fake, Hold, Part, StepEnd, TeamExpected, Test, TurnFilter};
pub use text_cache::Cache;
pub use tokens::{Bytes, O200k, Tokenizer};
pub use trust::Trust;

/// The reference of the language, in Markdown, from the table that the compiler itself uses.
pub fn language_reference() -> String {
    schema::render_page()
}
