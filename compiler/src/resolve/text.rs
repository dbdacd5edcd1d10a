//! Resolves template texts: where they come from, what is wrong with them, and what they read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::ast::{Name, Source, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::files::Entry;
use crate::load::Loader;
use crate::mapped_text::MappedText;
use crate::model::{Condition, Read, ReadTarget, TemplateText};
use crate::resolve::params::Params;
use crate::resolve::pipeline::Within;
use crate::source::{FileId, Span};
use crate::suggest::{self, Near};
use crate::symbols::names;
use crate::symbols::{NameKind, Tables};
use crate::syntax::Text;
use crate::template::{self, Root};

/// The text of a source, includes in place; none when a file or a shared prompt is not there.
pub(super) fn load_passage(
    source: &Source,
    loader: &mut Loader<'_>,
    shared: &mut dyn FnMut(&Spanned<String>, &mut Diagnostics) -> Option<MappedText>,
    diagnostics: &mut Diagnostics,
) -> Option<MappedText> {
    let text = match source {
        Source::Inline(text) => {
            diagnostics.extend(path_for_text(text, loader));
            MappedText::from_string(text)
        }
        Source::File(path) => {
            let file = loader.resolve_file(path.as_str(), path.span(0..path.as_str().len()), diagnostics)?;
            MappedText::from_file(file, loader.facts(file), path.span(0..0).file)
        }
        Source::Ref(name) => return shared(name, diagnostics),
    };
    Some(loader.expand_includes(text, diagnostics))
}

/// Reports a text that is nothing but the path of a file that is there.
fn path_for_text(text: &Text, loader: &Loader<'_>) -> Option<Diagnostic> {
    let path = text.as_str();
    // Few texts look like a path, so this test spares most of them a look at the disk.
    let shaped = path.contains(['.', '/']) && !path.contains(|sign: char| sign.is_whitespace() || sign == '<');
    let place = text.outer_span();
    let found = shaped.then(|| loader.workspace_path(path, place)).flatten()?;
    if loader.workspace().find(&found) != Ok(Entry::File) {
        return None;
    }
    Some(
        Diagnostic::new(Code::WrongValue, format!("the text is the path `{path}`, not the content of that file"))
            .label(place, "the path of a file")
            .help(format!("write `file=\"{path}\"`"))
            .fix("write `file=`", Span { end: place.start, ..place }, "file="),
    )
}

/// Scans a text and reports what is wrong with it.
pub(super) fn scan_prose(passage: MappedText, wrap: bool, diagnostics: &mut Diagnostics) -> TemplateText {
    let template = passage.template();
    template.problems.iter().for_each(|wrong| diagnostics.push(passage.report_problem(wrong)));
    TemplateText { passage, template, wrap }
}

/// A text that stands in the spec.
pub(super) fn scan_inline(text: &Text, loader: &mut Loader<'_>, diagnostics: &mut Diagnostics) -> TemplateText {
    let passage = loader.expand_includes(MappedText::from_string(text), diagnostics);
    scan_prose(passage, false, diagnostics)
}

/// Reports `${NAME}` in a prompt where NAME is a parameter or a step: a shell would put a value there, and nothing here
/// does.
pub(super) fn report_shell_reads(
    prose: &TemplateText,
    within: &Within<'_>,
    tables: &Tables,
    diagnostics: &mut Diagnostics,
) {
    if !prose.passage.mentions_shell() {
        return;
    }
    let file = within.file;
    let is_param = |name: &str| {
        within.params.find_exact(name).is_some() || tables.find_name(NameKind::Param, name, true, file).is_some()
    };
    let text = prose.passage.text();
    let plain = prose.template.parts.iter().filter_map(|part| match part {
        template::Part::Text(range) => Some(range.clone()),
        _ => None,
    });
    for range in plain.take(template::MAX_PROBLEMS) {
        for (at, _) in text[range.clone()].match_indices("${").take(template::MAX_PROBLEMS) {
            let start = range.start + at;
            // Without a `}` behind this one, none of those that follow has one either.
            let Some((name, _)) = text[start + 2..range.end].split_once('}') else { break };
            let meant = match (is_param(name), within.steps.find_exact(name)) {
                (true, _) => format!("<<param:{name}>>"),
                (false, Some(_)) => format!("<<output:{name}>>"),
                (false, None) => continue,
            };
            let span = prose.passage.span(start..start + name.len() + 3);
            diagnostics.push(
                Diagnostic::new(Code::LegacyDirective, format!("nothing replaces `${{{name}}}`"))
                    .label(span, "stays as it is")
                    .help(format!("write `{meant}`"))
                    .unsafe_fix(format!("write `{meant}`"), span, meant),
            );
        }
    }
}

