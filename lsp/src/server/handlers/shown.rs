//! What is shown beside and above a text: hovers, hints, lenses and the values of the last run.

use gen_lsp_types as lsp;

use super::{Answer, Context};
use crate::ide;
use crate::server::convert;

pub(super) fn hover(context: &Context, params: lsp::HoverParams) -> Answer<lsp::Hover> {
    let Some((file, document, offset)) = context.place(&params.text_document_position_params) else { return Ok(None) };
    let runs = context.moment.runs(&file);
    let Some(hover) = ide::hover(file.snapshot, &file.path, offset, &*runs) else { return Ok(None) };
    let contents = lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value: hover.markdown };
    let range = convert::range(document.source(), &hover.range, context.encoding);
    Ok(Some(lsp::Hover { contents: contents.into(), range: Some(range) }))
}
