//! The cases of a value over which steps branch: which of them no condition takes.
//!
//! The steps whose `when` tests one value go in; the cases that are left over come out. What a condition asks besides,
//! of the run or of parameters, may turn out either way and leaves nothing over; other enums and truths may not.

use std::collections::BTreeSet;

use super::Flow;
use super::diagram::{ALWAYS, Formula, NEVER, Sized, TooLarge, Variable};
use super::values::{Class, Key, Kind, Of};
use crate::model::{Body, Read};
use crate::template::Root;

/// Whether steps take every case of a value.
#[derive(Debug)]
pub(crate) enum Cover {
    /// They take all of them.
    All,
    /// They leave some out.
    Partly(Uncovered),
    /// They do not branch over the value.
    Not,
    /// It is too much to tell.
    Unknown,
}

/// What steps that branch over a value leave out.
#[derive(Debug)]
pub(crate) enum Uncovered {
    /// These of its words or truths.
    Cases(Vec<String>),
    /// A case that is taken in part only: what the values are then, by what they are called in conditions.
    Combination(Vec<(String, String)>),
}

impl Flow<'_, '_> {
    /// What the conditions that test a value take of it. `read` is how one of `testers` reads it.
    pub(crate) fn find_cover(&mut self, testers: &[usize], reader: usize, read: &Read) -> Cover {
        self.diagram.begin_question();
        let fields = read.fields.iter().map(|field| field.value.clone()).collect();
        let key = self.key_of(Some(reader), read.root, read.name.as_deref(), fields);
        let Some(key) = key else { return Cover::Not };
        let kind = self.value_kind(&key);
        let branches = match kind {
            Kind::Bool => key.root == Root::Output,
            Kind::Enum(_) => matches!(key.root, Root::Output | Root::Param),
            Kind::Int | Kind::Free => false,
        };
        if !branches || !self.vocabulary.fits(&key, &kind) {
            return Cover::Not;
        }
        self.compute_cover(testers, reader, &key).unwrap_or(Cover::Unknown)
    }

