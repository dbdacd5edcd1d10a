//! Draws a graph as text for terminals: one line for each step, with its connections as lines at the left.
//!
//! In: a graph. Out: lines of about `width` columns. As in the log of a version control system, each step that others
//! wait for has a column of its own from its line down to the last of them; the columns that a step waits for have a tick
//! in its line, and are named behind it. Several steps that only one other waits for share one column, which leads there.
//!
//! It draws no boxes and arrows: a row of six steps is wider than a hundred columns, and characters cannot draw lines
//! of any slope. The listing has one line for each step, a person can search it, and words replace the lines of a
//! picture.

use std::collections::BTreeMap;
use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use crate::terminal::{Paint, cut_text};
use swarmc_view::graph::{Arrow, Graph, Group, Node, Shape};
use swarmc_view::make_printable;

/// Columns between the parts of a line.
const APART: usize = 2;
/// Columns that lines at the left take at most before names stop to be below each other.
const LEFT: usize = 40;
/// Columns for what is said of a step, however little space there is.
const SAYS: usize = 40;

pub(super) fn render_text(graph: &Graph, width: usize, paint: Paint) -> String {
    let mut names = BTreeMap::new();
    graph.groups.iter().for_each(|group| collect_names(group, &mut names));
    let listing = Listing { graph, names, width, paint };
    let parts: Vec<String> = graph.groups.iter().map(|group| listing.render_group(group)).collect();
    parts.join("\n")
}

/// The names of all boxes and frames, by their ids.
fn collect_names<'g>(group: &'g Group, names: &mut BTreeMap<&'g str, &'g str>) {
    names.insert(&group.id, &group.name);
    names.extend(group.nodes.iter().map(|node| (node.id.as_str(), node.lines.first().map_or("", String::as_str))));
    group.groups.iter().for_each(|inner| collect_names(inner, names));
}

struct Listing<'g> {
    graph: &'g Graph,
    names: BTreeMap<&'g str, &'g str>,
    width: usize,
    paint: Paint,
}

/// A line: what stands left of the name, the name, and what is said of it.
struct Line<'g> {
    left: String,
    name: &'g str,
    says: Vec<String>,
    /// What it waits for: its name, and how where that matters.
    needs: Vec<String>,
}

/// A step or a frame.
#[derive(Clone, Copy)]
enum Child<'g> {
    Node(&'g Node),
    Group(&'g Group),
}

impl<'g> Child<'g> {
    fn id(self) -> &'g str {
        match self {
            Child::Node(node) => &node.id,
            Child::Group(group) => &group.id,
        }
    }
}

impl<'g> Listing<'g> {
    /// A pipeline or swarm with its heading.
    fn render_group(&self, group: &'g Group) -> String {
        let mut out = String::new();
        for (index, line) in group.heading_lines().iter().enumerate() {
            let line = make_printable(line);
            let _ = writeln!(
                out,
                "{}",
                if index == 0 { self.paint.bold(&line) } else { self.paint.dim(&format!("  {line}")) }
            );
        }
        let mut lines = Vec::new();
        self.collect_lines(group, "  ", &mut lines);
        let column = lines.iter().map(|line| line.left.width()).filter(|left| *left <= LEFT).max().unwrap_or(0);
        let names = lines.iter().map(|line| line.name.width()).max().unwrap_or(0).min(LEFT);
        lines.iter().for_each(|line| self.write_line(&mut out, line, column, names));
        let inside = inner_names(group);
        let messages =
            self.graph.arrows.iter().filter(|arrow| arrow.is_message && inside.contains_key(arrow.from.as_str()));
        for Arrow { from, to, label, both, .. } in messages {
            let line = if *both { "↔" } else { "→" };
            let _ = writeln!(
                out,
                "  {} {line} {}  {}",
                self.display_name(from),
                self.display_name(to),
                self.paint.dim(&make_printable(label))
            );
        }
        out
    }

    fn display_name(&self, id: &str) -> String {
        make_printable(self.names.get(id).copied().unwrap_or(id)).into_owned()
    }