/// Reads a condition and reports what is wrong with it.
pub(super) fn parse_condition(text: &Arc<Text>, diagnostics: &mut Diagnostics) -> Condition {
    let expression = template::parse_expression(text.as_str());
    let passage = MappedText::from_string(text);
    expression.problems.iter().for_each(|wrong| diagnostics.push(passage.report_problem(wrong)));
    Condition { text: Arc::clone(text), expression }
}

/// What may be read in a place.
pub(super) struct Scope<'s> {
    /// What the steps of the pipeline see; none where no step can be read.
    pub(super) steps: Option<&'s Within<'s>>,
    /// The ports of the step: what they are called, and the step behind them where it is known.
    pub(super) ports: &'s [(String, Option<usize>)],
    pub(super) params: Params<'s>,
    /// Where names that the plan spells otherwise are kept.
    pub(super) renames: &'s mut BTreeMap<(FileId, Span), (String, usize)>,
    /// The task whose text it is, where it is one.
    pub(super) task: Option<&'s str>,
    /// What the place is, for messages: "an `env` of a provider".
    pub(super) place: &'s str,
    /// What besides steps and parameters is there.
    pub(super) has: Has,
}

/// What is there where a text is rendered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Has {
    /// The item of a for-each, and its position.
    pub(super) item: bool,
    /// Messages.
    pub(super) inbox: bool,
    /// Team mates, what they share, and the items of their plan.
    pub(super) team: bool,
}

impl Has {
    /// All that a member of a swarm has.
    pub(super) const TURNS: Has = Has { item: false, inbox: true, team: true };
}