    fn compute_cover(&mut self, testers: &[usize], reader: usize, key: &Key) -> Result<Cover, TooLarge> {
        let value = self.intern_value(Some(reader), key.clone());
        let tested = value.variable;
        // Another round is what comes of a case that an `until` tests.
        if self.repeats_by(key, tested)? || self.is_told_apart_in_text(key, tested)? {
            return Ok(Cover::Not);
        }
        let present = self.presence_formula(None, key)?;
        let (mut sets, mut own, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for step in self.candidate_steps(testers, key) {
            // There may be thousands, and each is a question of its own.
            self.diagram.begin_question();
            let holds = self.when_holds(step)?;
            let holds = self.diagram.and(holds, present)?;
            let set = self.diagram.project(holds, |variable| variable == tested)?;
            if testers.contains(&step) {
                sets.push(set);
            }
            if self.diagram.depends_on(holds, tested)? {
                own.push(set);
            }
            all.push(holds);
        }
        // Many steps ask for the same case, and below each pair is compared.
        sets.sort_unstable();
        sets.dedup();
        if !self.tell_apart(&sets)? {
            return Ok(Cover::Not);
        }
        // A case that may be taken after all is none that is left out.
        if !all.iter().chain([&present]).all(|&formula| self.diagram.is_exact(formula)) {
            return Ok(Cover::Unknown);
        }
        let partly = own.into_iter().try_fold(NEVER, |any, set| self.diagram.or(any, set))?;
        let mut cases = Vec::new();
        for (index, class) in value.classes.iter().enumerate() {
            let case = self.diagram.literal(tested, |other| other == index);
            if self.diagram.and(case, partly)? == NEVER {
                cases.push(describe_class(class));
            }
        }
        if !cases.is_empty() {
            return Ok(Cover::Partly(Uncovered::Cases(cases)));
        }
        // Taken out for a moment, as the closure must not borrow all of `self`.
        let kept = std::mem::take(&mut self.branching);
        let keep = |variable: Variable| variable == tested || kept.contains(&variable);
        let left = self.left_over(all, present, &keep);
        self.branching = kept;
        let left = left?;
        if left == NEVER {
            return Ok(Cover::All);
        }
        Ok(match self.find_combination(left)? {
            Some(values) => Cover::Partly(Uncovered::Combination(values)),
            None => Cover::Not,
        })
    }

    /// Holds, for the variables that are kept, where a value can be there and none of the formulas can hold.
    fn left_over(&mut self, taken: Vec<Formula>, present: Formula, keep: &dyn Fn(Variable) -> bool) -> Sized {
        let taken = self.project_any(taken, keep)?;
        let possible = self.diagram.project(present, keep)?;
        self.diagram.and_not(possible, taken)
    }

    /// The steps whose conditions may depend on a value: by what they read, or by how those that test it end.
    fn candidate_steps(&self, testers: &[usize], key: &Key) -> BTreeSet<usize> {
        let of = match key.of {
            Of::Step(step) => Some(step),
            _ => None,
        };
        let readers = testers.iter().copied().chain(of).flat_map(|step| &self.readers[step]);
        let conditional = |step: &&usize| self.pipeline.steps[**step].when.is_some();
        testers.iter().chain(readers).filter(conditional).copied().collect()
    }

    /// Holds where one of the formulas can, for the variables that are kept.
    fn project_any(&mut self, formulas: Vec<Formula>, keep: impl Fn(Variable) -> bool) -> Sized {
        let mut any = NEVER;
        for formula in formulas {
            self.diagram.begin_question();
            let formula = self.diagram.project(formula, &keep)?;
            any = self.diagram.or(any, formula)?;
        }
        Ok(any)
    }

    /// Whether two conditions never hold for the same case.
    fn tell_apart(&mut self, sets: &[Formula]) -> Result<bool, TooLarge> {
        for (index, &one) in sets.iter().enumerate() {
            for &other in &sets[..index] {
                if one != NEVER && other != NEVER && self.diagram.and(one, other)? == NEVER {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn repeats_by(&mut self, key: &Key, tested: Variable) -> Result<bool, TooLarge> {
        let pipeline = self.pipeline;
        let loops = self.loops.clone();
        let of_loops = loops.into_iter().filter_map(|step| match &pipeline.steps[step].body {
            Body::Loop { until, until_reads, .. } => Some((until, until_reads)),
            _ => None,
        });
        let asks = |read: &Read| match key.of {
            Of::Step(step) => read.step() == Some(step),
            _ => read.root == key.root,
        };
        for (until, reads) in std::iter::once((&pipeline.until, &pipeline.until_reads)).chain(of_loops) {
            if !reads.iter().any(asks) {
                continue;
            }
            for tree in until.iter().filter_map(|until| until.expression.tree.as_ref()) {
                let holds = self.condition_formula(None, tree)?;
                if self.diagram.depends_on(holds, tested)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a step that runs whatever the value is looks at it, or hands it on.
    fn is_told_apart_in_text(&mut self, key: &Key, tested: Variable) -> Result<bool, TooLarge> {
        let pipeline = self.pipeline;
        let readers = match &key.of {
            Of::Step(step) => self.readers[*step].clone(),
            Of::Name(name) => self.param_readers.get(name).cloned().unwrap_or_default(),
            _ => Vec::new(),
        };
        for index in readers {
            let step = &pipeline.steps[index];
            // A directive writes the value out without a look at it, except that a call hands it on.
            let called = matches!(step.body, Body::Call { .. });
            let looks = |read: &Read| {
                let same = match (&key.of, read.step()) {
                    (Of::Step(step), Some(target)) => {
                        *step == target && matches!(read.root, Root::Output | Root::Input)
                    }
                    (Of::Name(name), None) => {
                        read.root == Root::Param
                            && read.name.as_ref().is_some_and(|read| read.replace('-', "_") == *name)
                    }
                    _ => false,
                };
                let fields = read.fields.iter().map(|field| field.value.as_str());
                same && !read.in_when && (called || !read.directive) && fields.eq(key.fields.iter().map(String::as_str))
            };
            if step.reads.iter().any(looks) {
                let when = self.when_holds(index)?;
                if !self.diagram.depends_on(when, tested)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Values for which a formula over cases holds.
    fn find_combination(&mut self, formula: Formula) -> Result<Option<Vec<(String, String)>>, TooLarge> {
        let Some(example) = self.diagram.find_assignment(formula)? else { return Ok(None) };
        let values = self.values.iter().filter_map(|(key, value)| {
            let class = value.classes.get(*example.get(&value.variable)?)?;
            Some((self.format_key(key), describe_class(class)))
        });
        let values: Vec<(String, String)> = values.collect();
        Ok((formula != ALWAYS && !values.is_empty()).then_some(values))
    }

    /// How conditions write a value.
    fn format_key(&self, key: &Key) -> String {
        let of = match &key.of {
            Of::Step(step) => self.pipeline.steps[*step].name().replace('-', "_"),
            Of::Name(name) | Of::Reader(_, name) => name.clone(),
            Of::Run | Of::Round(..) => String::new(),
        };
        let fields = key.fields.iter().map(String::as_str);
        std::iter::once(key.root.as_str())
            .chain(std::iter::once(of.as_str()))
            .chain(fields)
            .collect::<Vec<_>>()
            .join(".")
    }
}

fn describe_class(class: &Class) -> String {
    match class {
        Class::Text(text) => text.clone(),
        Class::Bool(truth) | Class::Other(truth) => truth.to_string(),
        Class::None => "none".to_owned(),
        Class::Number(number) => number.to_string(),
        Class::Between(..) => "another number".to_owned(),
    }
}
