//! Context packs: evaluates the rules of a pack for a turn, cuts the text to size, stores it and shows it in the
//! prompt.
//!
//! In: the rules of a pack, and the state. Out: a text, built once for an attempt, however many readers it has. In a
//! replay, files and the time come from the recording.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use swarmc_plan::{Body, ContextPack, PACK_FILES, PackRule};

use super::file_summaries::{self, Summaries, Wanted};
use super::handoff::format_timestamp;
use super::{Evaluator, Made};
use crate::core::graph::{Key, Kind, StepRef};
use crate::core::state::State;
use crate::driver::run::values::View;
use crate::eval::pack::{self, ArtifactRef, DocRef, FileRef, Fitted, Head, InputRef, Item, Part, Walk};
use crate::io::workspace_file::read_file;
use crate::types::artifact::{ArtifactKind, ArtifactMeta, Stored, id_of};
use crate::types::event::{Status, StepId};
use crate::types::handoff::Envelope;
use crate::types::observer::Stream;
use crate::types::secrets::Secrets;

/// The packs that are taken in at most, one inside the other.
const DEPTH: usize = 32;

/// The bytes of a log or a prompt that becomes an artifact.
const LARGEST: u64 = 16 << 20;

/// The artifacts of one rule at most, the latest.
const ARTIFACTS: usize = 20;

/// The characters that a pack shows of an output.
const MESSAGE: usize = 200;

/// A pack that an attempt was given.
#[derive(Debug)]
pub(crate) struct Packed {
    pub step: StepId,
    pub attempt: u32,
    pub name: String,
    /// As it stands in the prompt.
    pub text: String,
    /// It, and what it refers to that was stored for it.
    pub kept: Vec<ArtifactMeta>,
}

/// What a rule asks for, as far as the run itself knows it.
#[derive(Debug)]
enum RuleContent<'r> {
    Known(Vec<Item>),
    Docs(&'r str, Option<(u64, u64)>),
    Files { globs: &'r [String], max: usize, by: By<'r> },
}

/// What sums up the files of a rule.
#[derive(Clone, Copy, Debug)]
enum By<'r> {
    None,
    Rule,
    Agent(&'r str),
}

