//! Words that a text goes through and compares: `{% for p in ["high", "low"] %}` with `task.priority == p` in it.
//!
//! A word of the list that no enum has which it is compared with is compared in vain (SW205). Nothing is said where the
//! text asks for that very word, compares it with anything else, or asks something about the loop or the name first: the
//! comparison may then be meant for the other words only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::{Kind, Words};
use super::Checker;
use crate::template::{Comparison, Expr, ExprKind, Target};

/// The comparisons of one name that are kept.
const MOST: usize = 16;

/// What a text goes through, and what it asks of it.
#[derive(Default)]
pub(super) struct Choices {
    /// By the number of a binding: the words it goes through, and what they are compared with.
    open: BTreeMap<usize, Choice>,
    /// By the number of a binding: the list that it is.
    lists: BTreeMap<usize, Vec<Expr>>,
    /// How many conditions around ask something else about a name.
    around: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Choice {
    words: Vec<Expr>,
    /// Whether it goes through nothing else.
    only_words: bool,
    /// Each with what is compared, and whether it must differ.
    compared: Vec<(Expr, Arc<Words>, bool)>,
    /// The words that are asked for.
    asked: BTreeSet<String>,
    /// Whether any word may be meant.
    free: bool,
}

impl Choices {
    /// Enters what stands behind a condition: gives what [`Choices::asked`] takes back.
    pub(super) fn enter_condition(&mut self, condition: &Expr) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        collect_mentioned(condition, &mut names);
        for name in &names {
            *self.around.entry(name.clone()).or_default() += 1;
        }
        names
    }

    pub(super) fn leave_condition(&mut self, names: BTreeSet<String>) {
        for name in names {
            if let Some(count) = self.around.get_mut(&name) {
                *count -= 1;
                if *count == 0 {
                    self.around.remove(&name);
                }
            }
        }
    }
}

impl Checker<'_> {
    /// Remembers a list that is bound to a name.
    pub(super) fn record_list(&mut self, target: &Target, value: &Expr) {
        if let (Target::Name(_), Some(items)) = (target, value.as_items()) {
            self.choices.lists.insert(self.bindings, items.to_vec());
        }
    }

    /// Enters a loop: gives its number where it goes through words that are written out.
    pub(super) fn enter_loop(&mut self, target: &Target, list: &Expr) -> Option<usize> {
        let Target::Name(_) = target else { return None };
        let items = match &list.kind {
            ExprKind::List(items) => items.as_slice(),
            ExprKind::Variable(name) => self.choices.lists.get(&self.find_binding(name)?.1)?,
            _ => return None,
        };
        let words: Vec<Expr> = items.iter().filter(|item| item.as_text().is_some()).cloned().collect();
        // The name of the loop was bound last, so it has this number.
        let only_words = words.len() == items.len();
        self.choices.open.insert(self.bindings, Choice { words, only_words, ..Choice::default() });
        Some(self.bindings)
    }

    /// Leaves a loop, and reports the words that were compared in vain.
    pub(super) fn leave_loop(&mut self, number: Option<usize>) {
        let Some(choice) = number.and_then(|number| self.choices.open.remove(&number)) else { return };
        let Some((side, words, differs)) = choice.compared.first().filter(|_| !choice.free) else { return };
        for word in &choice.words {
            let Some(text) = word.as_text() else { continue };
            let known = choice.compared.iter().any(|(_, words, _)| words.words.iter().any(|word| word == text));
            if !known && !choice.asked.contains(text) {
                self.not_a_word(side, word, text, words, *differs);
            }
        }
    }

    /// Notes a comparison of two values, each with what it is.
    pub(super) fn choice_compared(&mut self, left: (&Expr, &Kind), right: (&Expr, &Kind), differs: bool) {
        for ((side, _), (other, kind)) in [(left, right), (right, left)] {
            match other.as_text() {
                Some(text) => {
                    if let Some(choice) = self.find_choice(side) {
                        choice.asked.insert(text.to_owned());
                    }
                }
                None => self.choice_met(side, (other, kind), differs),
            }
        }
    }

    /// Notes that a value is compared with another one, which is no word that is written out.
    pub(super) fn choice_met(&mut self, side: &Expr, (other, kind): (&Expr, &Kind), differs: bool) {
        let ExprKind::Variable(name) = &side.kind else { return };
        let around = self.choices.around.contains_key(name) || self.choices.around.contains_key("loop");
        let Some(choice) = self.find_choice(side) else { return };
        match kind {
            Kind::Enum(words) if !around && choice.compared.len() < MOST => {
                choice.compared.push((other.clone(), words.clone(), differs));
            }
            _ => choice.free = true,
        }
    }

    /// The words that a value goes through.
    fn find_choice(&mut self, value: &Expr) -> Option<&mut Choice> {
        let ExprKind::Variable(name) = &value.kind else { return None };
        let number = self.find_binding(name)?.1;
        self.choices.open.get_mut(&number)
    }

    /// The words that a value may be, where it is one of some that are written out.
    pub(super) fn list_words(&mut self, value: &Expr) -> Option<Vec<String>> {
        let choice = self.find_choice(value).filter(|choice| choice.only_words)?;
        choice.words.iter().map(|word| word.as_text().map(str::to_owned)).collect()
    }

    /// Notes that a value is used where any word may be meant.
    pub(super) fn choice_used(&mut self, value: &Expr) {
        if let Some(choice) = self.find_choice(value) {
            choice.free = true;
        }
    }
}

