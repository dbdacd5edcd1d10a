//! The template scanner: splits a text into parts in one pass, at memory speed where there is no markup.
//!
//! The scanner finds directives itself. It passes a text to minijinja only if the text contains logic, and masks the
//! directives byte by byte, so that every offset stays the same.

use std::collections::BTreeSet;
use std::ops::Range;

use memchr::memchr2;
use minijinja::machinery::{ast::Stmt, parse};

use super::blocks::Blocks;
use super::directive::{self, Found};
use super::region::{self, Region};
use super::tree::Statement;
use super::{Directive, Kind, MAX_PROBLEMS, Part, Problem, Read, Risks, Root, Template, logic, lower};
use crate::code::Code;

/// How many pieces of logic without an end are looked for; each may cost a look at the whole text.
const MAX_LOST: usize = 16;
/// Reports `<output:plan>`, which is a directive but for the second sign on each side.
fn report_single_sign(text: &str, start: usize, problems: &mut Vec<Problem>) {
    let word = directive::word_at(text, start + 1);
    let colon = start + 1 + word.len();
    if text.as_bytes().get(colon) != Some(&b':') || Kind::from_word(word).is_none() {
        return;
    }
    let name = directive::word_at(text, colon + 1);
    let end = colon + 1 + name.len();
    if name.is_empty() || text.as_bytes().get(end) != Some(&b'>') {
        return;
    }
    let (range, meant) = (start..end + 1, format!("<<{word}:{name}>>"));
    problems.push(
        Problem::new(Code::LegacyDirective, range.clone(), "this is no directive, and stays as it is", "one `<` only")
            .help(format!("write `{meant}`"))
            .fix(format!("write `{meant}`"), range, meant.clone(), false),
    );
}

/// Reports `<< output:plan >>` and `<<output :plan>>`, which are directives but for their spaces.
fn report_spaces(text: &str, start: usize, problems: &mut Vec<Problem>) {
    let skip = |at: usize| at + text.as_bytes()[at..].iter().take_while(|byte| **byte == b' ').count();
    let word_start = skip(start + 2);
    let word = directive::word_at(text, word_start);
    let colon = skip(word_start + word.len());
    if text.as_bytes().get(colon) != Some(&b':') || Kind::from_word(word).is_none() {
        return;
    }
    let name = directive::word_at(text, skip(colon + 1));
    let close = skip(skip(colon + 1) + name.len());
    if name.is_empty() || !text[close..].starts_with(">>") {
        return;
    }
    let (range, meant) = (start..close + 2, format!("<<{word}:{name}>>"));
    problems.push(
        Problem::new(Code::LegacyDirective, range.clone(), "this is no directive, and stays as it is", "has spaces")
            .help(format!("write `{meant}`"))
            .fix(format!("write `{meant}`"), range, meant.clone(), false),
    );
}

/// Finds the parts of a text, what it reads and what is wrong with it.
pub(crate) fn scan(text: &str) -> Template {
    let mut scanner = Scanner { text, ..Scanner::default() };
    scanner.run();
    let mut template = scanner.finish();
    template.problems.sort_by_key(|problem| (problem.range.start, problem.range.end));
    template.problems.truncate(MAX_PROBLEMS);
    template.reads.sort_by_key(|read| (read.whole.start, read.whole.end));
    template
}

#[derive(Default)]
struct Scanner<'a> {
    text: &'a str,
    /// Up to where parts cover the text.
    covered: usize,
    parts: Vec<Part>,
    problems: Vec<Problem>,
    /// What minijinja must not see.
    masks: Vec<Range<usize>>,
    dashes: Vec<usize>,
    blocks: Blocks<'a>,
    bound: BTreeSet<&'a str>,
    logic: bool,
    lost: usize,
}

