//! Formulas over variables of several values, as shared decision diagrams.
//!
//! Two formulas are equal when their ids are, so that asking whether one can hold is a comparison. The opposite of a
//! formula is the same node with the other sign, so that one operation is enough, and a contradiction shows at once.
//! Variables are tested by falling rank. Nothing here recurses. Each operation spends from a [`Budget`], and gives up
//! when nothing is left: the budget decides whether an answer is known, never what the answer is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::budget::Budget;

/// A formula: twice its node, and one more for the opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Formula(u32);

/// A variable: one of a few values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Variable(u32);

/// There is no room for the formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// A formula, if there was room for it.
pub(crate) type Sized = Result<Formula, TooLarge>;

/// The value of each variable that matters.
pub(crate) type Assignment = BTreeMap<Variable, usize>;

/// What always holds.
pub(crate) const ALWAYS: Formula = Formula(0);
/// What never holds.
pub(crate) const NEVER: Formula = Formula(1);

/// The most values that a variable has.
pub(crate) const MOST_VALUES: usize = 64;

/// The most pairs that [`Diagram::known`] has. A table of so many takes 7 MB, and one pair more would double it. Few
/// pairs are asked for again long after, and those are computed again.
const MOST_KNOWN: usize = 458_752;

/// The formulas made so far.
#[derive(Debug)]
pub(crate) struct Diagram<'b> {
    /// The constant stands first, as a node without children.
    nodes: Vec<Node>,
    /// What remains to hold, for each value of each node's variable.
    children: Vec<Formula>,
    /// The nodes by what they consist of; those that share a hash follow each other.
    unique: HashMap<u64, u32, Hashed>,
    /// What is known to hold where two formulas do.
    known: HashMap<(Formula, Formula), Formula, Hashed>,
    variables: Vec<Rank>,
    budget: &'b Budget<'b>,
    /// What may be spent until the next question.
    left: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    variable: u32,
    /// Where its children begin.
    start: u32,
    /// The next node of the same hash.
    next: Option<u32>,
    /// Whether one of its variables stands for what was too large.
    rough: bool,
}

#[derive(Clone, Copy, Debug)]
struct Rank {
    rank: u64,
    size: usize,
    /// Whether it stands for what was too large.
    rough: bool,
}

/// Two formulas that must both hold, of which some children are done.
struct Open {
    pair: (Formula, Formula),
    variable: u32,
    /// Where its results begin.
    start: usize,
}

