//! SW005: patterns of types that are too large for the engine that reads them.
//!
//! In: the types that a spec writes. Out: a report for each such pattern. Where the types are read, large patterns are
//! left out, as they take long to make ready. This check makes some of them ready, with the limits of the run.

use crate::ast::{Field, TypeExpr, TypeKind};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Model, Step};
use crate::pattern;

/// The large patterns of a spec that are made ready; a real spec has none.
const MOST: usize = 16;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let spec = model.spec;
    let mut open: Vec<&TypeExpr> = spec.types.iter().map(|declared| &declared.kind).collect();
    open.extend(spec.params.iter().map(|param| &param.kind));
    let mut asked: Vec<&Field> = Vec::new();
    for pipeline in &model.pipelines {
        open.extend(pipeline.ast.params.iter().map(|param| &param.kind));
        for Step { ast, body, .. } in &pipeline.steps {
            open.extend(&ast.output.kind);
            open.extend(ast.files.iter().flat_map(|files| &files.outputs).filter_map(|output| output.kind.as_ref()));
            asked.extend(body.gate().into_iter().flat_map(|gate| &gate.asks));
        }
    }
    let mut left = MOST;
    let mut look = |field: &Field, diagnostics: &mut Diagnostics| {
        let Some(pattern) = field.pattern.as_ref().filter(|pattern| left > 0 && pattern::is_large(&pattern.value))
        else {
            return;
        };
        left -= 1;
        if pattern::can_be_used(&pattern.value) {
            return;
        }
        let message = format!("`pattern=` of `{}` is too large, or no pattern", field.name.value);
        diagnostics.push(
            Diagnostic::new(Code::WrongValue, message)
                .label(pattern.span, "cannot be made ready")
                .help("write a shorter one that repeats less, and limit the length by `max=`"),
        );
    };
    for field in asked {
        look(field, diagnostics);
        open.push(&field.kind);
    }
    while let Some(kind) = open.pop() {
        match &kind.kind {
            TypeKind::List(item) | TypeKind::Map(item) => open.push(item),
            TypeKind::Record(fields) => {
                for field in fields {
                    look(field, diagnostics);
                    open.push(&field.kind);
                }
            }
            _ => {}
        }
    }
}