impl<'a> Scanner<'a> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while let Some(index) = memchr2(b'<', b'{', &bytes[at..]) {
            let here = at + index;
            at = match (bytes[here], bytes.get(here + 1)) {
                (b'<', Some(b'<')) => self.scan_directive(here),
                (b'{', Some(b'{')) => self.scan_braces(here),
                (b'{', Some(b'%' | b'#')) => self.scan_region(here),
                (b'<', Some(_)) => {
                    report_single_sign(self.text, here, &mut self.problems);
                    here + 1
                }
                _ => here + 1,
            };
            // They may be wrong by the hundred thousand: what is not shown is not kept.
            self.problems.truncate(MAX_PROBLEMS);
        }
        self.cover_text(bytes.len());
    }

    /// Covers the text up to `end`.
    fn cover_text(&mut self, end: usize) {
        if self.covered < end {
            self.parts.push(Part::Text(self.covered..end));
            self.covered = end;
        }
    }

    fn scan_directive(&mut self, here: usize) -> usize {
        // The backslash must be free: one that belongs to the part before escapes nothing.
        if here > self.covered && self.text.as_bytes()[here - 1] == b'\\' {
            self.cover_text(here - 1);
            self.parts.push(Part::Escape);
            self.covered = here;
            return here + 2;
        }
        let found = directive::parse_directive(self.text, here, &mut self.problems);
        if matches!(found, Found::Nothing) {
            report_spaces(self.text, here, &mut self.problems);
        }
        self.accept_found(found).unwrap_or(here + 1)
    }

    fn scan_braces(&mut self, here: usize) -> usize {
        // `{{{output:x}}}` is the older notation in braces.
        let inner = here + usize::from(self.text.as_bytes().get(here + 2) == Some(&b'{'));
        let found = directive::parse_legacy(self.text, inner, &mut self.problems);
        match self.accept_found(found) {
            Some(end) => end,
            None => self.scan_region(here),
        }
    }

    fn accept_found(&mut self, found: Found) -> Option<usize> {
        match found {
            Found::Nothing => None,
            Found::Broken(start, end) => {
                self.masks.push(start..end);
                Some(end)
            }
            Found::Directive(directive) => {
                let Range { start, end } = directive.range;
                self.cover_text(start);
                self.masks.push(start..end);
                self.parts.push(Part::Directive(directive));
                self.covered = end;
                Some(end)
            }
        }
    }

    fn scan_region(&mut self, here: usize) -> usize {
        if self.lost == MAX_LOST {
            return here + 2;
        }
        let region = region::parse_region(self.text, here, &mut self.bound, &mut self.problems);
        let Region { end, usable, lost, .. } = region;
        self.blocks.next(here, &region, &mut self.problems);
        self.logic = true;
        self.lost += usize::from(lost);
        // A bad `{{…}}` is masked; a bad statement leaves the structure unknown, and so does a missing end.
        self.blocks.broken |= !usable && (self.text.as_bytes()[here + 1] != b'{' || end == here + 2);
        self.dashes.extend(region.dashes);
        if !usable {
            self.masks.push(here..end);
        }
        // Without a known end it is not a piece of logic, only a problem.
        if end > here + 2 {
            self.cover_text(here);
            self.parts.push(Part::Logic(here..end));
            self.covered = end;
        }
        end
    }

    fn finish(mut self) -> Template {
        if self.logic {
            self.blocks.report_unclosed(&mut self.problems);
        }
        // From the last lost piece on, no logic was looked at.
        let broken = self.blocks.broken || self.lost == MAX_LOST;
        let (mut reads, mut tree, mut risks): (Vec<Read>, Vec<Statement>, Risks) = Default::default();
        if self.logic && !broken {
            let source = self.mask_text();
            match parse(&source, "", Default::default()) {
                Ok(Stmt::Template(template)) => {
                    tree = lower::lower_statements(&template.children, &self.directive_ranges());
                    (reads, risks) = logic::visit_template(&tree, &mut self.parts, &mut self.problems);
                }
                Ok(_) => {}
                Err(error) => self.problems.push(region::syntax_error(&error, 0, 0..self.text.len(), self.text)),
            }
        }
        for directive in self.parts.iter().filter_map(as_directive) {
            // Broken logic has no known guards, so its reads count as guarded; the error in the logic comes first.
            reads.extend(find_read(directive, broken));
        }
        Template { parts: self.parts, reads, risks, problems: self.problems, logic: tree }
    }

    /// The places of the directives, in order, each with its part.
    fn directive_ranges(&self) -> Vec<(Range<usize>, usize)> {
        let parts = self.parts.iter().enumerate();
        parts.filter_map(|(index, part)| Some((as_directive(part)?.range.clone(), index))).collect()
    }

    /// The text as minijinja may see it: every byte where it was.
    fn mask_text(&self) -> String {
        let mut masked = String::with_capacity(self.text.len());
        let mut at = 0;
        for mask in &self.masks {
            masked.push_str(&self.text[at..mask.start]);
            masked.extend(std::iter::repeat_n('x', mask.len()));
            at = mask.end;
        }
        masked.push_str(&self.text[at..]);
        region::replace_dashes(&masked, 0..masked.len(), &self.dashes)
    }
}

fn as_directive(part: &Part) -> Option<&Directive> {
    match part {
        Part::Directive(directive) => Some(directive),
        _ => None,
    }
}

/// What a directive reads.
fn find_read(directive: &Directive, harmless: bool) -> Option<Read> {
    let Kind::Read(root) = directive.kind else { return None };
    let name = directive.name.as_ref().map(|name| name.value.clone());
    let default = directive.filters.iter().any(|filter| matches!(filter.value, swarmc_plan::Filter::Default(_)));
    let open = harmless || default;
    let guarded = open || super::fact::can_prove(&directive.assumes, root, name.as_deref());
    let follows = guarded && !open && !super::fact::is_tested(&directive.assumes, root, name.as_deref());
    Some(Read {
        root,
        fields: directive.fields.iter().map(|field| field.value.clone()).collect(),
        range: directive.name.as_ref().map_or_else(|| word_range(directive, root), |name| name.range.clone()),
        whole: directive.range.clone(),
        guarded,
        follows,
        keyed: false,
        via_directive: true,
        assumes: directive.assumes.clone(),
        steps: Box::default(),
        name,
    })
}

/// The place of a directive's word.
fn word_range(directive: &Directive, root: Root) -> Range<usize> {
    let start = directive.range.start + 2;
    start..start + root.as_str().len()
}