/// The names that a condition asks about other than by comparing them. As deep as the condition is.
fn collect_mentioned(expr: &Expr, names: &mut BTreeSet<String>) {
    match &expr.kind {
        ExprKind::Variable(name) => _ = names.insert(name.clone()),
        ExprKind::Compare { left, op: Comparison::Eq | Comparison::Ne | Comparison::In, right } => {
            for side in [left, right] {
                if !matches!(side.kind, ExprKind::Variable(_)) {
                    collect_mentioned(side, names);
                }
            }
        }
        ExprKind::Compare { left, right, .. }
        | ExprKind::Arithmetic { left, right, .. }
        | ExprKind::Concat(left, right) => {
            collect_mentioned(left, names);
            collect_mentioned(right, names);
        }
        ExprKind::Attribute { of, .. } | ExprKind::Not(of) | ExprKind::Negative(of) => collect_mentioned(of, names),
        ExprKind::Item { of, index } => {
            collect_mentioned(of, names);
            collect_mentioned(index, names);
        }
        ExprKind::Slice { of, .. } => collect_mentioned(of, names),
        ExprKind::And(terms) | ExprKind::Or(terms) | ExprKind::List(terms) => {
            terms.iter().for_each(|term| collect_mentioned(term, names));
        }
        ExprKind::Chain { first, rest } => {
            collect_mentioned(first, names);
            rest.iter().for_each(|(_, operand)| collect_mentioned(operand, names));
        }
        ExprKind::Choice { condition, then, otherwise } => {
            [Some(condition), Some(then), otherwise.as_ref()]
                .into_iter()
                .flatten()
                .for_each(|part| collect_mentioned(part, names));
        }
        // The words of a list may be compared by `selectattr`.
        ExprKind::Filter { of, .. } => of.iter().for_each(|of| collect_mentioned(of, names)),
        ExprKind::Test { of, arguments, .. } | ExprKind::Call { of, arguments } => {
            collect_mentioned(of, names);
            arguments.iter().for_each(|argument| collect_mentioned(&argument.value, names));
        }
        ExprKind::Map(entries) => entries.iter().for_each(|(key, value)| {
            collect_mentioned(key, names);
            collect_mentioned(value, names);
        }),
        ExprKind::Const(_) | ExprKind::Path(_) => {}
    }
}
