//! Resolves context packs: their texts, their files, the packs they merge, and the steps whose work they hand on.
//!
//! A pack names steps and members of the places that read it. A place leaves out the names that it does not have; the
//! resolver reports a name that no place has.

use std::collections::{BTreeMap, BTreeSet};

use super::text::{Has, PACK};
use super::{Resolver, order, text};
use crate::ast::{self, Name, Spanned, Summary};
use crate::code::{Code, Severity};
use crate::diagnostic::Diagnostic;
use crate::files::Entry;
use crate::model::{Agent, Made, Pack, PackRule, Pipeline, Read, Step, Swarm};
use crate::suggest;
use crate::symbols::NameKind;
use crate::syntax::Text;

impl<'a> Resolver<'_, 'a, '_, '_> {
    pub(super) fn resolve_packs(&mut self, agents: &[Agent<'a>]) -> Vec<Pack<'a>> {
        let spec = self.spec;
        let made = if spec.packs.is_empty() { Vec::new() } else { self.made_by_any() };
        let packs: Vec<Pack<'a>> = spec.packs.iter().map(|pack| self.resolve_pack(pack, &made, agents)).collect();
        let merged = |pack: &Pack<'_>| pack.rules.iter().filter_map(PackRule::merged_pack).collect::<Vec<usize>>();
        let needs: Vec<Vec<usize>> = packs.iter().map(merged).collect();
        for circle in order::find_cycles(&needs) {
            self.diagnostics.push(merged_in_circle(&packs, &circle));
        }
        packs
    }

    /// A pack; `made` are the patterns of what tasks write.
    fn resolve_pack(&mut self, pack: &'a ast::ContextPack, made: &[&str], agents: &[Agent<'a>]) -> Pack<'a> {
        let (mut reads, mut files_made) = (Vec::new(), Vec::new());
        let rules = pack.rules.iter().map(|rule| match &rule.value {
            ast::PackRule::Goal(text) => self.pack_texts(std::slice::from_ref(text), &mut reads),
            ast::PackRule::DefinitionOfDone(texts) => self.pack_texts(texts, &mut reads),
            ast::PackRule::Docs { path, lines } => {
                let made = |path: &str| made.iter().any(|glob| fast_glob::glob_match(glob, path));
                let span = path.span(0..path.as_str().len());
                let found = self.loader.find_entry(path.as_str(), Entry::File, span, Some(&made), self.diagnostics);
                files_made.extend(found.map(|path| Made { path, span }));
                let written = self.loader.workspace_path(path.as_str(), span).is_some_and(|path| made(&path));
                // A task may write more lines before the pack is read.
                if let Some(lines) = lines.as_ref().filter(|_| !written)
                    && let Some(text) = self.loader.peek_text(path.as_str(), span)
                {
                    self.diagnostics.extend(report_lines(path, lines, text.lines().count()));
                }
                PackRule::Plain
            }
            ast::PackRule::Files { globs, summary, .. } => {
                for glob in globs {
                    self.loader.resolve_path(glob.as_str(), glob.span(0..glob.as_str().len()), self.diagnostics);
                }
                match summary {
                    Summary::Agent(Some(name), _) => PackRule::Summed(self.agent_named(name, agents)),
                    Summary::Agent(None, span) => {
                        let message = format!(
                            "context pack `{}` needs an agent for its summaries, but names none",
                            pack.name.value
                        );
                        PackRule::Summed(self.sole_agent(&message, "no agent named", *span, agents))
                    }
                    Summary::None | Summary::Rule => PackRule::Plain,
                }
            }
            ast::PackRule::Merge(name) => {
                PackRule::Merge(self.tables.resolve_name(NameKind::Pack, name, self.diagnostics))
            }
            _ => PackRule::Plain,
        });
        let rules = rules.collect();
        Pack { ast: pack, rules, reads, made: files_made }
    }

    fn pack_texts(&mut self, texts: &[Text], reads: &mut Vec<Read>) -> PackRule {
        let mut proses = Vec::with_capacity(texts.len());
        for text in texts {
            let prose = text::scan_inline(text, self.loader, self.diagnostics);
            self.file_reads(&prose, None);
            reads.extend(self.free_reads(&prose, None, PACK, Has::default()));
            proses.push(prose);
        }
        PackRule::Texts(proses)
    }

    /// What tasks of any pipeline say they write.
    fn made_by_any(&self) -> Vec<&'a str> {
        self.list_all_steps().into_iter().flat_map(|step| &step.writes).map(Text::as_str).collect()
    }

    /// The same where pipelines call each other, as the caller may read what the called one makes, and the other way round.
    pub(super) fn made_across_calls(&self) -> &[&'a str] {
        self.made_across_calls.get_or_init(|| {
            let calls = |step: &&ast::Step| matches!(step.body, Some(ast::Body::Call { .. }));
            if self.list_all_steps().iter().any(calls) { self.made_by_any() } else { Vec::new() }
        })
    }

    fn list_all_steps(&self) -> Vec<&'a ast::Step> {
        let spec = self.spec;
        let mut open: Vec<&'a ast::Step> =
            spec.pipelines.iter().flat_map(|pipeline| &pipeline.steps).chain(&spec.tasks).collect();
        let mut all = Vec::new();
        while let Some(step) = open.pop() {
            all.push(step);
            if let Some(ast::Body::Loop(body)) = &step.body {
                open.extend(&body.steps);
            }
        }
        all
    }

    /// Whose work the packs of a step hand on.
    pub(super) fn list_contributors(&self, step: &Step<'a>) -> Vec<&'a Name> {
        let of_texts = step.reads.iter().filter_map(|read| read.pack());
        let given: Vec<usize> = step.context.iter().copied().chain(of_texts).collect();
        if given.is_empty() {
            return Vec::new();
        }
        let mut names = Vec::new();
        for pack in self.taken_in_by(given) {
            names.extend(handed_on(&self.spec.packs[pack]));
        }
        names
    }

    /// These packs and all that they take in.
    fn taken_in_by(&self, packs: Vec<usize>) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open = packs;
        while let Some(pack) = open.pop() {
            // Packs that merge each other in a circle are reported by `resolve_packs`, and walked here all the same.
            if seen.insert(pack) {
                open.extend(self.spec.packs[pack].rules.iter().filter_map(|rule| match &rule.value {
                    ast::PackRule::Merge(name) => {
                        self.tables.find_name(NameKind::Pack, &name.value, true, name.span.file)
                    }
                    _ => None,
                }));
            }
        }
        seen
    }

    /// Marks the used packs, and reports steps and members that a pack names but no place that reads it has.
    pub(super) fn packs_given(&mut self, packs: &[Pack<'a>], pipelines: &[Pipeline<'a>], swarms: &[Swarm<'a>]) {
        let used: Vec<usize> = (0..packs.len()).filter(|&pack| self.uses.packs[pack]).collect();
        for pack in self.taken_in_by(used) {
            self.uses.packs[pack] = true;
        }
        if packs.iter().all(|pack| handed_on(pack.ast).is_empty()) {
            return;
        }
        // By pack, the places that read it: pipelines first, then swarms.
        let mut places: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let of_reads = |reads: &[Read]| reads.iter().filter_map(|read| read.pack()).collect::<Vec<usize>>();
        let of_steps = pipelines.iter().map(|pipeline| {
            let steps = pipeline.steps.iter();
            steps.flat_map(|step| step.context.iter().copied().chain(of_reads(&step.reads))).collect::<Vec<usize>>()
        });
        for (place, given) in of_steps.chain(swarms.iter().map(|swarm| of_reads(&swarm.reads))).enumerate() {
            for pack in self.taken_in_by(given) {
                places.entry(pack).or_default().insert(place);
            }
        }
        let everywhere: BTreeSet<usize> = (0..pipelines.len() + swarms.len()).collect();
        let people: Vec<BTreeSet<&str>> = pipelines
            .iter()
            .map(|pipeline| pipeline.steps.iter().map(Step::name).collect())
            .chain(swarms.iter().map(|swarm| {
                let leader = swarm.ast.leader.iter().map(|leader| leader.name.value.as_str());
                leader.chain(swarm.ast.members.iter().map(|member| member.name.value.as_str())).collect()
            }))
            .collect();
        for (index, pack) in packs.iter().enumerate() {
            let places = places.get(&index).unwrap_or(&everywhere);
            for name in handed_on(pack.ast) {
                let has = |place: &&usize| people[**place].contains(name.value.as_str());
                match places.iter().find(has).map(|place| place.checked_sub(pipelines.len())) {
                    None => {
                        let known: BTreeSet<&str> =
                            places.iter().flat_map(|&place| people[place].iter().copied()).collect();
                        self.diagnostics.push(unknown_contributor(pack, name, &known));
                    }
                    // No pipeline has it, for those come first.
                    Some(Some(swarm)) => self.diagnostics.push(of_a_member(pack, name, &swarms[swarm])),
                    Some(None) => {}
                }
            }
        }
    }
}

