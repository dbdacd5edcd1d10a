//! Formulas over variables of several values, as shared decision diagrams.
//!
//! Two formulas are equal when their ids are, so that asking whether one can hold is a comparison. Variables are tested
//! by falling rank. Nothing here recurses, and each operation gives up when it would make more nodes than are left.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A formula, by its node.
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

/// What never holds.
pub(crate) const NEVER: Formula = Formula(0);
/// What always holds.
pub(crate) const ALWAYS: Formula = Formula(1);

/// The most values that a variable has.
pub(crate) const MOST_VALUES: usize = 64;
/// The nodes that all formulas together may have.
const MOST_NODES: usize = 400_000;
/// The nodes that may be looked at for one question.
const MOST_WORK: usize = 60_000;

/// The formulas made so far.
#[derive(Debug)]
pub(crate) struct Diagram {
    /// The two constants stand first, as nodes without children.
    nodes: Vec<Node>,
    unique: HashMap<Node, Formula>,
    known: HashMap<(Operation, Formula, Formula), Formula>,
    variables: Vec<Rank>,
    work: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    variable: u32,
    /// What remains to hold, for each value.
    children: Box<[Formula]>,
}

#[derive(Clone, Copy, Debug)]
struct Rank {
    rank: u64,
    size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    And,
    Or,
    Not,
}

/// An operation on two nodes of which some children are done.
struct Open {
    pair: (Formula, Formula),
    variable: u32,
    done: Vec<Formula>,
}

impl Diagram {
    pub(crate) fn new() -> Diagram {
        let constant = || Node { variable: u32::MAX, children: Box::default() };
        Diagram {
            nodes: vec![constant(), constant()],
            unique: HashMap::new(),
            known: HashMap::new(),
            variables: Vec::new(),
            work: MOST_WORK,
        }
    }

    /// Begins another question: what was spent on those before it does not count.
    pub(crate) fn ask(&mut self) {
        self.work = MOST_WORK;
    }

    /// A new variable of 2 to 64 values. Ranks differ; higher ones are tested first.
    pub(crate) fn variable(&mut self, rank: u64, size: usize) -> Variable {
        debug_assert!((1..=MOST_VALUES).contains(&size), "a variable has 1 to {MOST_VALUES} values");
        self.variables.push(Rank { rank, size });
        Variable(u32::try_from(self.variables.len() - 1).expect("there are fewer variables than nodes"))
    }

    /// Holds where the variable has one of the values for which `is` says so.
    pub(crate) fn literal(&mut self, variable: Variable, is: impl Fn(usize) -> bool) -> Sized {
        let size = self.variables[variable.0 as usize].size;
        let children = (0..size).map(|value| if is(value) { ALWAYS } else { NEVER }).collect();
        self.node(variable.0, children)
    }

    pub(crate) fn and(&mut self, a: Formula, b: Formula) -> Sized {
        self.apply(Operation::And, a, b)
    }

    pub(crate) fn or(&mut self, a: Formula, b: Formula) -> Sized {
        self.apply(Operation::Or, a, b)
    }

    pub(crate) fn not(&mut self, a: Formula) -> Sized {
        self.apply(Operation::Not, a, a)
    }

    /// `a`, and not `b`.
    pub(crate) fn without(&mut self, a: Formula, b: Formula) -> Sized {
        let not = self.not(b)?;
        self.and(a, not)
    }