    /// The lines of what is in a frame; `left` stands before each.
    fn collect_lines(&self, group: &'g Group, left: &str, out: &mut Vec<Line<'g>>) {
        let children: Vec<Child<'g>> =
            group.nodes.iter().map(Child::Node).chain(group.groups.iter().map(Child::Group)).collect();
        let index: BTreeMap<&str, usize> =
            children.iter().enumerate().map(|(index, child)| (child.id(), index)).collect();
        let mut needs: Vec<Vec<(usize, &str)>> = vec![Vec::new(); children.len()];
        let mut left_over = vec![0_usize; children.len()];
        for arrow in self.graph.arrows.iter().filter(|arrow| !arrow.is_message) {
            if let (Some(&from), Some(&to)) = (index.get(arrow.from.as_str()), index.get(arrow.to.as_str())) {
                needs[to].push((from, &arrow.label));
                left_over[from] += 1;
            }
        }
        let into = find_merges(&needs);
        let mut columns = Columns::default();
        for child in sort_by_needs(&needs) {
            let mut needed: Vec<usize> = needs[child].iter().map(|(need, _)| *need).collect();
            needed.sort_unstable();
            for need in &needed {
                left_over[*need] -= 1;
            }
            let ends = |of: Column| match of {
                Column::From(of) => left_over[of] == 0,
                Column::Into(_) => true,
            };
            let goes =
                if left_over[child] == 0 { None } else { Some(into[child].map_or(Column::From(child), Column::Into)) };
            let (drawn, at) = columns.draw_step(child, &needed, ends, goes, child_mark(children[child]));
            let drawn = format!("{left}{drawn}");
            let waits = needs[child].iter().map(|(need, how)| {
                let name = self.display_name(children[*need].id());
                if how.is_empty() { name } else { format!("{name} ({how})") }
            });
            let needs = waits.collect();
            match children[child] {
                Child::Node(node) => {
                    let mut texts = node.lines.iter();
                    let name = texts.next().map_or("", String::as_str);
                    out.push(Line { left: drawn, name, says: texts.cloned().collect(), needs });
                }
                Child::Group(inner) => {
                    let says = inner.repeat.iter().chain(&inner.notes).cloned().collect();
                    out.push(Line { left: drawn, name: &inner.name, says, needs });
                    let mut left = String::from(left);
                    left.extend(columns.0.iter().map(|column| if column.is_some() { '│' } else { ' ' }));
                    let deeper = (at + 1).saturating_sub(columns.0.len());
                    self.collect_lines(inner, &format!("{left}{}  ", " ".repeat(deeper)), out);
                }
            }
        }
    }

    fn write_line(&self, out: &mut String, line: &Line<'_>, column: usize, names: usize) {
        let pad = |used: usize, all: usize| " ".repeat(all.saturating_sub(used) + APART);
        let mut at = line.left.width().max(column) + APART + line.name.width();
        let _ = write!(
            out,
            "{}{}{}",
            line.left,
            pad(line.left.width(), column),
            self.paint.bold(&make_printable(line.name))
        );
        let mut gap = pad(line.name.width(), names);
        let needs = if line.needs.is_empty() { 0 } else { line.needs.join(", ").width() + APART + 2 };
        if !line.says.is_empty() {
            let says = make_printable(&line.says.join(", ")).into_owned();
            let room = self.width.saturating_sub(at + gap.width() + needs).max(SAYS);
            let says = cut_text(&says, room);
            at += gap.width() + says.width();
            let _ = write!(out, "{gap}{}", self.paint.dim(&says));
            gap = " ".repeat(APART);
        }
        if !line.needs.is_empty() {
            at += gap.width() + 2;
            let needs = fit_names(&line.needs, self.width.saturating_sub(at));
            let _ = write!(out, "{gap}← {needs}");
        }
        out.push('\n');
    }
}

/// As many of the names as fit, and how many more there are.
fn fit_names(names: &[String], width: usize) -> String {
    // The caller passes at least one name, which stands there however narrow the line is.
    let mut out = names[0].clone();
    for (index, name) in names.iter().enumerate().skip(1) {
        let more = names.len() - index;
        let rest = if more > 1 { format!(" and {more} more").width() } else { 0 };
        if out.width() + 2 + name.width() + rest > width {
            let _ = write!(out, " and {more} more");
            break;
        }
        let _ = write!(out, ", {name}");
    }
    out
}

/// For each step, the step that its line leads to when that is all that waits for it, and gathers several such lines.
fn find_merges(needs: &[Vec<(usize, &str)>]) -> Vec<Option<usize>> {
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (child, needs) in needs.iter().enumerate() {
        needs.iter().for_each(|(need, _)| waiting[*need].push(child));
    }
    let only = |of: usize| <[usize; 1]>::try_from(waiting[of].as_slice()).ok().map(|[only]| only);
    let mut counts = vec![0; needs.len()];
    (0..needs.len()).filter_map(only).for_each(|to| counts[to] += 1);
    (0..needs.len()).map(|of| only(of).filter(|to| counts[*to] > 2)).collect()
}