/// The steps and members that a pack names.
fn handed_on(pack: &ast::ContextPack) -> Vec<&Name> {
    let mut names = Vec::new();
    for rule in &pack.rules {
        match &rule.value {
            ast::PackRule::Inputs(inputs) => names.extend(inputs),
            ast::PackRule::Artifacts { from, .. } => names.push(from),
            _ => {}
        }
    }
    names
}

fn unknown_contributor(pack: &Pack<'_>, name: &Name, known: &BTreeSet<&str>) -> Diagnostic {
    let known: Vec<&str> = known.iter().copied().collect();
    let (close, help) = suggest::did_you_mean(&name.value, &known, "where it is read there are ");
    let message = format!("there is no step or member `{}` where pack `{}` is read", name.value, pack.ast.name.value);
    let diagnostic =
        Diagnostic::new(Code::UnknownReference, message).label(name.span, "not found there").help_maybe(help);
    match close {
        Some(close) => diagnostic.write_near(name.span, close),
        None => diagnostic,
    }
}

/// A pack that reads from a member: the pack is built before any member acts, so there is nothing to read.
fn of_a_member(pack: &Pack<'_>, name: &Name, swarm: &Swarm<'_>) -> Diagnostic {
    let (pack, member, swarm) = (&pack.ast.name.value, &name.value, &swarm.ast.name);
    let message = format!("member `{member}` of swarm `{}` has no output for pack `{pack}`", swarm.value);
    Diagnostic::new(Code::UnknownReference, message)
        .label(name.span, "a member has no output yet")
        .label(swarm.span, "read here, before any member acts")
        .help(format!(
            "remove `{member}`: members see what others write and publish; a pack reads the work of steps only"
        ))
}

