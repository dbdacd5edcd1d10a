//! The file protocol of a task or an agent.

use super::datum::Datum;
use super::element::Element;
use super::type_text::type_expr;
use super::{Section, argument_names, child_argument, datum_name};
use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// The bytes that `copy-max` may say.
const MOST_COPIED: u64 = 100 * 1024 * 1024;

pub(super) fn lower_files(element: &Element, diagnostics: &mut Diagnostics) -> ast::Files {
    let texts = |child: &'static str| {
        element.children(child).filter_map(|node| Some(node.argument(0)?.text.clone())).collect::<Vec<_>>()
    };
    let copy_max = Section::of(element).number_of("copy-max");
    if let Some(written) = element.property("copy-max").filter(|_| copy_max > MOST_COPIED) {
        let diagnostic =
            Diagnostic::new(Code::WrongValue, format!("`{}` is more than an inbox may hold", written.text.as_str()))
                .label(written.span, "the folder of an agent holds 1 GiB")
                .help("write `copy-max=\"100MB\"`, or less: the agent receives only the path of a larger input");
        diagnostics.push(diagnostic);
    }
    ast::Files {
        skill: child_argument(element, "skill"),
        inputs: element.children("input").filter_map(|node| lower_input(node, diagnostics)).collect(),
        copy_max,
        outputs: element.children("output").filter_map(|node| lower_output(node, diagnostics)).collect(),
        requirements: texts("requirement"),
        criteria: texts("criterion"),
        constraints: texts("constraint"),
        wait_for: element.children("wait-for").flat_map(argument_names).collect(),
        span: element.span,
    }
}

fn lower_input(node: &Element, diagnostics: &mut Diagnostics) -> Option<ast::FileInput> {
    let path = node.argument(0)?;
    let copy_to = node.property("copy-to");
    let from = node.property("from").map(datum_name);
    if from.is_some() {
        check_inside("the outbox", path, diagnostics);
    }
    copy_to.into_iter().for_each(|folder| check_inside("the inbox", folder, diagnostics));
    Some(ast::FileInput {
        path: path.text.clone(),
        description: node.argument(1).map(|text| text.text.as_str().to_owned()),
        from,
        copy_to: copy_to.map(|folder| folder.text.clone()),
        reference: Section::of(node).is_set("reference"),
        required: Section::of(node).is_set("required"),
    })
}

fn lower_output(node: &Element, diagnostics: &mut Diagnostics) -> Option<ast::FileOutput> {
    let path = node.argument(0)?;
    check_inside("the outbox", path, diagnostics);
    let kind = node.property("type").map(|datum| type_expr(datum, &[], false, diagnostics));
    if let Some(kind) = &kind
        && path.text.as_str().ends_with('/')
    {
        let diagnostic = Diagnostic::new(Code::WrongValue, "a folder has no type")
            .label(kind.span, "the type of a JSON file")
            .label(path.span, "a folder")
            .help("remove `type=`, or name a file");
        diagnostics.push(diagnostic);
    }
    Some(ast::FileOutput {
        path: path.text.clone(),
        description: node.argument(1).map(|text| text.text.as_str().to_owned()),
        required: Section::of(node).is_set("required"),
        kind,
        copy_to: node.property("copy-to").map(|path| path.text.clone()),
    })
}

/// Reports a path that leads out of its folder.
fn check_inside(folder: &str, path: &Datum, diagnostics: &mut Diagnostics) {
    let written = path.text.as_str();
    let out = written.starts_with(['/', '~'])
        || written.split('/').any(|part| part == "..")
        || written.contains(['\0', '\\']);
    if !out {
        return;
    }
    let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{written}` does not stay in {folder}"))
        .label(path.span, "leads out of it");
    let name = folder.trim_start_matches("the ");
    diagnostics.push(match written.strip_prefix(&format!("/{name}/")) {
        Some(rest) => diagnostic.help(format!("the path is relative to {folder}: write `\"{rest}\"`")),
        None => diagnostic.help(format!("write a path relative to {folder}, without `..` and `\\`")),
    });
}
