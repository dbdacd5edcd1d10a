//! Completion and signature help.

use gen_lsp_types as lsp;
use swarmc_compiler::index::SymbolKind;

use super::super::capabilities::Client;
use super::super::convert::{self, Encoding};
use super::{Answer, Context};
use crate::ide::{self, Document, Item, ItemKind};

pub(super) fn list_completions(context: &Context, params: lsp::CompletionParams) -> Answer<lsp::CompletionResponse> {
    let Some((file, document, offset)) = context.locate_position(&params.text_document_position_params) else {
        return Ok(None);
    };
    let typed = params.context.and_then(|context| context.trigger_character);
    let trigger = typed.and_then(|typed| typed.chars().next());
    let found = ide::list_completions(file.snapshot, &file.path, offset, trigger);
    let range = convert::to_range(document.source(), &found.range, context.encoding);
    let shown = Shown { client: &context.client, document: &document, range, encoding: context.encoding };
    let is_incomplete = found.incomplete;
    let items = found.items.into_iter().enumerate().map(|(place, item)| shown.item(place, item)).collect();
    Ok(Some(lsp::CompletionList { is_incomplete, items, ..Default::default() }.into()))
}

pub(super) fn find_signature(context: &Context, params: lsp::SignatureHelpParams) -> Answer<lsp::SignatureHelp> {
    let Some((file, _, offset)) = context.locate_position(&params.text_document_position_params) else {
        return Ok(None);
    };
    let Some(found) = ide::find_signature(file.snapshot, &file.path, offset) else { return Ok(None) };
    let units = |at: usize| {
        // Whatever positions count, these are counted in code units of UTF-16.
        u32::try_from(found.label[..at].encode_utf16().count()).unwrap_or(u32::MAX)
    };
    let part = |part: &ide::SignaturePart| lsp::ParameterInformation {
        label: lsp::ParameterInformationLabel::Tuple((units(part.range.start), units(part.range.end))),
        documentation: part.doc.clone().map(make_markdown),
    };
    let parameters: Vec<lsp::ParameterInformation> = found.parts.iter().map(part).collect();
    // One past the last is none.
    let active = found.active.unwrap_or(parameters.len());
    let active = Some(lsp::ActiveParameter::Int(u32::try_from(active).unwrap_or(u32::MAX)));
    let signature = lsp::SignatureInformation {
        label: found.label.clone(),
        documentation: found.doc.clone().map(make_markdown),
        parameters: Some(parameters),
        active_parameter: active,
    };
    Ok(Some(lsp::SignatureHelp { signatures: vec![signature], active_signature: Some(0), active_parameter: active }))
}

fn make_markdown(value: String) -> lsp::Documentation {
    lsp::Documentation::MarkupContent(lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value })
}

/// What is the same for all that could be typed at one place.
struct Shown<'c> {
    client: &'c Client,
    document: &'c Document,
    range: lsp::Range,
    encoding: Encoding,
}

impl Shown<'_> {
    fn item(&self, place: usize, item: Item) -> lsp::CompletionItem {
        let snippet = item.snippet.filter(|_| self.client.snippets);
        let format = if snippet.is_some() { lsp::InsertTextFormat::Snippet } else { lsp::InsertTextFormat::PlainText };
        let edit = lsp::TextEdit { range: self.range, new_text: snippet.unwrap_or(item.text) };
        let elsewhere = item.edits.into_iter().map(|edit| lsp::TextEdit {
            range: convert::to_range(self.document.source(), &edit.range, self.encoding),
            new_text: edit.text,
        });
        let elsewhere: Vec<lsp::TextEdit> = elsewhere.collect();
        lsp::CompletionItem {
            kind: Some(item_kind(item.kind)),
            detail: item.detail,
            documentation: item.doc.map(make_markdown),
            // Our order, whatever the labels are.
            sort_text: Some(format!("{place:05}")),
            filter_text: Some(item.label.clone()),
            label: item.label,
            insert_text_format: Some(format),
            text_edit: Some(edit.into()),
            additional_text_edits: (!elsewhere.is_empty()).then_some(elsewhere),
            command: (item.again && self.client.suggests).then(suggest_command),
            ..Default::default()
        }
    }
}

/// Has the editor ask again: what was chosen opens the next choice.
fn suggest_command() -> lsp::Command {
    lsp::Command {
        title: "Suggest".to_owned(),
        command: "editor.action.triggerSuggest".to_owned(),
        ..Default::default()
    }
}

fn item_kind(kind: ItemKind) -> lsp::CompletionItemKind {
    match kind {
        ItemKind::Node => lsp::CompletionItemKind::Keyword,
        ItemKind::Property => lsp::CompletionItemKind::Property,
        ItemKind::Word => lsp::CompletionItemKind::EnumMember,
        ItemKind::Value => lsp::CompletionItemKind::Value,
        ItemKind::Field => lsp::CompletionItemKind::Field,
        ItemKind::Filter => lsp::CompletionItemKind::Function,
        ItemKind::File => lsp::CompletionItemKind::File,
        ItemKind::Folder => lsp::CompletionItemKind::Folder,
        ItemKind::Code => lsp::CompletionItemKind::Constant,
        ItemKind::Variable => lsp::CompletionItemKind::Variable,
        ItemKind::Name(symbol) => match symbol {
            SymbolKind::Type => lsp::CompletionItemKind::Struct,
            SymbolKind::Param | SymbolKind::Port => lsp::CompletionItemKind::Variable,
            SymbolKind::Field => lsp::CompletionItemKind::Field,
            SymbolKind::Option => lsp::CompletionItemKind::EnumMember,
            SymbolKind::Pipeline | SymbolKind::Swarm => lsp::CompletionItemKind::Module,
            SymbolKind::Agent | SymbolKind::Member | SymbolKind::Provider => lsp::CompletionItemKind::Class,
            step if step.is_step() => lsp::CompletionItemKind::Function,
            _ => lsp::CompletionItemKind::Reference,
        },
    }
}