/// Lines that a document does not have, so that the pack would hold nothing of it.
fn report_lines(path: &Text, lines: &Spanned<(u32, u32)>, count: usize) -> Option<Diagnostic> {
    let (first, last) = lines.value;
    if usize::try_from(first).is_ok_and(|first| first <= count) {
        return None;
    }
    let shown = if first == last { first.to_string() } else { format!("{first}-{last}") };
    let has = match count {
        0 => "is empty".to_owned(),
        1 => "has one line".to_owned(),
        count => format!("has {count} lines"),
    };
    let message = format!("`{}` {has}, so `{shown}` takes nothing of it", path.as_str());
    let mut diagnostic = Diagnostic::new(Code::WrongValue, message)
        .label(lines.span, "behind its end")
        .help("write lines that it has, or leave `lines=` out for all of them");
    // An agent can still write to the file.
    diagnostic.severity = Some(Severity::Warning);
    Some(diagnostic)
}

/// Packs that merge each other, drawn.
fn merged_in_circle(packs: &[Pack<'_>], circle: &[usize]) -> Diagnostic {
    const DRAWN: usize = 6;
    let name = |pack: usize| packs[pack].ast.name.value.as_str();
    let message = match circle {
        [only] => format!("context pack `{}` merges itself", name(*only)),
        _ => {
            let way: Vec<String> =
                circle.iter().chain(&circle[..1]).take(DRAWN + 1).map(|&pack| format!("`{}`", name(pack))).collect();
            format!("these context packs merge each other: {}", way.join(" → "))
        }
    };
    let steps = circle.iter().zip(circle.iter().cycle().skip(1)).take(DRAWN);
    steps
        .fold(Diagnostic::new(Code::Cycle, message), |diagnostic, (&pack, &next)| {
            let rules = packs[pack].rules.iter().zip(&packs[pack].ast.rules);
            match rules.into_iter().find(|(rule, _)| rule.merged_pack() == Some(next)) {
                Some((_, written)) => {
                    diagnostic.label(written.span, format!("`{}` merges `{}`", name(pack), name(next)))
                }
                None => diagnostic,
            }
        })
        .help("remove one of these `merge` nodes")
}