impl<'b> Diagram<'b> {
    pub(crate) fn new(budget: &'b Budget<'b>) -> Diagram<'b> {
        Diagram {
            nodes: vec![Node { variable: u32::MAX, start: 0, next: None, rough: false }],
            children: Vec::new(),
            unique: HashMap::default(),
            known: HashMap::default(),
            variables: Vec::new(),
            left: budget.share(),
            budget,
        }
    }

    /// Begins another question: it may take a part of what is left for all of them.
    pub(crate) fn begin_question(&mut self) {
        self.left = self.budget.share();
    }

    fn spend(&mut self, steps: usize) -> Result<(), TooLarge> {
        self.left = self.left.checked_sub(steps).ok_or(TooLarge)?;
        self.budget.spend(steps);
        Ok(())
    }

    /// A new variable of 2 to 64 values. Ranks differ; higher ones are tested first.
    pub(crate) fn add_variable(&mut self, rank: u64, size: usize) -> Variable {
        self.push_variable(rank, size, false)
    }

    /// A new variable of two values that stands for what was too large: nothing is known of when it holds.
    pub(crate) fn add_rough_variable(&mut self, rank: u64) -> Variable {
        self.push_variable(rank, 2, true)
    }

    fn push_variable(&mut self, rank: u64, size: usize, rough: bool) -> Variable {
        debug_assert!(size <= MOST_VALUES, "a variable has {MOST_VALUES} values at most");
        self.variables.push(Rank { rank, size, rough });
        Variable(u32::try_from(self.variables.len() - 1).expect("there are fewer variables than nodes"))
    }

    /// Holds where the variable has one of the values for which `is` says so.
    pub(crate) fn literal(&mut self, variable: Variable, is: impl Fn(usize) -> bool) -> Formula {
        let size = self.variables[variable.0 as usize].size;
        let children: Vec<Formula> = (0..size).map(|value| if is(value) { ALWAYS } else { NEVER }).collect();
        self.make_node(variable.0, &children)
    }

    pub(crate) fn and(&mut self, a: Formula, b: Formula) -> Sized {
        // Lists in place of recursion: a formula is as deep as it has variables.
        let mut stack: Vec<Open> = Vec::new();
        let mut done: Vec<Formula> = Vec::new();
        let mut next = Some((a, b));
        // Never read as it is: the first pair without an answer is opened, and one with an answer replaces this.
        let mut result = NEVER;
        self.spend(1)?;
        loop {
            if let Some((a, b)) = next.take() {
                // Both orders are one question, which is answered once.
                let pair = if a <= b { (a, b) } else { (b, a) };
                match simplify_and(pair).or_else(|| self.known.get(&pair).copied()) {
                    Some(known) => result = known,
                    None => {
                        let variable = self.top_variable(pair);
                        self.spend(self.variables[variable as usize].size)?;
                        stack.push(Open { pair, variable, start: done.len() });
                        next = Some((self.child_at(pair.0, variable, 0), self.child_at(pair.1, variable, 0)));
                        continue;
                    }
                }
            }
            let Some(open) = stack.last() else { return Ok(result) };
            done.push(result);
            let value = done.len() - open.start;
            let (pair, variable, start) = (open.pair, open.variable, open.start);
            if value < self.variables[variable as usize].size {
                next = Some((self.child_at(pair.0, variable, value), self.child_at(pair.1, variable, value)));
                continue;
            }
            stack.pop();
            result = self.make_node(variable, &done[start..]);
            done.truncate(start);
            if self.known.len() == MOST_KNOWN {
                self.known.clear();
            }
            self.known.insert(pair, result);
        }
    }

    pub(crate) fn or(&mut self, a: Formula, b: Formula) -> Sized {
        Ok(negate_formula(self.and(negate_formula(a), negate_formula(b))?))
    }

    /// `a`, and not `b`.
    pub(crate) fn and_not(&mut self, a: Formula, b: Formula) -> Sized {
        self.and(a, negate_formula(b))
    }

    /// Holds for the values of the variables that are kept for which the formula can hold.
    pub(crate) fn project(&mut self, formula: Formula, keep: impl Fn(Variable) -> bool) -> Sized {
        let mut found = BTreeSet::new();
        let mut open = vec![formula];
        while let Some(next) = open.pop() {
            if next > NEVER && found.insert(next) {
                open.extend(self.children_of(next));
                self.spend(self.count_children(next))?;
            }
        }
        // The constants stand for themselves, so that each child is found below.
        let mut projected = BTreeMap::from([(NEVER, NEVER), (ALWAYS, ALWAYS)]);
        // A node is made after its children.
        for node in found {
            let variable = self.nodes[node.node_index()].variable;
            let children: Vec<Formula> = self.children_of(node).map(|child| projected[&child]).collect();
            let whole = match keep(Variable(variable)) {
                true => self.make_node(variable, &children),
                false => {
                    let mut any = NEVER;
                    for child in children {
                        any = self.or(any, child)?;
                    }
                    any
                }
            };
            projected.insert(node, whole);
        }
        Ok(projected[&formula])
    }

    /// Whether the formula depends on the variable.
    pub(crate) fn depends_on(&mut self, formula: Formula, variable: Variable) -> Result<bool, TooLarge> {
        let rank = self.variables[variable.0 as usize].rank;
        let mut seen = BTreeSet::new();
        let mut open = vec![formula.node_index()];
        while let Some(next) = open.pop() {
            let tested = self.nodes[next].variable;
            if tested == variable.0 {
                return Ok(true);
            }
            // What is tested below the variable does not lead to it.
            if next > 0 && self.variables[tested as usize].rank > rank && seen.insert(next) {
                self.spend(self.variables[tested as usize].size)?;
                open.extend(self.children_of(Formula::from_node(next)).map(Formula::node_index));
            }
        }
        Ok(false)
    }

    /// Whether nothing in the formula stands for what was too large.
    pub(crate) fn is_exact(&self, formula: Formula) -> bool {
        !self.nodes[formula.node_index()].rough
    }

    /// Values for which the formula holds, the first where there is a choice; none where it never does. One that stands
    /// for what was too large may hold for none: what is found then proves nothing, and is an error.
    pub(crate) fn find_assignment(&mut self, formula: Formula) -> Result<Option<Assignment>, TooLarge> {
        if formula == NEVER {
            return Ok(None);
        }
        let mut assignment = Assignment::new();
        // Each turn goes to an older node, so the loop ends at a constant.
        let mut at = formula;
        while at > NEVER {
            let variable = self.nodes[at.node_index()].variable;
            let rank = self.variables[variable as usize];
            if rank.rough {
                return Err(TooLarge);
            }
            self.spend(rank.size)?;
            let held = self.children_of(at).enumerate().filter(|(_, child)| *child != NEVER);
            // Where there is a way around what was too large, it is taken.
            let (value, child) = held
                .min_by_key(|(value, child)| (self.is_rough(*child), *value))
                .expect("a node that can hold has a child that can");
            assignment.insert(Variable(variable), value);
            at = child;
        }
        Ok(Some(assignment))
    }

    fn is_rough(&self, formula: Formula) -> bool {
        let node = self.nodes[formula.node_index()];
        // The constant is never rough, and has no variable to look up.
        node.rough && self.variables[node.variable as usize].rough
    }

    /// Whether the formula holds for these values; the first where none is given.
    pub(crate) fn evaluate(&self, formula: Formula, assignment: &Assignment) -> bool {
        let mut at = formula;
        while at > NEVER {
            let variable = self.nodes[at.node_index()].variable;
            at = self.child_at(at, variable, assignment.get(&Variable(variable)).copied().unwrap_or(0));
        }
        at == ALWAYS
    }

    /// The variable that is tested first.
    fn top_variable(&self, pair: (Formula, Formula)) -> u32 {
        let of = |formula: Formula| {
            let variable = self.nodes[formula.node_index()].variable;
            // The constant has no variable, and so the lowest rank.
            let rank = self.variables.get(variable as usize).map(|rank| rank.rank);
            (rank, variable)
        };
        of(pair.0).max(of(pair.1)).1
    }

    fn child_at(&self, formula: Formula, variable: u32, value: usize) -> Formula {
        let node = &self.nodes[formula.node_index()];
        match node.variable == variable {
            // A formula that does not test the variable is the same for each of its values.
            true => self.children[node.start as usize + value].with_sign(formula),
            false => formula,
        }
    }

    fn children_of(&self, formula: Formula) -> impl Iterator<Item = Formula> + '_ {
        let start = self.nodes[formula.node_index()].start as usize;
        self.children[start..start + self.count_children(formula)].iter().map(move |child| child.with_sign(formula))
    }

    /// The children that a formula has.
    fn count_children(&self, formula: Formula) -> usize {
        self.variables.get(self.nodes[formula.node_index()].variable as usize).map_or(0, |rank| rank.size)
    }

    fn make_node(&mut self, variable: u32, children: &[Formula]) -> Formula {
        // A variable without values has no test that holds.
        let Some(&first) = children.first() else { return NEVER };
        // A test that decides nothing gets no node, so that equal formulas stay one.
        if children.iter().all(|&child| child == first) {
            return first;
        }
        // Of a node and its opposite there is the one whose first child has no sign.
        let sign = Formula(first.0 & 1);
        let mut hasher = Fast::default();
        hasher.write_u32(variable);
        children.iter().for_each(|child| hasher.write_u32(child.with_sign(sign).0));
        let hash = hasher.finish();
        let known = self.unique.get(&hash).copied();
        let mut at = known;
        while let Some(node) = at {
            let found = &self.nodes[node as usize];
            // The list goes on behind the node's children: `zip` ends with those that are compared.
            let own = &self.children[found.start as usize..];
            if found.variable == variable && children.iter().zip(own).all(|(child, own)| child.with_sign(sign) == *own)
            {
                return Formula::from_node(node as usize).with_sign(sign);
            }
            at = found.next;
        }
        let node = u32::try_from(self.nodes.len()).expect("the nodes are counted");
        let start = u32::try_from(self.children.len()).expect("the children are counted");
        let rough = self.variables[variable as usize].rough || children.iter().any(|&child| !self.is_exact(child));
        self.children.extend(children.iter().map(|child| child.with_sign(sign)));
        self.nodes.push(Node { variable, start, next: known, rough });
        self.unique.insert(hash, node);
        Formula::from_node(node as usize).with_sign(sign)
    }
}