/// Whose a column is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Column {
    /// It leads from a step to all that wait for it.
    From(usize),
    /// It leads from several steps to the one that waits for them.
    Into(usize),
}

/// The columns, from the left.
#[derive(Default)]
struct Columns(Vec<Option<Column>>);

impl Columns {
    /// The left of a step's line, and the column it stands in. `needs` are sorted; `ends` says of columns that lead to it whether they go no
    /// further; `goes` is the column that begins at it, or that it joins.
    fn draw_step(
        &mut self,
        child: usize,
        needs: &[usize],
        ends: impl Fn(Column) -> bool,
        goes: Option<Column>,
        mark: char,
    ) -> (String, usize) {
        let leads = |of: Column| match of {
            Column::From(of) => needs.binary_search(&of).is_ok(),
            Column::Into(to) => to == child,
        };
        let joins = |column: &Option<Column>| column.is_some_and(leads);
        let (first, last) = (self.0.iter().position(joins), self.0.iter().rposition(joins));
        // It stands right of all that it waits for, or in the place of the last of them when that ends here.
        let at = match last {
            Some(last) if self.0[last].is_some_and(&ends) => last,
            Some(last) => self.free_column(last + 1),
            None => self.free_column(0),
        };
        let gathers = goes.filter(|goes| matches!(goes, Column::Into(_)));
        let old = gathers.and_then(|goes| self.0.iter().position(|column| *column == Some(goes)));
        let to = gathers.map(|_| old.unwrap_or_else(|| self.free_column(at + 1)));
        let mut drawn = String::new();
        let left = first.into_iter().chain(to).fold(at, usize::min);
        let right = to.map_or(at, |to| to.max(at));
        for column in 0..self.0.len().max(right + 1) {
            drawn.push(match self.0.get(column).copied().flatten() {
                _ if column == at => mark,
                _ if to == Some(column) && old.is_none() => '╮',
                _ if to == Some(column) && column > at => '┤',
                _ if to == Some(column) => '├',
                Some(of) if leads(of) && !ends(of) => '├',
                Some(of) if leads(of) && first == Some(column) => '╰',
                Some(of) if leads(of) => '┴',
                Some(_) => '│',
                None if left < column && column < right => '─',
                None => ' ',
            });
        }
        for column in &mut self.0 {
            if column.is_some_and(|of| leads(of) && ends(of)) {
                *column = None;
            }
        }
        if let Some(goes) = goes {
            let place = to.unwrap_or(at);
            self.0.resize(self.0.len().max(place + 1), None);
            self.0[place] = Some(goes);
        }
        // Free columns at the right end would push the names of all later lines further right.
        while self.0.last() == Some(&None) {
            self.0.pop();
        }
        (drawn, at)
    }

    /// The first free column from this one on.
    fn free_column(&self, from: usize) -> usize {
        (from..self.0.len()).find(|column| self.0[*column].is_none()).unwrap_or(self.0.len().max(from))
    }
}

/// An order in which everything comes after what it waits for: declaration where nothing else decides.
fn sort_by_needs(needs: &[Vec<(usize, &str)>]) -> Vec<usize> {
    let mut missing: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut after = vec![Vec::new(); needs.len()];
    for (child, needs) in needs.iter().enumerate() {
        needs.iter().for_each(|(need, _)| after[*need].push(child));
    }
    // All are in the set, with how much each waits for: in a circle, one that waits for the least is next.
    let mut ready: std::collections::BTreeSet<(usize, usize)> =
        missing.iter().enumerate().map(|(child, missing)| (*missing, child)).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some((_, child)) = ready.pop_first() {
        order.push(child);
        for next in &after[child] {
            if ready.remove(&(missing[*next], *next)) {
                missing[*next] -= 1;
                ready.insert((missing[*next], *next));
            }
        }
    }
    order
}

fn child_mark(child: Child<'_>) -> char {
    match child {
        Child::Group(group) if group.repeat.is_empty() => '▤',
        Child::Group(_) => '↻',
        Child::Node(node) => match node.shape {
            Shape::Agent => '●',
            Shape::Command => '■',
            Shape::Value => '▪',
            Shape::Gate => '◆',
            Shape::Stop => '×',
            Shape::Call => '▶',
        },
    }
}

/// The ids of what is in a frame, at any depth.
fn inner_names(group: &Group) -> BTreeMap<&str, &str> {
    let mut names = BTreeMap::new();
    collect_names(group, &mut names);
    names
}