impl Evaluator<'_> {
    /// The pack called `name` as an attempt of a step has it.
    ///
    /// # Errors
    /// A text of it cannot be rendered, or it is too large where that is an error.
    pub(crate) fn build_pack(
        &self,
        (state, key): (&State, Key),
        attempt: u32,
        name: &str,
        made: &Made,
    ) -> Result<Arc<Packed>, String> {
        let step = state.id(key);
        if let Some(known) = made.find_pack(&step, attempt, name) {
            return Ok(known);
        }
        let declared = self.plan.packs.iter().find(|pack| pack.name == name);
        let declared = declared.ok_or_else(|| format!("the plan has no context pack `{name}`"))?;
        let definition = self.step_definition(state, key);
        let view = View { attempt, ..self.build_view(state, key.frame, Some(definition), made)? };
        let (mut rules, mut packs) = (Vec::<(usize, &PackRule)>::new(), vec![name]);
        self.collect_rules(declared, 0, &mut packs, &mut rules);
        let appended = packs.iter().filter_map(|&pack| state.appended.get(pack)).flatten();
        let appended = appended.map(|text| self.texts.load_text(text)).collect::<Result<Vec<String>, String>>()?;
        let mut kept = Vec::new();
        let asked =
            rules.iter().map(|(depth, rule)| Ok((*depth, *rule, self.resolve_rule(rule, &view, key, &mut kept)?)));
        let asked = asked.collect::<Result<Vec<(usize, &PackRule, RuleContent<'_>)>, String>>()?;
        // Whatever the run itself knows is part of what is asked of the world, so that a recording of another spec does
        // not fit.
        let mut asks = format!("{declared:?}{asked:?}");
        appended.iter().for_each(|text| asks.push_str(text));
        // Blanked, as another run of the same plan has another folder and id.
        let question = format!("context-pack:{name}:{}", id_of(&self.source.blank(&asks)));
        let size = (declared.tokens, declared.on_overflow);
        let summaries = self.summaries_for((state, key), (&step, attempt), name, &asked, &view)?;
        let json = self.source.told((&step, attempt), &question, || {
            let mut parts = gather_parts(&asked, &view, &summaries, &self.secrets)?;
            if !appended.is_empty() {
                let items =
                    appended.iter().map(|text| Item::Appended(self.secrets.redact(text).into_owned())).collect();
                // In front, so that it is cut last: a person wrote it for this run.
                parts.insert(0, Part { label: "appended".to_owned(), depth: 0, items, omitted: None });
            }
            pack::fit(name, &self.build_head(state, key, &view), &parts, size).map(|fitted| fitted.json)
        })?;
        let fitted = Fitted::read(name, json)?;
        let content = made.blob(fitted.json.clone());
        let mut stored = ArtifactMeta::new(ArtifactKind::ContextPack, &fitted.json, content);
        (stored.id, stored.pack, stored.omitted) = (fitted.id.into(), Some(name.to_owned()), fitted.omitted);
        kept.insert(0, stored.truncate_texts());
        Ok(made.add_pack(Packed { step, attempt, name: name.to_owned(), text: fitted.text, kept }))
    }

    /// What agents have written of the files of a pack. Where they are still to be asked, that comes first.
    fn summaries_for(
        &self,
        (state, key): (&State, Key),
        of: (&StepId, u32),
        name: &str,
        asked: &[(usize, &PackRule, RuleContent<'_>)],
        view: &View<'_>,
    ) -> Result<Arc<Summaries>, String> {
        if !asked.iter().any(|(_, _, asked)| matches!(asked, RuleContent::Files { by: By::Agent(_), .. })) {
            return Ok(Arc::default());
        }
        let known = self.summaries.load(&*self.texts, state)?;
        if view.made.sums_up()
            && matches!(self.step_definition(state, key).body, Body::Prompt(_))
            && state.may_sum_up(key)
        {
            // Recorded as well: in a replay the files may have changed.
            let wanted = self.source.told(of, &format!("summaries:{name}"), || {
                let wanted = self.wanted_of((state, key), asked, view, &known)?;
                Ok(serde_json::to_string(&wanted).expect("texts are JSON"))
            })?;
            let wanted: Vec<Wanted> = serde_json::from_str(&wanted).map_err(|error| error.to_string())?;
            if !wanted.is_empty() {
                view.made.want_summaries(wanted);
                // Not a failure: the attempt is prepared anew, as one that sums up these files.
                return Err(format!("files of context pack `{name}` are to be summed up first"));
            }
        }
        Ok(known)
    }

    /// The files that an agent is to be asked about in one turn. One that has taken as many before this attempt as the
    /// plan counts is asked no more, however often they change meanwhile.
    fn wanted_of(
        &self,
        (state, key): (&State, Key),
        asked: &[(usize, &PackRule, RuleContent<'_>)],
        view: &View<'_>,
        known: &Summaries,
    ) -> Result<Vec<Wanted>, String> {
        let workspace = crate::eval::render::Values::workspace(view);
        let most = self.plan.summary_turns(self.step_definition(state, key));
        let may = |agent: &str| most.get(agent).is_some_and(|&most| state.count_summings(key, agent) < most);
        let mut all = Vec::new();
        for (_, _, asked) in asked {
            if let RuleContent::Files { globs, max, by: By::Agent(agent) } = asked
                && may(agent)
            {
                let found = Walk::new(workspace)?.find(globs, *max);
                all.extend(file_summaries::find_unsummarized(
                    agent,
                    &found.paths,
                    |path| read_redacted(workspace, path, &self.secrets),
                    known,
                ));
            }
        }
        Ok(file_summaries::take_batch(all))
    }

    /// The rules of a pack and of those that it takes in, each pack once.
    fn collect_rules<'s>(
        &'s self,
        pack: &'s ContextPack,
        depth: usize,
        seen: &mut Vec<&'s str>,
        rules: &mut Vec<(usize, &'s PackRule)>,
    ) {
        for rule in &pack.rules {
            match rule {
                PackRule::Merge(name) => {
                    let other = self.plan.packs.iter().find(|pack| pack.name == *name);
                    if let Some(other) = other.filter(|other| depth < DEPTH && !seen.contains(&other.name.as_str())) {
                        seen.push(&other.name);
                        self.collect_rules(other, depth + 1, seen, rules);
                    }
                }
                rule => rules.push((depth, rule)),
            }
        }
    }

    fn build_head(&self, state: &State, key: Key, view: &View<'_>) -> Head {
        let agent = match &self.step_definition(state, key).body {
            swarmc_plan::Body::Prompt(body) => self.plan.agent(&body.agent),
            _ => None,
        };
        Head {
            run: self.run.clone(),
            node: state.id(key).label(),
            created_at: format_timestamp(state.now()),
            mode: agent.and_then(|agent| agent.mode).or(self.plan.mode),
            permissions: agent.map(|agent| agent.permissions).unwrap_or_default(),
            docs_root: self.plan.docs_root.clone(),
            facts: pack::facts(crate::eval::render::Values::workspace(view)),
        }
    }

    /// What a rule asks for.
    fn resolve_rule<'r>(
        &self,
        rule: &'r PackRule,
        view: &View<'_>,
        key: Key,
        kept: &mut Vec<ArtifactMeta>,
    ) -> Result<RuleContent<'r>, String> {
        let text = |template| self.renderer.text(template, view).map_err(|error| error.message);
        let known = match rule {
            PackRule::Goal(goal) => vec![Item::Goal(text(goal)?)],
            PackRule::DefinitionOfDone(texts) => {
                texts.iter().map(|it| text(it).map(Item::Done)).collect::<Result<_, String>>()?
            }
            PackRule::Docs { path, lines } => return Ok(RuleContent::Docs(path, *lines)),
            PackRule::Files { globs, summary, agent, max } => {
                let by = match agent {
                    _ if !summary => By::None,
                    Some(agent) => By::Agent(agent),
                    None => By::Rule,
                };
                return Ok(RuleContent::Files { globs, max: max.unwrap_or(PACK_FILES) as usize, by });
            }
            PackRule::Fact { name, value } => vec![Item::Fact(pack::camel(name), value.clone())],
            PackRule::Inputs(names) => {
                let mut items = Vec::new();
                for name in names {
                    items
                        .extend(self.handed_by((view.state, view.made), key, name, kept)?.into_iter().map(Item::Input));
                }
                items
            }
            PackRule::Artifacts { kind, from } => {
                let Some(kind) = ArtifactKind::from_word(kind) else {
                    return Err(format!("there are no artifacts of kind `{kind}`"));
                };
                let artifacts = self.left_by((view.state, view.made), key, from, kind, kept)?;
                let reference = |kept: &ArtifactMeta| {
                    Item::Artifact(ArtifactRef {
                        id: kept.reference(),
                        kind: kind.as_str().to_owned(),
                        from: Some(from.clone()),
                    })
                };
                artifacts.iter().map(reference).collect()
            }
            PackRule::Constraint { name, value } => vec![Item::Constraint(pack::camel(name), value.clone())],
            PackRule::Merge(_) => Vec::new(),
        };
        Ok(RuleContent::Known(known))
    }

    /// What a step handed over to the reader of a pack: its envelopes, else its output.
    fn handed_by(
        &self,
        (state, made): (&State, &Made),
        key: Key,
        name: &str,
        kept: &mut Vec<ArtifactMeta>,
    ) -> Result<Vec<InputRef>, String> {
        let mut inputs = Vec::new();
        for letter in state.inputs(key) {
            let text = self.texts.load_text(&letter.content)?;
            // What a person writes is no envelope.
            let Ok(envelope) = serde_json::from_str::<Envelope>(&text) else { continue };
            if envelope.from_node_id == name {
                let (from, message) = (Some(name.to_owned()), Some(envelope.payload.message));
                inputs.push(InputRef { payload_id: envelope.id, from, message });
            }
        }
        let output = state.read_from_frame(key.frame, name).filter(|reading| reading.status == Some(Status::Succeeded));
        if let (true, Some(output)) = (inputs.is_empty(), output.and_then(|reading| reading.output)) {
            let text = self.texts.load_text(output)?;
            let report = self.kept_text(ArtifactKind::Report, &text, made);
            // Redacted before the cut, which could leave a part of a secret that is not found.
            let message = self.secrets.redact(&text).trim().chars().take(MESSAGE).collect();
            inputs.push(InputRef {
                payload_id: report.reference(),
                from: Some(name.to_owned()),
                message: Some(message),
            });
            let (scope, _) = state.address(key);
            if state.find_artifact(scope, Stored { kind: report.kind, id: &report.id }).is_none() {
                kept.push(report);
            }
        }
        Ok(inputs)
    }

    /// The artifacts that a step left.
    fn left_by(
        &self,
        (state, made): (&State, &Made),
        key: Key,
        name: &str,
        kind: ArtifactKind,
        kept: &mut Vec<ArtifactMeta>,
    ) -> Result<Vec<ArtifactMeta>, String> {
        let (scope, _) = state.address(key);
        let Some(spot) = state.graph.scope(state.region(scope).scope).find(name) else { return Ok(Vec::new()) };
        let mut known: Vec<ArtifactMeta> = state.artifacts(scope, spot, kind).cloned().collect();
        known.drain(..known.len().saturating_sub(ARTIFACTS));
        // The evaluator stores the output of a command when a pack asks for it.
        if !known.is_empty() || matches!(kind, ArtifactKind::Diff | ArtifactKind::ContextPack) {
            return Ok(known);
        }
        let texts = match kind {
            ArtifactKind::Report => {
                let output = state.read_from_frame(key.frame, name).and_then(|reading| reading.output);
                output.map(|output| self.texts.load_text(output)).transpose()?.into_iter().collect()
            }
            kind => self.files_of(state, (scope, spot), kind),
        };
        let made: Vec<ArtifactMeta> = texts.iter().map(|text| self.kept_text(kind, text, made)).collect();
        kept.extend(made.iter().cloned());
        Ok(made)
    }

    /// What the last attempt of a step left in files of the run.
    fn files_of(&self, state: &State, (scope, spot): (u32, StepRef), kind: ArtifactKind) -> Vec<String> {
        let (Some(layout), Some(key)) = (&self.layout, state.receiver(scope, spot)) else { return Vec::new() };
        let (id, attempt) = (state.id(key), state.step(key).attempt.max(1));
        // A for-each has no files of its own: its items have them.
        if matches!(state.node(key).kind, Kind::Each { .. }) {
            return Vec::new();
        }
        let log = |stream| layout.log_path(&id, attempt, stream);
        let paths = match kind {
            ArtifactKind::Prompt => vec![layout.prompt_path(&id, attempt)],
            ArtifactKind::Transcript => vec![log(Stream::Stdout)],
            _ => vec![log(Stream::Stdout), log(Stream::Stderr)],
        };
        let small = |path: &std::path::PathBuf| path.metadata().is_ok_and(|metadata| metadata.len() <= LARGEST);
        let read = paths.into_iter().filter(small).filter_map(|path| std::fs::read(path).ok());
        read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
    }

    fn kept_text(&self, kind: ArtifactKind, text: &str, made: &Made) -> ArtifactMeta {
        // By the blanked text, so that a replay elsewhere comes to the same id.
        let id = id_of(&self.source.blank(text)).into();
        ArtifactMeta { id, ..ArtifactMeta::new(kind, text, made.blob(text.to_owned())) }
    }
}

/// A file as a pack shows it. Whatever is cut of it later cuts no secret.
fn read_redacted(workspace: &Path, path: &str, secrets: &Secrets) -> Result<String, String> {
    read_file(workspace, path).map(|text| secrets.redact(&text).into_owned())
}

/// The result of the rules, with the files and the time, and the summaries that agents wrote.
fn gather_parts(
    asked: &[(usize, &PackRule, RuleContent<'_>)],
    view: &View<'_>,
    summaries: &Summaries,
    secrets: &Secrets,
) -> Result<Vec<Part>, String> {
    let workspace = crate::eval::render::Values::workspace(view);
    let mut parts = Vec::with_capacity(asked.len());
    for (depth, rule, asked) in asked {
        let mut omitted = None;
        let items = match asked {
            RuleContent::Known(items) => items.clone(),
            RuleContent::Docs(path, lines) => {
                let text = read_redacted(workspace, path, secrets)?;
                let (excerpt, there) = (pack::excerpt(&text, *lines), text.lines().count() as u64);
                let missing = lines.filter(|(_, last)| *last > there);
                omitted =
                    missing.map(|(first, last)| format!("lines {first}-{last} are requested, but it has {there}"));
                vec![Item::Doc(DocRef { path: (*path).to_owned(), excerpt })]
            }
            RuleContent::Files { globs, max, by } => {
                let found = Walk::new(workspace)?.find(globs, *max);
                let more = (found.more > 0).then(|| format!("{} more files, over `max={max}`", found.more));
                let cut = found
                    .is_cut
                    .then(|| "what lies in the workspace beyond the first 500000 files and folders".to_owned());
                let mut by_rule = 0;
                let mut summary = |path: &str| {
                    let text =
                        (!matches!(by, By::None)).then(|| read_redacted(workspace, path, secrets).ok()).flatten()?;
                    let own = match by {
                        By::Agent(agent) => {
                            summaries.get(&file_summaries::summary_key(agent, path, &text)).cloned().flatten()
                        }
                        By::None | By::Rule => None,
                    };
                    by_rule += usize::from(own.is_none());
                    own.or_else(|| pack::line_of(path, &text))
                };
                let files: Vec<Item> =
                    found.paths.into_iter().map(|path| Item::File(FileRef { summary: summary(&path), path })).collect();
                let instead = match by {
                    By::Agent(agent) if by_rule > 0 => {
                        let (own, all) = (files.len() - by_rule, files.len());
                        Some(format!("`{agent}` summed up {own} of {all} files, a rule the others"))
                    }
                    _ => None,
                };
                let words = more.into_iter().chain(cut).chain(instead);
                omitted = words.reduce(|words, more| format!("{words}, and {more}"));
                files
            }
        };
        parts.push(Part { label: describe_rule(rule), depth: *depth, items, omitted });
    }
    pack::prevail(&mut parts);
    Ok(parts)
}

/// A rule as its spec says it.
fn describe_rule(rule: &PackRule) -> String {
    match rule {
        PackRule::Goal(_) => "goal".to_owned(),
        PackRule::DefinitionOfDone(_) => "definition-of-done".to_owned(),
        PackRule::Docs { path, .. } => format!("docs {path}"),
        PackRule::Files { globs, .. } => format!("files {}", globs.join(" ")),
        PackRule::Fact { name, .. } => format!("fact {name}"),
        PackRule::Inputs(names) => format!("inputs {}", names.join(" ")),
        PackRule::Artifacts { kind, from } => format!("artifacts kind={kind} from={from}"),
        PackRule::Constraint { name, value } => match value {
            Value::String(_) => format!("constraint {name}"),
            value => format!("constraint {name} {value}"),
        },
        PackRule::Merge(name) => format!("merge {name}"),
    }
}