impl Formula {
    fn from_node(node: usize) -> Formula {
        Formula(u32::try_from(node << 1).expect("the nodes are counted"))
    }

    fn node_index(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// With the sign of another.
    fn with_sign(self, other: Formula) -> Formula {
        Formula(self.0 ^ (other.0 & 1))
    }
}

/// Holds where the formula does not.
pub(crate) fn negate_formula(formula: Formula) -> Formula {
    Formula(formula.0 ^ 1)
}

/// What is known to hold of a pair without a look at their children; the smaller stands first.
fn simplify_and((a, b): (Formula, Formula)) -> Option<Formula> {
    match (a, b) {
        (ALWAYS, other) => Some(other),
        (NEVER, _) => Some(NEVER),
        _ if a == b => Some(a),
        _ if a == negate_formula(b) => Some(NEVER),
        _ => None,
    }
}

/// A fast hash. Formulas are looked up so often that the hash of the standard library would be most of the work. This
/// module makes all keys itself, so an attacker cannot choose them.
#[derive(Default)]
struct Fast(u64);

type Hashed = BuildHasherDefault<Fast>;

impl Hasher for Fast {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cancel;

    /// More than these tests spend.
    const MANY: usize = 10_000;

    fn is(diagram: &mut Diagram<'_>, variable: Variable, value: usize) -> Formula {
        diagram.literal(variable, |other| other == value)
    }

