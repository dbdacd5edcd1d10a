//! Parts of a pipeline, for a person who works on the middle of it: what a step needs, and what depends on it.
//!
//! In: a plan and the name of a step. Out: the same plan with those steps alone, or their names. A loop is taken as a
//! whole where a step inside is needed.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Exhausted, Iteration, Pipeline, Plan, Step};

impl Plan {
    /// The same plan, whose pipeline of this name has the step `until`, what that needs, and nothing else: one round, whose
    /// value is the output of the step.
    #[must_use]
    pub fn with_steps_until(mut self, pipeline: &str, until: &str) -> Plan {
        if let Some(pipeline) = self.pipelines.iter_mut().find(|found| found.name == pipeline) {
            keep_needed(pipeline, until);
        }
        self
    }
}

impl Pipeline {
    /// The steps that depend on `from`, directly or through others, and `from` itself, by name.
    pub fn dependents_of(&self, from: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::from([from.to_owned()]);
        // What is inside of a loop, item or call belongs to it.
        if let Some(step) = self.all_steps().find(|step| step.name == from) {
            found.extend(inner_names(step));
        }
        let mut reached = found.clone();
        loop {
            // A step may stand ahead of what it needs: passes go on until one of them reaches nothing more.
            let before = reached.len();
            for step in &self.steps {
                extend_dependents(step, &mut found, &mut reached);
            }
            if reached.len() == before {
                return found;
            }
        }
    }
}

/// Adds the steps of `step` that need one that is reached. A loop with such a step is reached, but does not itself depend
/// on it.
fn extend_dependents(step: &Step, found: &mut BTreeSet<String>, reached: &mut BTreeSet<String>) {
    if step.needs.iter().any(|need| reached.contains(&need.step)) {
        for name in inner_names(step).into_iter().chain([step.name.clone()]) {
            found.insert(name.clone());
            reached.insert(name);
        }
    }
    for inner in step.body.loop_steps() {
        extend_dependents(inner, found, reached);
        if reached.contains(&inner.name) {
            reached.insert(step.name.clone());
        }
    }
}

/// The steps of a loop, those of loops in it included.
fn inner_names(step: &Step) -> Vec<String> {
    let mut names = Vec::new();
    let mut open: Vec<&Step> = step.body.loop_steps().iter().collect();
    while let Some(step) = open.pop() {
        names.push(step.name.clone());
        open.extend(step.body.loop_steps());
    }
    names
}

fn keep_needed(pipeline: &mut Pipeline, until: &str) {
    // Each step with the one of the pipeline itself that it is, or is inside of.
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (place, step) in pipeline.steps.iter().enumerate() {
        places.insert(step.name.clone(), place);
        places.extend(inner_names(step).into_iter().map(|name| (name, place)));
    }
    let mut kept: BTreeSet<usize> = places.get(until).copied().into_iter().collect();
    let mut open: Vec<usize> = kept.iter().copied().collect();
    while let Some(place) = open.pop() {
        let mut inside = vec![&pipeline.steps[place]];
        while let Some(step) = inside.pop() {
            inside.extend(step.body.loop_steps());
            let needs = step.needs.iter().map(|need| &need.step);
            // Who may write to it, or start it.
            let senders =
                pipeline.edges.iter().filter(|edge| edge.leads_to(&step.name)).flat_map(|edge| [&edge.from, &edge.to]);
            let places = needs.chain(senders).filter_map(|name| places.get(name));
            open.extend(places.filter(|&&place| kept.insert(place)));
        }
    }
    let is_kept = |name: &str| places.get(name).is_some_and(|place| kept.contains(place));
    pipeline.edges.retain(|edge| is_kept(&edge.from) && is_kept(&edge.to));
    pipeline.iteration = Iteration {
        max: 1,
        until: Vec::new(),
        handles: Vec::new(),
        on_failure: pipeline.iteration.on_failure,
        // No `until` is left that could hold, and that is no failure.
        exhausted: Exhausted::Success,
    };
    let has_output = pipeline.all_steps().any(|step| step.name == until && step.body.kind().has_output());
    pipeline.result = if has_output { vec![until.to_owned()] } else { Vec::new() };
    let mut place = 0;
    pipeline.steps.retain(|_| {
        place += 1;
        kept.contains(&(place - 1))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Loop, Need};

    fn step(name: &str, needs: &[&str]) -> Step {
        let needs = needs.iter().map(|step| Need {
            step: (*step).to_owned(),
            when: crate::When::Success,
            declared: true,
            effect: crate::Effect::None,
            origin: crate::Origin::default(),
        });
        Step { name: name.to_owned(), needs: needs.collect(), ..Step::default() }
    }

    /// `a`, then `b` and `c`; `d` after `b`; a loop after `c` with `e`, then `f`; `g` after the loop.
    fn pipeline() -> Pipeline {
        let inner = Loop { steps: vec![step("e", &[]), step("f", &["e"])], ..Loop::default() };
        let repeated = Step { body: Body::Loop(inner), ..step("loop", &["c"]) };
        let steps = vec![
            step("a", &[]),
            step("b", &["a"]),
            step("c", &["a"]),
            step("d", &["b"]),
            repeated,
            step("g", &["loop"]),
        ];
        Pipeline { name: "main".to_owned(), steps, ..Pipeline::default() }
    }

    #[test]
    fn what_a_step_needs_stays() {
        let check = |until: &str, expected: &[&str]| {
            let plan = Plan { pipelines: vec![pipeline()], ..Plan::default() }.with_steps_until("main", until);
            let names: Vec<&str> = plan.pipelines[0].all_steps().map(|step| step.name.as_str()).collect();
            assert_eq!(names, expected, "{until}");
            assert_eq!(plan.pipelines[0].iteration.max, 1);
        };
        check("a", &["a"]);
        check("d", &["a", "b", "d"]);
        check("e", &["a", "c", "loop", "e", "f"]);
        check("g", &["a", "c", "loop", "e", "f", "g"]);
    }

    #[test]
    fn what_depends_on_a_step_is_found_through_loops() {
        let check = |from: &str, expected: &[&str]| {
            let found = pipeline().dependents_of(from);
            assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{from}");
        };
        check("d", &["d"]);
        check("b", &["b", "d"]);
        check("f", &["f", "g"]);
        check("e", &["e", "f", "g"]);
        check("c", &["c", "e", "f", "g", "loop"]);
        check("loop", &["e", "f", "g", "loop"]);
    }
}
