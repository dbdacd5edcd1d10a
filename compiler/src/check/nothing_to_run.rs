//! SW005: the spec has no pipeline, or none of its own that could be its default.

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Model;
use crate::source::{FileId, Span};
use crate::symbols::NameKind;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    if diagnostics.has_errors() {
        return;
    }
    let start = Span::new(FileId::new(0), 0, 0);
    if model.pipelines.is_empty() && model.swarms.is_empty() {
        diagnostics.push(
            Diagnostic::new(Code::WrongValue, "the spec has no pipeline, so there is nothing to run")
                .label(start, "no pipeline")
                .help("write `pipeline NAME { task NAME { … } }`"),
        );
    } else if model.default.is_none() {
        let names: Vec<String> = model.tables.visible_names(NameKind::Pipeline, FileId::new(0));
        let help = match names.first() {
            Some(name) => format!("say which imported one runs: `workflow NAME {{ default {name} }}`, or write one"),
            None => "write `pipeline NAME { task NAME { … } }`".to_owned(),
        };
        diagnostics.push(
            Diagnostic::new(Code::WrongValue, "the spec has no pipeline of its own, so it has no default to run")
                .label(start, "no pipeline")
                .help(help),
        );
    }
}