    #[test]
    fn a_formula_and_its_opposite_are_exhaustive_and_exclusive() {
        let cancel = Cancel::default();
        let budget = Budget::new(MANY, &cancel);
        let mut diagram = Diagram::new(&budget);
        let (x, y) = (diagram.add_variable(1, 3), diagram.add_variable(2, 2));
        let (x, y) = (is(&mut diagram, x, 1), is(&mut diagram, y, 0));
        let both = diagram.and(x, y).unwrap();
        let not = super::negate_formula(both);
        assert_eq!(diagram.and(both, not), Ok(NEVER));
        assert_eq!(diagram.or(both, not), Ok(ALWAYS));
        let (no_x, no_y) = (super::negate_formula(x), super::negate_formula(y));
        assert_eq!(diagram.or(no_x, no_y), Ok(not), "as De Morgan says");
    }

    #[test]
    fn the_values_of_a_variable_exclude_each_other_and_cover_it() {
        let cancel = Cancel::default();
        let budget = Budget::new(MANY, &cancel);
        let mut diagram = Diagram::new(&budget);
        let x = diagram.add_variable(1, 3);
        let values: Vec<Formula> = (0..3).map(|value| is(&mut diagram, x, value)).collect();
        assert_eq!(diagram.and(values[0], values[1]), Ok(NEVER));
        let two = diagram.or(values[0], values[1]).unwrap();
        assert_ne!(two, ALWAYS);
        assert_eq!(diagram.or(two, values[2]), Ok(ALWAYS));
    }

    #[test]
    fn an_example_makes_its_formula_hold() {
        let cancel = Cancel::default();
        let budget = Budget::new(MANY, &cancel);
        let mut diagram = Diagram::new(&budget);
        let (x, y) = (diagram.add_variable(1, 3), diagram.add_variable(2, 2));
        let (x, y) = (is(&mut diagram, x, 2), is(&mut diagram, y, 1));
        let both = diagram.and(x, y).unwrap();
        let example = diagram.find_assignment(both).unwrap().unwrap();
        assert!(diagram.evaluate(both, &example));
        assert!(!diagram.evaluate(negate_formula(both), &example));
        assert_eq!(diagram.find_assignment(NEVER), Ok(None));
    }

