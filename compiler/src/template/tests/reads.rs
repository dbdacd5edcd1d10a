//! What a text reads is what its evaluation looks up: random texts are evaluated over values that write that down.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use minijinja::value::{Object, Value};

use super::*;

/// What was looked up: a root, and the name after it.
type LookUps = Arc<Mutex<BTreeSet<(String, Option<String>)>>>;

/// Everything that an expression can read.
#[derive(Debug)]
struct World(LookUps);

impl Object for World {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let root = Root::from_word(key.as_str()?)?;
        if root.required_name().is_some() {
            return Some(Value::from_object(Names(root, Arc::clone(&self.0))));
        }
        self.0.lock().unwrap().insert((root.as_str().to_owned(), None));
        Some(value(root.as_str()))
    }
}

/// What a name is looked up in.
#[derive(Debug)]
struct Names(Root, LookUps);

impl Object for Names {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        self.1.lock().unwrap().insert((self.0.as_str().to_owned(), Some(name.to_owned())));
        Some(value(name))
    }
}

fn value(name: &str) -> Value {
    let list = || Value::from(vec![Value::from("b"), Value::from("a")]);
    match name {
        "list" => Value::from(vec![list(), list()]),
        "map" | "item" => Value::from_iter([("list".to_owned(), list()), ("n".to_owned(), Value::from(2))]),
        "index" | "iteration" | "n" => Value::from(2),
        _ => Value::from("text"),
    }
}

/// Random texts; the names that are bound are kept, so that most of what comes is right.
struct Texts {
    random: u64,
    bound: Vec<Vec<&'static str>>,
}

impl Texts {
    fn below(&mut self, count: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as usize % count
    }

