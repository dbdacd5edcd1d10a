//! Semantic tokens: all of a file, a range, or what has changed since they were asked for.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use gen_lsp_types as lsp;

use super::{Answer, Context};
use crate::ide::{self, Document, TokenType};
use crate::server::convert;
use crate::server::workspaces::File;

/// The tokens that clients were given last, by file.
#[derive(Debug, Default)]
pub(in crate::server) struct Painted(Mutex<SentTokens>);

#[derive(Debug, Default)]
struct SentTokens {
    /// How often anything was given.
    count: u64,
    files: HashMap<lsp::Uri, (String, Vec<lsp::SemanticToken>)>,
}

/// The files whose tokens are kept; what is forgotten is given anew in full.
const FILES: usize = 64;

impl Painted {
    /// Keeps what a client is given, and says what it is called, and what it was given before.
    fn store_tokens(
        &self,
        uri: &lsp::Uri,
        tokens: &[lsp::SemanticToken],
    ) -> (String, Option<(String, Vec<lsp::SemanticToken>)>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.count += 1;
        let id = kept.count.to_string();
        if kept.files.len() >= FILES && !kept.files.contains_key(uri) {
            kept.files.clear();
        }
        let before = kept.files.insert(uri.clone(), (id.clone(), tokens.to_vec()));
        (id, before)
    }
}

/// What the numbers of kinds and modifiers mean.
pub(in crate::server) fn build_legend() -> lsp::SemanticTokensLegend {
    lsp::SemanticTokensLegend {
        token_types: TokenType::ALL.iter().map(|colour| colour.as_str().to_owned()).collect(),
        token_modifiers: vec!["declaration".to_owned()],
    }
}

pub(super) fn list_tokens(context: &Context, params: lsp::SemanticTokensParams) -> Answer<lsp::SemanticTokens> {
    let Some((file, document)) = context.document(&params.text_document) else { return Ok(None) };
    let data = encode_tokens(context, &file, &document, 0..document.text().len());
    let (id, _) = context.painted.store_tokens(&params.text_document.uri, &data);
    Ok(Some(lsp::SemanticTokens { result_id: Some(id), data }))
}

pub(super) fn list_range_tokens(
    context: &Context,
    params: lsp::SemanticTokensRangeParams,
) -> Answer<lsp::SemanticTokens> {
    let Some((file, document)) = context.document(&params.text_document) else { return Ok(None) };
    let range = convert::to_bytes(document.source(), params.range, context.encoding);
    let data = encode_tokens(context, &file, &document, range);
    Ok(Some(lsp::SemanticTokens { result_id: None, data }))
}

pub(super) fn list_token_delta(
    context: &Context,
    params: lsp::SemanticTokensDeltaParams,
) -> Answer<lsp::SemanticTokensDeltaResponse> {
    let Some((file, document)) = context.document(&params.text_document) else { return Ok(None) };
    let data = encode_tokens(context, &file, &document, 0..document.text().len());
    let (id, before) = context.painted.store_tokens(&params.text_document.uri, &data);
    // A delta holds only against the tokens that the client has, and another answer may have replaced them.
    Ok(Some(match before.filter(|(id, _)| *id == params.previous_result_id) {
        Some((_, before)) => {
            let edits = diff_tokens(&before, &data).into_iter().collect();
            lsp::SemanticTokensDelta { result_id: Some(id), edits }.into()
        }
        None => lsp::SemanticTokens { result_id: Some(id), data }.into(),
    }))
}

/// The one stretch that makes the old tokens the new ones.
fn diff_tokens(before: &[lsp::SemanticToken], after: &[lsp::SemanticToken]) -> Option<lsp::SemanticTokensEdit> {
    if before == after {
        return None;
    }
    let same = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let (old, new) = (&before[same..], &after[same..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    // Every token is five numbers.
    let number = |count: usize| u32::try_from(5 * count).unwrap_or(u32::MAX);
    let flat = |token: &lsp::SemanticToken| {
        [token.delta_line, token.delta_start, token.length, token.token_type, token.token_modifiers_bitset]
    };
    let data: Vec<u32> = new.iter().flat_map(flat).collect();
    Some(lsp::SemanticTokensEdit { start: number(same), delete_count: number(old.len()), data: Some(data) })
}

/// Tokens by their distance from the one before; linear in the text, however long its lines are.
fn encode_tokens(
    context: &Context,
    file: &File<'_>,
    document: &Document,
    within: Range<usize>,
) -> Vec<lsp::SemanticToken> {
    let (text, encoding) = (document.text(), context.encoding);
    let (mut at, mut lines, mut column) = (0, 0, 0);
    let mut last = 0;
    let mut data = Vec::new();
    for token in ide::list_tokens(file.snapshot, &file.path, within) {
        let between = &text[at..token.range.start];
        let breaks = u32::try_from(between.matches('\n').count()).unwrap_or(u32::MAX);
        lines += breaks;
        column = match between.rfind('\n') {
            Some(end) => encoding.count_units(&between[end + 1..]),
            None => column + encoding.count_units(between),
        };
        let length = encoding.count_units(&text[token.range.clone()]);
        let kind = TokenType::ALL.iter().position(|colour| *colour == token.kind).unwrap_or(0);
        data.push(lsp::SemanticToken {
            delta_line: lines,
            delta_start: if lines == 0 { column - last } else { column },
            length,
            token_type: u32::try_from(kind).unwrap_or(0),
            token_modifiers_bitset: u32::from(token.declares),
        });
        (last, lines) = (column, 0);
        column += length;
        at = token.range.end;
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(length: u32) -> lsp::SemanticToken {
        lsp::SemanticToken { delta_line: 0, delta_start: 1, length, token_type: 0, token_modifiers_bitset: 0 }
    }

    #[test]
    fn an_edit_makes_the_new_tokens_of_the_old_ones() {
        let list = |lengths: &[u32]| lengths.iter().copied().map(token).collect::<Vec<_>>();
        let check = |before: &[u32], after: &[u32]| {
            let (before, after) = (list(before), list(after));
            let mut made: Vec<u32> = before.iter().flat_map(|token| [0, 1, token.length, 0, 0]).collect();
            let wanted: Vec<u32> = after.iter().flat_map(|token| [0, 1, token.length, 0, 0]).collect();
            if let Some(edit) = diff_tokens(&before, &after) {
                let start = edit.start as usize;
                made.splice(start..start + edit.delete_count as usize, edit.data.expect("an edit has data"));
            }
            assert_eq!(made, wanted);
        };
        check(&[1, 2, 3], &[1, 2, 3]);
        check(&[1, 2, 3], &[1, 9, 3]);
        check(&[1, 1, 1], &[1, 1]);
        check(&[1, 1], &[1, 1, 1]);
        check(&[], &[4]);
        check(&[4], &[]);
        check(&[1, 2, 3, 4], &[3, 4, 1]);
    }
}