    /// Holds for the values of the variables that are kept for which the formula can hold.
    pub(crate) fn project(&mut self, formula: Formula, keep: impl Fn(Variable) -> bool) -> Sized {
        let mut found = BTreeSet::new();
        let mut open = vec![formula];
        while let Some(next) = open.pop() {
            if next > ALWAYS && found.insert(next) {
                open.extend(&self.nodes[next.0 as usize].children);
            }
        }
        let mut projected = BTreeMap::from([(NEVER, NEVER), (ALWAYS, ALWAYS)]);
        // A node is made after its children.
        for node in found {
            let Node { variable, children } = self.nodes[node.0 as usize].clone();
            let children: Vec<Formula> = children.iter().map(|child| projected[child]).collect();
            let whole = match keep(Variable(variable)) {
                true => self.node(variable, children)?,
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
    pub(crate) fn depends(&self, formula: Formula, variable: Variable) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![formula];
        while let Some(next) = open.pop() {
            let node = &self.nodes[next.0 as usize];
            if node.variable == variable.0 {
                return true;
            }
            if seen.insert(next) {
                open.extend(&node.children);
            }
        }
        false
    }

    /// Values for which the formula holds, the first where there is a choice; none where it never does.
    pub(crate) fn example(&self, formula: Formula) -> Option<Assignment> {
        let mut assignment = Assignment::new();
        let mut at = formula;
        while at > ALWAYS {
            let node = &self.nodes[at.0 as usize];
            let value = node.children.iter().position(|&child| child != NEVER)?;
            assignment.insert(Variable(node.variable), value);
            at = node.children[value];
        }
        (at == ALWAYS).then_some(assignment)
    }

    /// Whether the formula holds for these values; the first where none is given.
    pub(crate) fn holds(&self, formula: Formula, assignment: &Assignment) -> bool {
        let mut at = formula;
        while at > ALWAYS {
            let node = &self.nodes[at.0 as usize];
            at = node.children[assignment.get(&Variable(node.variable)).copied().unwrap_or(0)];
        }
        at == ALWAYS
    }

    fn apply(&mut self, operation: Operation, a: Formula, b: Formula) -> Sized {
        let mut stack: Vec<Open> = Vec::new();
        let mut next = Some((a, b));
        let mut result = NEVER;
        loop {
            if let Some((a, b)) = next.take() {
                let pair = if a <= b { (a, b) } else { (b, a) };
                match quick(operation, pair).or_else(|| self.known.get(&(operation, pair.0, pair.1)).copied()) {
                    Some(known) => result = known,
                    None => {
                        self.work = self.work.checked_sub(1).ok_or(TooLarge)?;
                        let variable = self.first(pair);
                        stack.push(Open { pair, variable, done: Vec::new() });
                        next = Some((self.child(pair.0, variable, 0), self.child(pair.1, variable, 0)));
                        continue;
                    }
                }
            }
            let Some(open) = stack.last_mut() else { return Ok(result) };
            open.done.push(result);
            let value = open.done.len();
            let (pair, variable) = (open.pair, open.variable);
            if value < self.variables[variable as usize].size {
                next = Some((self.child(pair.0, variable, value), self.child(pair.1, variable, value)));
                continue;
            }
            let done = std::mem::take(&mut open.done);
            stack.pop();
            result = self.node(variable, done)?;
            self.known.insert((operation, pair.0, pair.1), result);
        }
    }

    /// The variable that is tested first.
    fn first(&self, pair: (Formula, Formula)) -> u32 {
        let of = |formula: Formula| {
            let variable = self.nodes[formula.0 as usize].variable;
            let rank = self.variables.get(variable as usize).map(|rank| rank.rank);
            (rank, variable)
        };
        of(pair.0).max(of(pair.1)).1
    }

    fn child(&self, formula: Formula, variable: u32, value: usize) -> Formula {
        let node = &self.nodes[formula.0 as usize];
        if node.variable == variable { node.children[value] } else { formula }
    }

    fn node(&mut self, variable: u32, children: Vec<Formula>) -> Sized {
        if children.iter().all(|&child| child == children[0]) {
            return Ok(children[0]);
        }
        let node = Node { variable, children: children.into() };
        if let Some(&known) = self.unique.get(&node) {
            return Ok(known);
        }
        if self.nodes.len() >= MOST_NODES {
            return Err(TooLarge);
        }
        let formula = Formula(u32::try_from(self.nodes.len()).expect("the nodes are counted"));
        self.nodes.push(node.clone());
        self.unique.insert(node, formula);
        Ok(formula)
    }
}

/// The result where no child has to be looked at; the smaller of the pair stands first.
fn quick(operation: Operation, (a, b): (Formula, Formula)) -> Option<Formula> {
    match (operation, a, b) {
        (Operation::Not, NEVER, _) => Some(ALWAYS),
        (Operation::Not, ALWAYS, _) => Some(NEVER),
        (Operation::Not, ..) => None,
        (Operation::And, NEVER, _) => Some(NEVER),
        (Operation::And, ALWAYS, other) | (Operation::Or, NEVER, other) => Some(other),
        (Operation::Or, ALWAYS, _) => Some(ALWAYS),
        (Operation::And | Operation::Or, a, b) => (a == b).then_some(a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(diagram: &mut Diagram, variable: Variable, value: usize) -> Formula {
        diagram.literal(variable, |other| other == value).expect("there is room")
    }

    #[test]
    fn a_formula_and_its_opposite_are_exhaustive_and_exclusive() {
        let mut diagram = Diagram::new();
        let (x, y) = (diagram.variable(1, 3), diagram.variable(2, 2));
        let (x, y) = (is(&mut diagram, x, 1), is(&mut diagram, y, 0));
        let both = diagram.and(x, y).unwrap();
        let not = diagram.not(both).unwrap();
        assert_eq!(diagram.and(both, not), Ok(NEVER));
        assert_eq!(diagram.or(both, not), Ok(ALWAYS));
        let (no_x, no_y) = (diagram.not(x).unwrap(), diagram.not(y).unwrap());
        assert_eq!(diagram.or(no_x, no_y), Ok(not), "as De Morgan says");
    }

    #[test]
    fn the_values_of_a_variable_exclude_each_other_and_cover_it() {
        let mut diagram = Diagram::new();
        let x = diagram.variable(1, 3);
        let values: Vec<Formula> = (0..3).map(|value| is(&mut diagram, x, value)).collect();
        assert_eq!(diagram.and(values[0], values[1]), Ok(NEVER));
        let two = diagram.or(values[0], values[1]).unwrap();
        assert_ne!(two, ALWAYS);
        assert_eq!(diagram.or(two, values[2]), Ok(ALWAYS));
    }

    #[test]
    fn an_example_makes_its_formula_hold() {
        let mut diagram = Diagram::new();
        let (x, y) = (diagram.variable(1, 3), diagram.variable(2, 2));
        let (x, y) = (is(&mut diagram, x, 2), is(&mut diagram, y, 1));
        let both = diagram.and(x, y).unwrap();
        let example = diagram.example(both).unwrap();
        assert!(diagram.holds(both, &example));
        let not = diagram.not(both).unwrap();
        assert!(!diagram.holds(not, &example));
        assert_eq!(diagram.example(NEVER), None);
    }

    #[test]
    fn what_is_projected_away_can_be_anything() {
        let mut diagram = Diagram::new();
        let (first, second) = (diagram.variable(1, 2), diagram.variable(2, 2));
        let (x, y) = (is(&mut diagram, first, 1), is(&mut diagram, second, 1));
        let both = diagram.and(x, y).unwrap();
        assert_eq!(diagram.project(both, |variable| variable == first), Ok(x));
        assert_eq!(diagram.project(both, |_| false), Ok(ALWAYS));
        assert_eq!(diagram.project(NEVER, |_| false), Ok(NEVER));
    }

    #[test]
    fn a_long_chain_takes_a_node_each_and_an_endless_one_stops() {
        let mut diagram = Diagram::new();
        let mut chain = ALWAYS;
        for rank in 0..10_000 {
            diagram.ask();
            let variable = diagram.variable(rank, 2);
            let next = is(&mut diagram, variable, 0);
            chain = diagram.and(chain, next).unwrap();
        }
        assert!(diagram.example(chain).is_some_and(|example| example.len() == 10_000));
        assert!(diagram.nodes.len() <= 20_002);
        // Pairs that are far apart: the diagram of their conjunction doubles with each.
        let far: Vec<Variable> = (0..60).map(|rank| diagram.variable(20_000 + rank, 2)).collect();
        let mut clauses = Ok(ALWAYS);
        diagram.ask();
        for pair in 0..30 {
            let (a, b) = (is(&mut diagram, far[pair], 0), is(&mut diagram, far[pair + 30], 0));
            clauses = clauses.and_then(|all| {
                let either = diagram.or(a, b)?;
                diagram.and(all, either)
            });
        }
        assert_eq!(clauses, Err(TooLarge));
    }
}