/// What a text or condition reads, each name looked up.
pub(super) fn resolve_reads(
    found: &[template::Read],
    passage: &MappedText,
    scope: &mut Scope<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<Read> {
    found.iter().filter_map(|read| resolve_read(read, passage, scope, diagnostics)).collect()
}

fn resolve_read(
    read: &template::Read,
    passage: &MappedText,
    scope: &mut Scope<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Read> {
    let span = passage.span(read.range.clone());
    let (mut target, mut in_name) = (None, 0);
    // In expressions `_` stands for `-`, and never the other way round.
    let exact = read.via_directive || read.name.as_deref().is_some_and(|name| name.contains('-'));
    // How a name is written in this place.
    let quote = passage.text()[read.range.clone()].chars().next().filter(|sign| matches!(sign, '"' | '\''));
    let spelt = |name: &str| match (quote, read.via_directive) {
        // A string of the spec may stand around it, in which `"` would end it.
        (Some(_), false) => format!("'{name}'"),
        (_, true) => name.to_owned(),
        (None, false) => names::normalize_name(name),
    };
    if let Some(lack) = unavailable_read(read, scope, span) {
        diagnostics.push(lack);
        return None;
    }
    // A reference without a name (`{{ output }}`) reads nothing in particular, or has been reported.
    let name = read.name.as_deref();
    match (read.root, name) {
        (Root::Output | Root::Previous | Root::Status | Root::Exit | Root::Error | Root::Log, Some(name)) => {
            let Some(within) = scope.steps else {
                diagnostics.push(no_steps(scope.place, read.root, span));
                return None;
            };
            let left_out = |task: &&str| if exact { *task == name } else { template::same_name(task, name) };
            match within.steps.find(name, exact) {
                Some(index) => target = Some(ReadTarget::Step(index)),
                None if within.left_out.iter().any(left_out) => {
                    // A directive with the whole value renders a placeholder for it; a field or an expression has none.
                    let renders = read.via_directive && read.fields.is_empty();
                    if !read.guarded && !renders {
                        diagnostics.push(left_out_value(name, within.name, read, passage));
                    }
                }
                None => {
                    // What a step reads of its own is of the round before.
                    let own = scope.task.filter(|_| !matches!(read.root, Root::Previous | Root::Log));
                    diagnostics.push(unknown_step(name, within, own, span, &spelt));
                    return None;
                }
            }
        }
        (Root::Context, Some(name)) => {
            let home = passage.home(read.range.start);
            // The pack of an import: its qualifier and its name.
            let field = read.fields.first();
            let whole = field.map_or_else(|| name.to_owned(), |field| format!("{name}.{field}"));
            match scope.params.tables.find_name(NameKind::Pack, &whole, exact, home) {
                Some(found) => {
                    target = Some(ReadTarget::Pack(found));
                    in_name = usize::from(field.is_some());
                    scope.params.uses.packs[found] = true;
                    let in_plan = &scope.params.packs[found].name.value;
                    if field.is_some() || !template::same_name(in_plan, name) {
                        let place = (home, passage.span(read.whole.clone()));
                        scope.renames.insert(place, (in_plan.clone(), in_name));
                    }
                }
                None => {
                    let end = name_end(read, passage, usize::from(field.is_some()));
                    let span = passage.span(read.range.start..end);
                    diagnostics.push(scope.params.tables.unknown_name(NameKind::Pack, &whole, span, home, &spelt, &[]));
                    return None;
                }
            }
        }
        (Root::Input, Some(name)) => {
            let known: Vec<&str> = scope.ports.iter().map(|(port, _)| port.as_str()).collect();
            let port = scope.ports.iter().find(|(port, _)| match exact {
                true => port == name,
                false => template::same_name(port, name),
            });
            match port {
                Some((_, Some(step))) => target = Some(ReadTarget::Step(*step)),
                // Of a task that is left out, or of one that is not there, which has been reported.
                Some((_, None)) => {
                    let renders = read.via_directive && read.fields.is_empty();
                    if let Some(within) =
                        scope.steps.filter(|within| !within.left_out.is_empty() && !read.guarded && !renders)
                    {
                        diagnostics.push(left_out_value(name, within.name, read, passage));
                    }
                    return None;
                }
                None => {
                    let (close, help) = suggest::did_you_mean(name, &known, "its inputs are ");
                    let help = help.unwrap_or_else(|| format!("declare it in the task: `input {name} from=STEP`"));
                    let diagnostic = Diagnostic::new(Code::UnknownReference, format!("the task has no input `{name}`"))
                        .label(span, "not an input of this task")
                        .help(help);
                    diagnostics.push(attach_fix(diagnostic, close, span, &spelt));
                    return None;
                }
            }
        }
        (Root::Param, Some(name)) => match scope.params.resolve_param(read, passage, exact, &spelt) {
            Ok((found, fields)) => {
                target = Some(ReadTarget::Param(found));
                in_name = fields;
                if let Some(renamed) = scope.params.plan_name(found, fields, name) {
                    let place = (passage.home(read.range.start), passage.span(read.whole.clone()));
                    scope.renames.insert(place, (renamed, fields));
                }
            }
            Err(unknown) => {
                diagnostics.push(*unknown);
                return None;
            }
        },
        _ => {}
    }
    Some(Read {
        root: read.root,
        target,
        name: read.name.clone(),
        fields: locate_fields(read, passage).split_off(in_name),
        span,
        whole: passage.span(read.whole.clone()),
        guarded: read.guarded,
        leans: read.follows || read.keyed,
        optional: read.keyed && !read.follows,
        directive: read.via_directive,
        in_when: false,
        assumes: read.assumes.clone(),
    })
}

/// The fields of a read, each with its place: after the name, in order.
pub(super) fn locate_fields(read: &template::Read, passage: &MappedText) -> Vec<Name> {
    let places = field_ranges(read, passage);
    let field = |(field, range): (&String, _)| Spanned { value: field.clone(), span: passage.span(range) };
    read.fields.iter().zip(places).map(field).collect()
}

/// Where the name of a read ends when so many of its fields belong to it.
pub(crate) fn name_end(read: &template::Read, passage: &MappedText, fields: usize) -> usize {
    field_ranges(read, passage).take(fields).last().map_or(read.range.end, |range| range.end)
}

fn field_ranges(read: &template::Read, passage: &MappedText) -> impl Iterator<Item = Range<usize>> {
    let mut at = read.range.end;
    read.fields.iter().map(move |field| {
        let found = passage.text().get(at..read.whole.end).and_then(|rest| rest.find(field.as_str()));
        let range = found.map_or(read.range.clone(), |found| at + found..at + found + field.len());
        at = range.end;
        range
    })
}

/// A reference to a step that is not there; `own` is the step that refers, where it cannot mean itself.
pub(super) fn unknown_step(
    name: &str,
    within: &Within<'_>,
    own: Option<&str>,
    span: Span,
    spelt: &dyn Fn(&str) -> String,
) -> Diagnostic {
    let pipeline = within.name;
    let words = || name.split([',', ' ']).filter(|word| !word.is_empty());
    if name.contains([',', ' ']) && words().count() > 1 {
        let words = words().collect::<Vec<_>>().join(" ");
        return Diagnostic::new(Code::UnknownReference, format!("there is no step `{name}` in pipeline `{pipeline}`"))
            .label(span, "several names in one text")
            .help(format!("write them one after another, without quotes: `{words}`"));
    }
    let known: Vec<&str> = within.steps.iter().filter(|step| Some(*step) != own).collect();
    let (close, help) = suggest::did_you_mean(name, &known, "its steps are ");
    let alone = |own| format!("`{own}` is its only step; use a `param` for a value of another pipeline");
    let help = help.or_else(|| own.map(alone));
    let diagnostic =
        Diagnostic::new(Code::UnknownReference, format!("there is no step `{name}` in pipeline `{pipeline}`"))
            .label(span, "not a step of this pipeline")
            .help_maybe(help);
    attach_fix(diagnostic, close, span, spelt)
}

fn attach_fix(
    diagnostic: Diagnostic,
    close: Option<Near<'_>>,
    span: Span,
    spelt: &dyn Fn(&str) -> String,
) -> Diagnostic {
    match close {
        Some(close) => {
            let text = spelt(close.name);
            diagnostic.edit(format!("write `{text}`"), span, text, close.certain)
        }
        None => diagnostic,
    }
}

/// A value of a task that `use partial=#true` left out, where no placeholder can stand for it.
fn left_out_value(name: &str, pipeline: &str, read: &template::Read, passage: &MappedText) -> Diagnostic {
    let word = template::Kind::Read(read.root).as_str();
    let plain = name.replace('-', "_");
    let diagnostic = Diagnostic::new(
        Code::OutputMayBeSkipped,
        format!("`{name}` is left out of pipeline `{pipeline}`, and has no {word} there"),
    )
    .label(passage.span(read.range.clone()), "missing here")
    .help(format!("ask first: `{word}.{plain} is defined and …`, or write `| default(\"\")`, or `use {name}` as well"));
    if read.via_directive { diagnostic } else { diagnostic.give_default(passage.span(read.whole.clone())) }
}

fn no_steps(place: &str, root: Root, span: Span) -> Diagnostic {
    let word = template::Kind::Read(root).as_str();
    let (why, help) = match place {
        PACK => ("it is the same for every step", "use `inputs STEP` instead: it gives the output of a step"),
        GOAL | TURN => (
            "a swarm stands outside of every pipeline",
            "let a task start the swarm and pass it on: `swarm NAME goal=\"<<output:STEP>>\"`",
        ),
        _ => {
            ("it is the same for every step", "write it where it is used, in the `env`, `stdin` or `prompt` of a task")
        }
    };
    Diagnostic::new(Code::BadDirective, format!("{place} cannot read `{word}`: {why}"))
        .label(span, "reads a step")
        .help(help)
}

/// What a context pack is called in messages.
pub(super) const PACK: &str = "a context pack";
/// What the goal of a swarm is called.
pub(super) const GOAL: &str = "the goal of a swarm";
/// What a text of a member is called.
pub(super) const TURN: &str = "a member of a swarm";

/// The edge that would lead to the task of a place.
fn suggest_edge(scope: &Scope<'_>) -> Option<String> {
    let (task, within) = (scope.task?, scope.steps?);
    let other = within.talkers.iter().copied().find(|name| *name != task).unwrap_or("SENDER");
    Some(format!("let another task write to it: `edges {{ {other} -> {task} }}` in pipeline `{}`", within.name))
}

/// Something that is read and that is not there in this place.
fn unavailable_read(read: &template::Read, scope: &Scope<'_>, span: Span) -> Option<Diagnostic> {
    let word = template::Kind::Read(read.root).as_str();
    let report = |message: String, label: &str, help: &str| {
        Some(Diagnostic::new(Code::BadDirective, message).label(span, label).help(help))
    };
    match read.root {
        Root::Input if scope.steps.is_none() => Some(no_steps(scope.place, read.root, span)),
        Root::Item | Root::Index if !scope.has.item && scope.steps.is_none() => {
            report(format!("there is no `{word}` here"), "no `for-each`", "only a task with a `for-each` has one")
        }
        Root::Item | Root::Index if scope.place == "a `when`" || scope.place == "a `for-each`" => report(
            format!("{} cannot read `{word}`: only the body can read it", scope.place),
            "decided before the first item",
            "to leave items out, filter the list: `for-each \"output.find | selectattr('fix')\"`",
        ),
        Root::Item | Root::Index if !scope.has.item => report(
            format!("there is no `{word}` here: the task is not repeated over a list"),
            "no `for-each`",
            "write `for-each \"LIST\"` in the task; its prompt, `stdin`, `env` and `value` then see `item` and `index`",
        ),
        Root::Inbox if !scope.has.inbox => report(
            format!("there is no `{word}` here: no task or member sends messages to it"),
            "no messages",
            &suggest_edge(scope).unwrap_or_else(|| {
                "members of a `swarm` have one, and tasks that an edge in `edges` leads to".to_owned()
            }),
        ),
        Root::Shared | Root::Team | Root::Plan if !scope.has.team => report(
            format!("there is no `{word}` here: only members of a swarm have one"),
            "not in a swarm",
            &match scope.steps.filter(|within| within.steps.find_exact(word).is_some()) {
                Some(_) => format!("for the output of the step `{word}`, write `<<output:{word}>>`"),
                None => "write it in the text of a `member`, or in the `system` of an agent that only members use"
                    .to_owned(),
            },
        ),
        _ => None,
    }
}
