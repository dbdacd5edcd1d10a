//! What runs again: what failed and nothing handled, what its failure ended, and what depends on either.
//!
//! In: the records of a run, and what is asked for. Out: a mark for each step that ran and runs again. A loop, a call
//! or a for-each that holds such a step goes on with the rest of it as it ended; one that failed by itself runs anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Retry;
use super::plan_changes::Changes;
use crate::core::graph::{Graph, Kind, Node, StepRef};
use crate::core::reopened_records::Mark;
use crate::core::state::State;
use crate::types::event::{Event, Failure, Record, RunStatus, SkipReason, StepId};

/// What runs again.
#[derive(Debug)]
pub(super) struct Again {
    pub marks: Vec<Mark>,
    pub notices: Vec<String>,
    /// Why nothing does, where nothing does.
    pub why: String,
    /// The steps that finished and do not run again: their pipelines and names.
    pub finished: BTreeSet<(Arc<str>, Arc<str>)>,
    /// All of those that finished and stay as they are, in any round.
    pub stays: BTreeSet<StepId>,
}

/// Where a frame is: its instance and path.
type Place = (u32, Option<Arc<str>>);

/// How a step ended.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Succeeded,
    Failed,
    Skipped(SkipReason),
}

/// What is known of a step.
struct Seen {
    spot: StepRef,
    attempt: u32,
    started: bool,
    fate: Option<Fate>,
    /// What its last attempt opened.
    inside: BTreeSet<Place>,
    /// Of a for-each, how many items it has.
    items: Option<u32>,
}

/// What is known of a frame.
#[derive(Default)]
struct Round {
    iteration: u32,
    parent: Option<StepId>,
    steps: BTreeSet<StepId>,
}

struct Finder<'a> {
    old: &'a Graph,
    new: &'a Graph,
    changes: &'a Changes<'a>,
    retry: &'a Retry,
    seen: BTreeMap<StepId, Seen>,
    rounds: BTreeMap<Place, Round>,
    /// The attempts with which steps went on before, which may not have begun since.
    before: BTreeMap<StepId, u32>,
    /// The steps that are asked for by name, and those that they are inside of.
    wanted: BTreeSet<StepId>,
    around: BTreeSet<StepId>,
    /// Whether the run has ended, so that nothing handles a failure any more.
    over: bool,
}

/// What becomes of a step.
enum Next {
    Stays,
    RunsAgain,
    /// These inside of it do.
    GoesOn(Vec<Mark>),
}

pub(super) fn find(
    run: &str,
    records: &[Record],
    (old, new): (&Arc<Graph>, &Arc<Graph>),
    retry: &Retry,
    changes: &Changes<'_>,
) -> Result<Again, String> {
    let mut finder = Finder {
        old,
        new,
        changes,
        retry,
        seen: BTreeMap::new(),
        rounds: BTreeMap::new(),
        before: BTreeMap::new(),
        wanted: BTreeSet::new(),
        around: BTreeSet::new(),
        over: false,
    };
    let mut status = None;
    let state = State::replay_with(Arc::clone(old), records, |state, record| {
        finder.see(state, record);
        if let Event::RunFinished { status: ended } = &record.event {
            status = Some(*ended);
        }
    });
    finder.over = status.is_some();
    finder.want(run)?;
    let mut marks = Vec::new();
    for instance in 1..=old.instances() {
        marks.extend(finder.frame(&(instance, None)).unwrap_or_default());
    }
    drop(state);
    let why = match status {
        Some(RunStatus::Succeeded) => "it succeeded; `--retry STEP` runs a step of it again",
        Some(RunStatus::OverBudget) => {
            "its budget was spent; `--with SPEC` continues with a spec that has a larger budget"
        }
        Some(RunStatus::Failed) => {
            "no step of it failed; `--retry STEP` runs a step of it again, `--with SPEC` continues with a fixed spec"
        }
        None => "none of its steps has failed",
    };
    let names = |mark: &Mark| finder.name(&mark.step);
    let open: BTreeSet<_> = marks.iter().filter_map(names).collect();
    let marked: BTreeSet<&StepId> = marks.iter().map(|mark| &mark.step).collect();
    let stays = |(step, seen): &(&StepId, &Seen)| {
        let ran = matches!(seen.fate, Some(Fate::Succeeded | Fate::Failed));
        ran && !marked.contains(step) && !finder.is_within(step, &marks)
    };
    let stays: BTreeSet<StepId> = finder.seen.iter().filter(stays).map(|(step, _)| step.clone()).collect();
    // What runs again as it is now may have been another one in its rounds before.
    let finished = stays.iter().filter_map(|step| finder.name(step)).filter(|name| !open.contains(name)).collect();
    let notices = finder.notices(&marks);
    Ok(Again { notices, why: why.to_owned(), finished, stays, marks })
}

