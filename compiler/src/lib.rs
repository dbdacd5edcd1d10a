//! The compiler of swarmc: text in, plan and diagnostics out.
//!
//! `text ─parse► tree ─lower► ast ─resolve► model ─check► diagnostics ─emit► plan`. Pure: the texts of files come
//! through [`Files`]. A problem in the text is a [`Diagnostic`], never an `Err`, and every stage carries on after it.

mod code;
mod diagnostic;
mod files;
#[cfg(test)]
mod pages;
mod source;
mod suggest;
pub mod syntax;
mod template;

pub use code::{Code, Severity};
pub use diagnostic::{Diagnostic, Edit, Fix, Label, Report};
pub use files::{FileError, Files};
pub use source::{FileId, Position, SourceFile, Sources, Span};

/// What came of a spec.
pub struct Compilation {
    /// The texts that were read, the spec first.
    pub sources: Sources,
    /// Every problem, by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The plan; none when there is an error.
    pub plan: Option<swarmc_plan::Plan>,
}

/// Compiles the spec at `path` (relative to the workspace, with `/`).
pub fn compile(path: &str, files: &dyn Files) -> Compilation {
    let _ = (path, files);
    Compilation { sources: Sources::new(), diagnostics: Vec::new(), plan: None }
}
