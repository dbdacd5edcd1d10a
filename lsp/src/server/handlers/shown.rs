//! What is shown beside and above a text: hovers, hints, lenses and the values of the last run.

use gen_lsp_types as lsp;
use serde_json::json;

use super::{Answer, Context};
use crate::ide::{self, Lens, LensKind};
use crate::server::convert;
use crate::server::dispatch::Failure;

pub(super) fn find_hover(context: &Context, params: lsp::HoverParams) -> Answer<lsp::Hover> {
    let Some((file, document, offset)) = context.locate_position(&params.text_document_position_params) else {
        return Ok(None);
    };
    let runs = context.moment.runs(&file);
    let Some(hover) = ide::find_hover(file.snapshot, &file.path, offset, &*runs) else { return Ok(None) };
    let contents = lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value: hover.markdown };
    let range = convert::to_range(document.source(), &hover.range, context.encoding);
    Ok(Some(lsp::Hover { contents: contents.into(), range: Some(range) }))
}

pub(super) fn list_hints(context: &Context, params: lsp::InlayHintParams) -> Answer<Vec<lsp::InlayHint>> {
    let Some((file, document)) = context.document(&params.text_document) else { return Ok(None) };
    let range = convert::to_bytes(document.source(), params.range, context.encoding);
    let hint = |hint: ide::Hint| {
        let part = |(value, place): (String, Option<ide::Place>)| lsp::InlayHintLabelPart {
            value,
            location: place.and_then(|place| file.location(&place, context.encoding)),
            ..Default::default()
        };
        lsp::InlayHint {
            position: convert::to_position(document.source(), hint.offset, context.encoding),
            label: lsp::Label::InlayHintLabelPartList(hint.label.into_iter().map(part).collect()),
            kind: hint.is_type.then_some(lsp::InlayHintKind::Type),
            text_edits: None,
            tooltip: hint.tooltip.map(lsp::Tooltip::String),
            padding_left: Some(!hint.is_type),
            padding_right: None,
            data: None,
        }
    };
    let hints = ide::list_hints(file.snapshot, &file.path, range, context.options.hints);
    Ok(Some(hints.into_iter().map(hint).collect()))
}

pub(super) fn list_lenses(context: &Context, params: lsp::CodeLensParams) -> Answer<Vec<lsp::CodeLens>> {
    let uri = &params.text_document.uri;
    let Some((file, document)) = context.document(&params.text_document).filter(|_| context.options.lenses) else {
        return Ok(None);
    };
    let runs = context.moment.runs(&file);
    let lens = |lens: Lens| {
        let range = convert::to_range(document.source(), &lens.range, context.encoding);
        let named = |name: &str| {
            let root = file.root.to_string_lossy();
            json!({ "uri": uri, "workspace": root, "path": file.path, "name": name })
        };
        let command = |title: &str, command: &str, argument| lsp::Command {
            title: title.to_owned(),
            tooltip: None,
            command: command.to_owned(),
            arguments: Some(vec![argument]),
        };
        let command = match lens.kind {
            LensKind::Run(name) => Some(command("run", "swarmc.run", named(&name))),
            LensKind::Plan(name) => Some(command("plan", "swarmc.plan", named(&name))),
            LensKind::Test(name) => Some(command("run test", "swarmc.test", named(&name))),
            LensKind::Last { run, title } => Some(command(&title, "swarmc.inspect", json!({ "run": run }))),
            LensKind::References => None,
        };
        let data = command.is_none().then(|| json!({ "uri": uri }));
        lsp::CodeLens { range, command, data }
    };
    Ok(Some(ide::list_lenses(file.snapshot, &file.path, &*runs).into_iter().map(lens).collect()))
}

/// Counts the references of a lens that is seen.
pub(super) fn resolve_lens(context: &Context, mut lens: lsp::CodeLens) -> Result<lsp::CodeLens, Failure> {
    let uri = lens.data.as_ref().and_then(|data| data["uri"].as_str());
    let Some(uri) = uri.filter(|_| lens.command.is_none()).map(|uri| lsp::Uri(uri.to_owned())) else { return Ok(lens) };
    let position = lens.range.start;
    let at =
        lsp::TextDocumentPositionParams { text_document: lsp::TextDocumentIdentifier { uri: uri.clone() }, position };
    let places = match context.locate_position(&at) {
        Some((file, _, offset)) => {
            context.locations(&file, &ide::find_references(file.snapshot, &file.path, offset, false))
        }
        None => Vec::new(),
    };
    let count = places.len();
    lens.command = Some(lsp::Command {
        title: format!("{count} reference{}", if count == 1 { "" } else { "s" }),
        tooltip: None,
        command: "swarmc.references".to_owned(),
        arguments: Some(vec![json!(uri), json!(position), json!(places)]),
    });
    Ok(lens)
}

pub(super) fn list_values(context: &Context, params: lsp::InlineValueParams) -> Answer<Vec<lsp::InlineValue>> {
    let Some((file, document)) = context.document(&params.text_document) else { return Ok(None) };
    let range = convert::to_bytes(document.source(), params.range, context.encoding);
    let runs = context.moment.runs(&file);
    let value = |value: ide::Value| {
        let range = convert::to_range(document.source(), &value.range, context.encoding);
        lsp::InlineValue::Text(lsp::InlineValueText { range, text: value.text })
    };
    Ok(Some(ide::list_values(file.snapshot, &file.path, range, &*runs).into_iter().map(value).collect()))
}