impl Finder<'_> {
    /// Takes note of a record, in the state before it.
    fn see(&mut self, state: &State, record: &Record) {
        if let Event::StepReopened { step, attempt, inside: false } = &record.event {
            self.before.insert(step.clone(), *attempt);
        }
        let Some(step) = record.event.step() else { return };
        if matches!(record.event, Event::Sent { .. }) {
            return;
        }
        let Some(key) = state.find_step(step) else { return };
        let frame = state.frame(key.frame);
        let node = state.node(key);
        let place = (step.instance, step.within.clone());
        let round = self.rounds.entry(place.clone()).or_default();
        if round.iteration != step.iteration {
            round.iteration = step.iteration;
            round.steps.clear();
        }
        if round.steps.insert(step.clone())
            && let Some(parent) = frame.parent
        {
            let parent = state.id(parent);
            round.parent = Some(parent.clone());
            if let Some(parent) = self.seen.get_mut(&parent) {
                parent.inside.insert(place);
            }
        }
        let spot = StepRef { region: frame.region, step: key.step };
        let seen = self.seen.entry(step.clone()).or_insert_with(|| Seen {
            spot,
            attempt: 0,
            started: false,
            fate: None,
            inside: BTreeSet::new(),
            items: None,
        });
        match &record.event {
            Event::ConditionJudged { error: Some(_), .. } => seen.fate = Some(Fate::Failed),
            Event::AttemptStarted { attempt, .. } | Event::AttemptRejoined { attempt, .. } => {
                (seen.attempt, seen.started, seen.fate) = (*attempt, true, None);
            }
            Event::Opened { attempt, items, .. } => {
                (seen.attempt, seen.started, seen.fate, seen.items) = (*attempt, true, None, *items);
                seen.inside.clear();
            }
            Event::AttemptEnded { attempt, outcome, .. } => {
                (seen.attempt, seen.started) = (*attempt, true);
                seen.fate = match &outcome.failure {
                    None => Some(Fate::Succeeded),
                    Some(Failure::Cancelled | Failure::Interrupted) => None,
                    Some(_) => Some(Fate::Failed),
                };
            }
            Event::GateOpened { .. } => (seen.started, seen.fate) = (true, None),
            Event::GateAnswered { choice, .. } => {
                seen.fate = match choice.as_deref() {
                    Some("retry") if node.escalates => None,
                    Some(_) if !node.escalates => Some(Fate::Succeeded),
                    _ => Some(Fate::Failed),
                };
            }
            Event::NodeClosed { owes, .. } => {
                seen.fate = Some(if owes.is_empty() { Fate::Succeeded } else { Fate::Failed });
            }
            Event::StepSkipped { reason, .. } => seen.fate = Some(Fate::Skipped(reason.clone())),
            _ => {}
        }
    }

    /// Finds the steps that are asked for by name.
    fn want(&mut self, run: &str) -> Result<(), String> {
        for name in &self.retry.steps {
            let live: Vec<&StepId> = self.seen.keys().filter(|step| self.is_live(step)).collect();
            let exact: Vec<&StepId> = live.iter().copied().filter(|step| step.label() == *name).collect();
            let named: Vec<&StepId> = live.iter().copied().filter(|step| *step.name == **name).collect();
            let failed = |step: &&StepId| self.seen[*step].fate == Some(Fate::Failed);
            let failing: Vec<&StepId> = named.iter().copied().filter(failed).collect();
            let found = [exact, failing, named].into_iter().find(|list| !list.is_empty()).unwrap_or_default();
            let labels: BTreeSet<String> = found.iter().map(|step| step.label()).collect();
            if labels.len() > 1 && !found.iter().all(failed) {
                let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
                return Err(format!(
                    "several steps of run `{run}` are called `{name}`: name one of {}",
                    labels.join(", ")
                ));
            }
            if found.is_empty() {
                return Err(format!(
                    "run `{run}` has not reached a step `{name}`: `swarmc inspect {run}` lists its steps"
                ));
            }
            if let Some(step) = found.iter().find(|step| self.seen[**step].fate.is_none()) {
                return Err(format!(
                    "`{}` of run `{run}` has not ended: `swarmc resume {run}` continues it",
                    step.label()
                ));
            }
            let found: Vec<StepId> = found.into_iter().cloned().collect();
            for step in found {
                let mut around = self.parent(&step);
                while let Some(step) = around {
                    around = self.parent(&step);
                    self.around.insert(step);
                }
                self.wanted.insert(step);
            }
        }
        Ok(())
    }

    fn parent(&self, step: &StepId) -> Option<StepId> {
        self.rounds.get(&(step.instance, step.within.clone()))?.parent.clone()
    }

    /// Whether a step is in the last round of its frame, and that frame in the last attempt of what is around it.
    fn is_live(&self, step: &StepId) -> bool {
        let place = (step.instance, step.within.clone());
        let Some(round) = self.rounds.get(&place) else { return false };
        round.iteration == step.iteration
            && round.parent.as_ref().is_none_or(|parent| {
                self.seen.get(parent).is_some_and(|seen| seen.inside.contains(&place)) && self.is_live(parent)
            })
    }

    /// What runs again in a frame; none where nothing does.
    fn frame(&self, place: &Place) -> Option<Vec<Mark>> {
        let round = self.rounds.get(place)?;
        let mut again: BTreeSet<u32> = BTreeSet::new();
        let mut goes_on: BTreeMap<u32, Vec<Mark>> = BTreeMap::new();
        for step in &round.steps {
            match self.next(step) {
                Next::Stays => {}
                Next::RunsAgain => _ = again.insert(self.seen[step].spot.step),
                Next::GoesOn(marks) => _ = goes_on.insert(self.seen[step].spot.step, marks),
            }
        }
        if again.is_empty() && goes_on.is_empty() {
            return None;
        }
        self.close(round, &mut again, &goes_on);
        let mut marks = Vec::new();
        for step in &round.steps {
            let seen = &self.seen[step];
            let number = seen.spot.step;
            if again.contains(&number) {
                let next = if seen.attempt > 0 { seen.attempt.saturating_add(1) } else { 1 };
                let attempt = next.max(self.before.get(step).copied().unwrap_or(1));
                marks.push(Mark { step: step.clone(), attempt, inside: false });
            } else if let Some(inside) = goes_on.remove(&number) {
                marks.push(Mark { step: step.clone(), attempt: seen.attempt, inside: true });
                marks.extend(inside);
            }
        }
        Some(marks)
    }

    /// What depends on a step that runs again, or that something inside of runs again, runs again as well.
    fn close(&self, round: &Round, again: &mut BTreeSet<u32>, goes_on: &BTreeMap<u32, Vec<Mark>>) {
        let Some(region) = round.steps.first().map(|step| self.seen[step].spot.region) else { return };
        let nodes = &self.old.region(region).nodes;
        let ways = &self.old.scope(self.old.region(region).scope).ways;
        let mut open: Vec<u32> = again.iter().chain(goes_on.keys()).copied().collect();
        while let Some(number) = open.pop() {
            let node = &nodes[number as usize];
            let needing = node.dependants.iter().map(|edge| edge.other);
            let told = ways.edges_from(StepRef { region, step: number }).map(|(_, way)| way.to);
            let told = told.filter(|spot| spot.region == region).map(|spot| spot.step);
            let stopped = round.steps.iter().filter(|step| {
                let reason = &self.seen[*step].fate;
                matches!(reason, Some(Fate::Skipped(SkipReason::Stopped { by })) if **by == *node.name)
            });
            let stopped = stopped.map(|step| self.seen[step].spot.step);
            let more: Vec<u32> = needing.chain(told).chain(stopped).collect();
            open.extend(more.into_iter().filter(|&number| again.insert(number)));
        }
    }

    fn next(&self, step: &StepId) -> Next {
        let seen = &self.seen[step];
        if self.wanted.contains(step) {
            return Next::RunsAgain;
        }
        let changed = self.name(step).is_some_and(|(pipeline, name)| self.changes.restarts(&pipeline, &name));
        let inside = || match self.inside(seen) {
            Some(_) if changed => Next::RunsAgain,
            Some(marks) => Next::GoesOn(marks),
            None => Next::Stays,
        };
        if self.around.contains(step) {
            return inside();
        }
        let node = &self.old.region(seen.spot.region).nodes[seen.spot.step as usize];
        match &seen.fate {
            Some(Fate::Failed) if self.is_handled(step, node) || !self.retry.failed => Next::Stays,
            Some(Fate::Failed) => match inside() {
                Next::Stays if !changed && self.has_more_rounds(step, seen) => Next::GoesOn(Vec::new()),
                Next::Stays => Next::RunsAgain,
                next => next,
            },
            Some(Fate::Skipped(SkipReason::FailFast | SkipReason::Ended { .. } | SkipReason::OverBudget)) => {
                match inside() {
                    // It was ended before all that it was to do had begun.
                    Next::Stays if seen.items.is_some() && !changed => Next::GoesOn(Vec::new()),
                    Next::Stays => Next::RunsAgain,
                    next => next,
                }
            }
            // What did not run may be another one in the mended spec.
            Some(Fate::Skipped(_)) if self.name(step).is_some_and(|(of, name)| self.changes.has(&of, &name)) => {
                Next::RunsAgain
            }
            // With `join=settled` it succeeds, whatever its items come to.
            Some(Fate::Succeeded) if self.retry.failed && seen.items.is_some() => inside(),
            Some(Fate::Succeeded | Fate::Skipped(_)) => Next::Stays,
            None if node.kind.is_container() => inside(),
            None => Next::Stays,
        }
    }

    /// What runs again inside of a step; none where nothing does.
    fn inside(&self, seen: &Seen) -> Option<Vec<Mark>> {
        let marks: Vec<Mark> = seen.inside.iter().filter_map(|place| self.frame(place)).flatten().collect();
        (!marks.is_empty()).then_some(marks)
    }

    /// Whether something took care of a step's failure, or still may.
    fn is_handled(&self, step: &StepId, node: &Node) -> bool {
        let region = self.old.region(self.seen[step].spot.region);
        let ran = |name: &Arc<str>| {
            let handler = StepId { name: Arc::clone(name), ..step.clone() };
            match self.seen.get(&handler) {
                Some(seen) => seen.started,
                None => !self.over,
            }
        };
        // Of an item that says the for-each.
        node.forgiven && !region.is_item
            || node
                .dependants
                .iter()
                .filter(|edge| edge.handles)
                .any(|edge| ran(&region.nodes[edge.other as usize].name))
    }

    /// Whether a loop or a call that went through its rounds has more of them now.
    fn has_more_rounds(&self, step: &StepId, seen: &Seen) -> bool {
        let Some((pipeline, name)) = self.name(step) else { return false };
        let Some(scope) = self.new.scopes.iter().find(|scope| scope.pipeline == pipeline) else { return false };
        let node = scope.find(&name).map(|spot| &self.new.region(spot.region).nodes[spot.step as usize]);
        let max = match node.map(|node| node.kind) {
            Some(Kind::Loop(region)) => self.new.region(region).rounds.max,
            Some(Kind::Call(scope)) => self.new.region(self.new.scope(scope).region).rounds.max,
            _ => return false,
        };
        seen.inside.iter().filter_map(|place| self.rounds.get(place)).any(|round| round.iteration < max)
    }

    /// The pipeline and the name of a step.
    fn name(&self, step: &StepId) -> Option<(Arc<str>, Arc<str>)> {
        let seen = self.seen.get(step)?;
        let scope = self.old.scope(self.old.region(seen.spot.region).scope);
        Some((Arc::clone(&scope.pipeline), Arc::clone(&step.name)))
    }

    /// Whether a step is inside of one that runs anew, or in an attempt or a round of it that is gone.
    fn is_within(&self, step: &StepId, marks: &[Mark]) -> bool {
        let mut around = self.parent(step);
        while let Some(step) = around {
            if marks.iter().any(|mark| !mark.inside && mark.step == step) {
                return true;
            }
            around = self.parent(&step);
        }
        false
    }

    fn notices(&self, marks: &[Mark]) -> Vec<String> {
        let again = marks.iter().filter(|mark| !mark.inside);
        let (failed, others): (Vec<_>, Vec<_>) = again
            .partition(|mark| self.wanted.contains(&mark.step) || self.seen[&mark.step].fate == Some(Fate::Failed));
        let list = |marks: &[&Mark]| -> String {
            let mut names: Vec<String> = marks.iter().take(8).map(|mark| format!("`{}`", mark.step.label())).collect();
            if marks.len() > names.len() {
                names.push(format!("{} more", marks.len() - names.len()));
            }
            names.join(", ")
        };
        let first = (!failed.is_empty()).then(|| format!("runs again: {}", list(&failed)));
        let rest = (!others.is_empty()).then(|| match failed.is_empty() {
            true => format!("runs again, because it was ended or skipped: {}", list(&others)),
            false => format!("and the steps that waited for it, or were ended by it: {}", list(&others)),
        });
        first.into_iter().chain(rest).collect()
    }
}
