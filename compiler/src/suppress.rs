//! Suppressions: `allow CODE reason=` in a node, `// swarmc: allow(CODE) reason` for the next line, and the same in
//! `<!-- … -->` in prompts. SW008 reports a suppression that suppresses nothing or gives no reason.

use std::collections::BTreeSet;

use crate::ast::{Allow, Scope, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load::Loader;
use crate::source::{FileId, Sources, Span};
use crate::stats::Suppressed;
use crate::suggest;
use crate::text_cache::Derived;

const MARK: &str = "swarmc: allow(";

/// Whether there may be suppressions in the comments of a text.
struct MentionsAllow(bool);

impl Derived for MentionsAllow {
    fn from_text(text: &str) -> MentionsAllow {
        MentionsAllow(memchr::memmem::find(text.as_bytes(), MARK.as_bytes()).is_some())
    }
}

/// The suppressions of a compilation, and which of them were of use.
pub(crate) struct Suppressions {
    active: Vec<(Code, Allow, bool)>,
    /// The problems that were taken out.
    hidden: BTreeSet<(Option<Span>, Code, String)>,
}

impl Suppressions {
    /// Finds those in comments too, and reports those of something that is not to be suppressed.
    pub(crate) fn new(mut allows: Vec<Allow>, loader: &Loader<'_>, diagnostics: &mut Diagnostics) -> Suppressions {
        let sources = &loader.sources;
        let files = sources.files().filter(|&file| loader.facts(file).derived::<MentionsAllow>().0);
        allows.extend(files.flat_map(|file| collect_suppressions(sources, file)));
        let mut active = Vec::new();
        for allow in allows {
            match Code::find(&allow.code.value) {
                Some(code) if code.is_suppressible() => active.push((code, allow, false)),
                Some(code) => diagnostics.push(
                    Diagnostic::new(Code::UnusedSuppression, format!("{} cannot be suppressed", code.id()))
                        .label(allow.code.span, "suppresses nothing")
                        .help("without it there is no plan: mend what it reports")
                        .fix("remove the suppression", removal_span(sources, allow.span), ""),
                ),
                None => diagnostics.push(unknown_code(&allow)),
            }
        }
        Suppressions { active, hidden: BTreeSet::new() }
    }

    /// Takes out what is suppressed.
    pub(crate) fn apply(&mut self, diagnostics: &mut Diagnostics) {
        if self.active.is_empty() {
            return;
        }
        let hidden = &mut self.hidden;
        diagnostics.suppress(|diagnostic| {
            let mut dropped = false;
            // All of them are looked at, even after one has dropped it: each that covers the problem counts as used.
            for (_, allow, used) in self.active.iter_mut().filter(|(code, ..)| *code == diagnostic.code) {
                let within =
                    match allow.scope {
                        Scope::Everywhere => true,
                        Scope::Within(scope) => diagnostic.span().into_iter().chain(diagnostic.home).any(|span| {
                            scope.file == span.file && scope.start <= span.start && span.start <= scope.end
                        }),
                    };
                *used |= within;
                dropped |= within;
            }
            if dropped {
                hidden.insert((diagnostic.span(), diagnostic.code, diagnostic.message.clone()));
            }
            dropped
        });
    }

    /// How many there are, how many of them were of use, and what they hide.
    pub(crate) fn count(&self) -> Suppressed {
        let used = self.active.iter().filter(|(.., used)| *used).count();
        Suppressed { written: self.active.len(), used, hidden: self.hidden.len() }
    }

    /// Reports those that suppressed nothing or give no reason. Without a plan, nothing was found in one.
    pub(crate) fn report_unused(self, planned: bool, sources: &Sources, diagnostics: &mut Diagnostics) {
        for (code, allow, used) in self.active {
            let looked = diagnostics.is_enabled(code) && (planned || !code.of_plan());
            // A library gets its own reports, such as those of unused declarations, when it is compiled itself.
            if !used && (!looked || is_imported(sources, allow.span.file)) {
                // Another profile, or a plan, may find something here.
            } else if !used {
                diagnostics.push(
                    Diagnostic::new(
                        Code::UnusedSuppression,
                        format!("this suppression of {} suppresses nothing", code.id()),
                    )
                    .label(allow.span, "nothing to suppress")
                    .help("remove it")
                    .fix("remove the suppression", removal_span(sources, allow.span), ""),
                );
            } else if allow.reason.as_ref().is_none_or(|reason| reason.trim().is_empty()) {
                let id = code.id();
                diagnostics.push(
                    Diagnostic::new(Code::UnusedSuppression, format!("this suppression of {id} gives no reason"))
                        .label(allow.span, "why is the spec right?")
                        .help(format!("write `allow {id} reason=\"…\"`, or the reason after `allow({id})`")),
                );
            }
        }
    }
}

fn unknown_code(allow: &Allow) -> Diagnostic {
    let ids: Vec<&str> = Code::ALL.iter().map(|code| code.id()).collect();
    let names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    let close = suggest::find_nearest(&allow.code.value, ids.into_iter().chain(names));
    let diagnostic = Diagnostic::new(Code::UnusedSuppression, format!("there is no check `{}`", allow.code.value))
        .label(allow.code.span, "suppresses nothing");
    match close {
        Some(close) => diagnostic.help(format!("did you mean `{close}`?")).write_near(allow.code.span, close),
        None => diagnostic.help("`swarmc explain` lists the checks"),
    }
}

/// Whether a file is a spec that another imports: the first file is the one that is compiled.
fn is_imported(sources: &Sources, file: FileId) -> bool {
    file.index() > 0 && sources.name(file).ends_with(".kdl")
}

/// What goes with a suppression: the `;` after it, and the line where nothing else stands on it.
pub(crate) fn removal_span(sources: &Sources, span: Span) -> Span {
    let text = sources.text(span.file);
    let (mut start, mut end) = (span.start as usize, span.end as usize);
    let blanks = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
    let gap = blanks(&text[end..]);
    if text[end + gap..].starts_with(';') {
        end += gap + 1;
        end += blanks(&text[end..]);
    }
    let line = text[..start].trim_end_matches([' ', '\t']).len();
    let rest = end + blanks(&text[end..]);
    let newline = text[rest..].strip_prefix('\r').unwrap_or(&text[rest..]);
    if (line == 0 || text[..line].ends_with('\n')) && newline.starts_with('\n') {
        (start, end) = (line, text.len() - newline.len() + 1);
    }
    let byte = |at: usize| u32::try_from(at).expect("files are under 4 GiB");
    Span::new(span.file, byte(start), byte(end))
}

/// The suppressions in a file's comments: each holds for its own line and the next one.
fn collect_suppressions(sources: &Sources, file: FileId) -> Vec<Allow> {
    let text = sources.text(file);
    let spec = sources.name(file).ends_with(".kdl");
    let mut found = Vec::new();
    for at in memchr::memmem::find_iter(text.as_bytes(), MARK) {
        let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let opening = if spec { "//" } else { "<!--" };
        let lead = text[line..at].trim_end();
        let Some(before) = lead.strip_suffix(opening) else { continue };
        let rest_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        let rest = &text[at + MARK.len()..rest_end];
        let Some((code, reason)) = rest.split_once(')') else { continue };
        let (reason, end) = match (spec, reason.find("-->")) {
            (true, _) => (reason, rest_end),
            (false, Some(close)) => (&reason[..close], rest_end - (reason.len() - close) + 3),
            (false, None) => continue,
        };
        let next_end = text[rest_end..]
            .char_indices()
            // The first character is the break of the comment's own line.
            .skip(1)
            .find(|(_, c)| *c == '\n')
            .map_or(text.len(), |(at, _)| rest_end + at);
        let byte = |at: usize| u32::try_from(at).expect("files are under 4 GiB");
        let start = line + before.len();
        let code_start = at + MARK.len();
        found.push(Allow {
            code: Spanned {
                value: code.trim().to_owned(),
                span: Span::new(file, byte(code_start), byte(code_start + code.len())),
            },
            reason: Some(reason.trim().to_owned()),
            span: Span::new(file, byte(start), byte(end)),
            scope: Scope::Within(Span::new(file, byte(line), byte(next_end))),
        });
    }
    found
}