    #[test]
    fn what_is_projected_away_can_be_anything() {
        let cancel = Cancel::default();
        let budget = Budget::new(MANY, &cancel);
        let mut diagram = Diagram::new(&budget);
        let (first, second) = (diagram.add_variable(1, 2), diagram.add_variable(2, 2));
        let (x, y) = (is(&mut diagram, first, 1), is(&mut diagram, second, 1));
        let both = diagram.and(x, y).unwrap();
        assert_eq!(diagram.project(both, |variable| variable == first), Ok(x));
        assert_eq!(diagram.project(both, |_| false), Ok(ALWAYS));
        assert_eq!(diagram.project(NEVER, |_| false), Ok(NEVER));
    }

    #[test]
    fn a_long_chain_takes_a_node_each_and_an_endless_one_stops() {
        let cancel = Cancel::default();
        let budget = Budget::new(MANY, &cancel);
        let mut diagram = Diagram::new(&budget);
        let mut chain = ALWAYS;
        for rank in 0..10_000 {
            diagram.begin_question();
            let variable = diagram.add_variable(rank, 2);
            let next = is(&mut diagram, variable, 0);
            chain = diagram.and(chain, next).unwrap();
        }
        assert!(diagram.find_assignment(chain).unwrap().is_some_and(|example| example.len() == 10_000));
        assert!(diagram.nodes.len() <= 20_002);
        // Pairs that are far apart: the diagram of their conjunction doubles with each.
        let far: Vec<Variable> = (0..60).map(|rank| diagram.add_variable(20_000 + rank, 2)).collect();
        let mut clauses = Ok(ALWAYS);
        diagram.begin_question();
        for pair in 0..30 {
            let (a, b) = (is(&mut diagram, far[pair], 0), is(&mut diagram, far[pair + 30], 0));
            clauses = clauses.and_then(|all| {
                let either = diagram.or(a, b)?;
                diagram.and(all, either)
            });
        }
        assert_eq!(clauses, Err(TooLarge));
    }

    #[test]
    fn what_was_too_large_proves_that_something_cannot_be_and_never_that_it_can() {
        let cancel = Cancel::default();
        let budget = Budget::new(MANY, &cancel);
        let mut diagram = Diagram::new(&budget);
        let (known, open) = (diagram.add_variable(1, 2), diagram.add_rough_variable(2));
        let (known, open) = (is(&mut diagram, known, 0), is(&mut diagram, open, 0));
        let both = diagram.and(known, open).unwrap();
        assert!(diagram.is_exact(known) && !diagram.is_exact(both));
        assert_eq!(diagram.find_assignment(both), Err(TooLarge), "only where the one holds of which nothing is known");
        assert_eq!(diagram.and(both, negate_formula(known)), Ok(NEVER), "whatever that is");
    }

    #[test]
    fn hard_questions_leave_room_for_easy_ones() {
        let cancel = Cancel::default();
        let budget = Budget::new(0, &cancel);
        let mut diagram = Diagram::new(&budget);
        let variables: Vec<Variable> = (0..64).map(|rank| diagram.add_variable(rank, 2)).collect();
        for question in 0..50 {
            let mut clauses = Ok(ALWAYS);
            for pair in 0..32 {
                let other = 32 + (pair + question) % 32;
                let (a, b) = (is(&mut diagram, variables[pair], 0), is(&mut diagram, variables[other], 0));
                clauses = clauses.and_then(|all| {
                    let either = diagram.or(a, b)?;
                    diagram.and(all, either)
                });
            }
            assert_eq!(clauses, Err(TooLarge));
            diagram.begin_question();
        }
        let (a, b) = (is(&mut diagram, variables[0], 0), is(&mut diagram, variables[1], 0));
        assert!(diagram.and(a, b).is_ok());
        assert!(budget.spent_steps() <= 150_000);
        cancel.cancel();
        diagram.begin_question();
        let (c, d) = (is(&mut diagram, variables[2], 0), is(&mut diagram, variables[3], 0));
        assert_eq!(diagram.and(c, d), Err(TooLarge), "it would take too long");
    }
}