    fn one(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len())]
    }

    /// A name that a text may bind.
    fn target(&mut self) -> &'static str {
        self.one(&["x", "y", "item", "index", "team", "plan"])
    }

    fn bind(&mut self, name: &'static str) {
        if let Some(scope) = self.bound.last_mut() {
            scope.push(name);
        }
    }

    fn scoped(&mut self, names: &[&'static str], make: impl FnOnce(&mut Texts) -> String) -> String {
        self.bound.push(names.to_vec());
        let made = make(self);
        self.bound.pop();
        made
    }

    fn leaf(&mut self) -> String {
        let bound: Vec<&'static str> = self.bound.iter().flatten().copied().collect();
        match self.below(12) {
            0..=3 if !bound.is_empty() => bound[self.below(bound.len())].to_owned(),
            0..=5 => {
                let root = self.one(&["output", "previous", "input", "param", "status", "error"]);
                let name = self.one(&["list", "map", "n", "text"]);
                match self.below(3) {
                    0 => format!("{root}[\"{name}\"]"),
                    _ => format!("{root}.{name}"),
                }
            }
            6 => self.one(&["output.map.list", "param.map[\"n\"]", "previous.list[0]"]).to_owned(),
            7 | 8 => self.one(&["item", "index", "iteration", "stdin", "run.id", "task.name", "item.list"]).to_owned(),
            _ => self.one(&["1", "0", "'text'", "true", "none", "[1, 'a']", "range(2)"]).to_owned(),
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let [a, b, c] = std::array::from_fn(|_| depth - 1).map(|depth| self.expression(depth));
        match self.below(24) {
            0 => format!("({a})[{b}:{c}]"),
            1 => format!("({a})[:2]"),
            2 => format!("({a})[::{b}]"),
            3 => format!("({a})[{b}]"),
            4 => format!("({a}) if ({b}) else ({c})"),
            5 => format!("({a}) and ({b})"),
            6 => format!("({a}) or ({b}) or ({c})"),
            7 => format!("not ({a})"),
            8 => format!("-({a})"),
            9 => format!("({a}) in ({b})"),
            10 => format!("({a}) < ({b}) <= ({c})"),
            11 => format!("({a}) + ({b})"),
            12 => format!("({a}) ~ ({b})"),
            13 => format!("[{a}, {b}]"),
            14 => format!("{{'k': {a}, {b}: {c}}}"),
            15 => format!("({a}) | default({b})"),
            16 => format!("({a}) | join({b})"),
            17 => format!("({a}) | replace({b}, {c})"),
            18 => format!("({a}) is eq({b})"),
            19 => format!("({a}) is defined and ({b}) is not none"),
            20 => format!("({a}) | map('default', {b}) | list"),
            21 => format!("dict(k={a}).k"),
            22 => format!("({a}, {b}) | sort(reverse={c}) | first"),
            _ => format!("({a}).list"),
        }
    }

    fn statements(&mut self, depth: usize) -> String {
        (0..=self.below(3)).map(|_| self.statement(depth)).collect()
    }

    fn statement(&mut self, depth: usize) -> String {
        let deep = self.below(3);
        let value = self.expression(deep);
        if depth == 0 {
            return format!("{{{{ {value} }}}}");
        }
        let name = self.target();
        match self.below(11) {
            0 => {
                self.bind(name);
                format!("{{% set {name} = {value} %}}")
            }
            1 => {
                let body = self.scoped(&[], |texts| texts.statements(depth - 1));
                self.bind(name);
                format!("{{% set {name} | default({value}) %}}{body}{{% endset %}}")
            }
            2 | 3 => {
                let filter = self.scoped(&["loop", name], |texts| texts.expression(1)).replace("loop", "loop.index");
                let filter = if self.below(2) == 0 { format!(" if {filter}") } else { String::new() };
                // A loop's own number is no value for a filter, which is asked before the loop begins.
                let filter = if filter.contains("loop") { String::new() } else { filter };
                let body = self.scoped(&[name], |texts| texts.statements(depth - 1));
                let otherwise = self.scoped(&[], |texts| texts.statements(depth - 1));
                format!("{{% for {name} in ({value}){filter} %}}{body}{{% else %}}{otherwise}{{% endfor %}}")
            }
            4 => {
                let body = self.scoped(&[name, "y"], |texts| texts.statements(depth - 1));
                format!("{{% for {name}, y in ({value}) | items %}}{body}{{{{ loop.index }}}}{{% endfor %}}")
            }
            5 => {
                let other = self.expression(1);
                let [a, b, c] = [(); 3].map(|()| self.scoped(&[], |texts| texts.statements(depth - 1)));
                format!("{{% if {value} %}}{a}{{% elif {other} %}}{b}{{% else %}}{c}{{% endif %}}")
            }
            6 => {
                let other = self.scoped(&[name], |texts| texts.expression(1));
                let body = self.scoped(&[name, "x"], |texts| texts.statements(depth - 1));
                format!("{{% with {name} = {value}, x = {other} %}}{body}{{% endwith %}}")
            }
            7 => {
                let body = self.scoped(&[], |texts| texts.statements(depth - 1));
                format!("{{% filter replace('a', ({value}) | string) %}}{body}{{% endfilter %}}")
            }
            8 => {
                let body = self.statements(depth - 1);
                format!("{{% autoescape {value} %}}{body}{{% endautoescape %}}")
            }
            9 => format!("{{% do range(({value}) | int(2)) %}}{{# {{ output.nothing }} #}}"),
            _ => format!("{{% raw %}}{{{{ output.nothing }}}}{{% endraw %}}{{{{- {value} -}}}}"),
        }
    }
}

fn looked_up(evaluate: impl FnOnce(&minijinja::Environment<'_>, Value) -> bool) -> (LookUps, bool) {
    let look_ups = LookUps::default();
    let mut environment = minijinja::Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Chainable);
    // What an error looks up to describe itself is not read.
    environment.set_debug(false);
    let world = Value::from_object(World(Arc::clone(&look_ups)));
    // What panics has looked something up before.
    let evaluated = std::panic::AssertUnwindSafe(|| evaluate(&environment, world));
    let whole = std::panic::catch_unwind(evaluated).unwrap_or(false);
    (look_ups, whole)
}

fn check(text: &str, reads: &[Read], look_ups: &LookUps) {
    let known: BTreeSet<_> = reads.iter().map(|read| (read.root.as_str().to_owned(), read.name.clone())).collect();
    let missed: Vec<_> = look_ups.lock().unwrap().difference(&known).cloned().collect();
    assert_eq!(missed, [], "{text}");
}

#[test]
fn what_a_text_reads_is_all_that_it_looks_up() {
    let (mut whole, mut right) = (0, 0);
    for seed in 1..=3_000_u64 {
        let mut texts = Texts { random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), bound: vec![Vec::new()] };
        let text = texts.statements(3);
        let template = scan(&text);
        if !template.problems.is_empty() {
            continue;
        }
        right += 1;
        let (look_ups, done) =
            looked_up(|environment, world| environment.template_from_str(&text).unwrap().render(world).is_ok());
        whole += usize::from(done);
        check(&text, &template.reads, &look_ups);
    }
    assert!(right > 1_500 && whole > 200, "{right} right, {whole} evaluated to their end");
}

#[test]
fn what_a_condition_reads_is_all_that_it_looks_up() {
    let mut right = 0;
    for seed in 1..=3_000_u64 {
        let mut texts = Texts { random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), bound: Vec::new() };
        let text = texts.expression(3);
        let condition = parse_expression(&text);
        if !condition.problems.is_empty() {
            continue;
        }
        right += 1;
        let (look_ups, _) = looked_up(|environment, world| {
            environment.compile_expression(&text).unwrap().eval(world).is_ok_and(|value| value.is_true())
        });
        check(&text, &condition.reads, &look_ups);
    }
    assert!(right > 1_500, "{right} right");
}

#[test]
fn slices_and_names_that_are_bound_anew_are_read() {
    check_reads("{{ output.l[1:] }}{{ param.q[:index] }}", "output.l, param.q, index");
    check_reads("{% set item = item | upper %}{{ item }}", "item");
    check_reads("{% for item in item.all[::2] %}{{ item }}{% endfor %}", "item.all");
    check_condition("output.l[:2] == param.q[-1:]", "output.l, param.q proves ");
}
