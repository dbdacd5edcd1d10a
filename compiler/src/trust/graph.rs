//! The taint graph: it shows how text flows through the whole workflow.
//!
//! Nodes are steps, members of swarms, parameters, files, packs, conversations and other places where texts meet. An
//! edge exists only where free text can pass (see [`super::label`]). Marks on the nodes show where taint starts, meets
//! and ends. Every question is one walk over nodes and edges.

use crate::ast::Name;
use crate::source::Span;
use crate::stats::Flows;

/// A place where text is, or passes.
#[derive(Debug)]
pub(crate) struct Node {
    pub name: String,
    pub kind: Kind,
    /// Where it is declared.
    pub span: Span,
    pub marks: Marks,
    /// Whether its results hold the items that they are of.
    pub with_item: bool,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A turn of an agent: what it reads can steer it.
    Turn,
    /// A step without an agent.
    Step,
    /// A person's decision.
    Gate,
    /// A member of a swarm.
    Member,
    Parameter,
    File,
    Pack,
    Worktree,
    /// Where the members of a swarm, or of a channel, meet.
    Team,
    /// What was piped into the run.
    Stdin,
}

/// What a node can do outside the run, or what reaches it from there; each with the span that declares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    /// It reads what strangers wrote.
    pub untrusted: Option<Mark>,
    /// It reads what must not leave.
    pub private: Option<Mark>,
    /// It sends to where others read.
    pub exit: Option<Mark>,
    /// It changes files or starts programs.
    pub privileged: Option<Mark>,
}

/// A reason with its place.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub span: Span,
    pub text: String,
    /// The agent whose declaration says so.
    pub agent: Option<Name>,
}

/// A way for text.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub from: usize,
    pub to: usize,
    /// Where it is written.
    pub span: Span,
    pub via: Via,
    pub gate: Gate,
}

/// How text takes a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Via {
    /// A step reads another one's output.
    Reads,
    /// It stands in the conversation or the folder.
    Joins,
    /// It writes the file.
    Writes,
    /// It is an argument, or a goal.
    Passes,
    /// A message.
    Sends,
    /// The value of a call or a swarm.
    Returns,
    /// A later turn of the same conversation.
    Continues,
}

/// Whether a person controls what passes along an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gate {
    /// No person.
    #[default]
    Open,
    /// A person decides in between.
    Between,
    /// A person reads the text and decides in between.
    Shown,
}

impl Node {
    /// Whether what it reads can steer it.
    pub(crate) fn is_steerable(&self) -> bool {
        matches!(self.kind, Kind::Turn | Kind::Member)
    }
}

/// The nodes and edges.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

/// Where a walk came by.
#[derive(Debug)]
pub(crate) struct Reach {
    /// By node: whether it was reached, and by which edge; none where the walk started.
    by: Vec<Option<Option<usize>>>,
}

impl Graph {
    pub(crate) fn add_node(&mut self, name: impl Into<String>, kind: Kind, span: Span) -> usize {
        self.nodes.push(Node { name: name.into(), kind, span, marks: Marks::default(), with_item: false });
        self.nodes.len() - 1
    }

    pub(crate) fn add_edge(&mut self, from: usize, to: usize, span: Span, via: Via) {
        self.edges.push(Edge { from, to, span, via, gate: Gate::Open });
    }

    /// What text can reach from these nodes, by ways that `open` lets through; nearest first.
    pub(crate) fn walk(
        &self,
        out: &Ways,
        starts: impl IntoIterator<Item = usize>,
        open: impl Fn(&Edge) -> bool,
    ) -> Reach {
        let mut by = vec![None; self.nodes.len()];
        let mut queue = std::collections::VecDeque::new();
        for start in starts {
            if by[start].is_none() {
                by[start] = Some(None);
                queue.push_back(start);
            }
        }
        while let Some(node) = queue.pop_front() {
            for &edge in out.edges_from(node) {
                let to = self.edges[edge].to;
                if by[to].is_none() && open(&self.edges[edge]) {
                    by[to] = Some(Some(edge));
                    queue.push_back(to);
                }
            }
        }
        Reach { by }
    }

    /// The fewest of these nodes from which all of them can be reached: where a flow that passes several begins.
    pub(crate) fn find_origins(
        &self,
        out: &Ways,
        nodes: impl IntoIterator<Item = usize>,
        open: impl Fn(&Edge) -> bool,
    ) -> Vec<usize> {
        let wanted: Vec<usize> = nodes.into_iter().collect();
        let mut seen = vec![false; self.nodes.len()];
        // In the order in which walks into the depth leave them, last ones first, none comes before what leads to it,
        // circles aside.
        let mut left = Vec::new();
        for &start in &wanted {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            // A list in place of recursion, which could go as deep as there are nodes.
            let mut walk = vec![(start, 0)];
            while let Some((node, next)) = walk.last_mut() {
                let (from, at) = (*node, *next);
                let Some(&edge) = out.edges_from(from).get(at) else {
                    left.push(from);
                    walk.pop();
                    continue;
                };
                *next += 1;
                let to = self.edges[edge].to;
                if open(&self.edges[edge]) && !std::mem::replace(&mut seen[to], true) {
                    walk.push((to, 0));
                }
            }
        }
        let mut is_wanted = vec![false; self.nodes.len()];
        wanted.iter().for_each(|&node| is_wanted[node] = true);
        let (mut reached, mut firsts) = (vec![false; self.nodes.len()], Vec::new());
        for &start in left.iter().rev().filter(|&&node| is_wanted[node]) {
            if reached[start] {
                continue;
            }
            firsts.push(start);
            reached[start] = true;
            let mut queue = vec![start];
            while let Some(node) = queue.pop() {
                for &edge in out.edges_from(node) {
                    let to = self.edges[edge].to;
                    if open(&self.edges[edge]) && !std::mem::replace(&mut reached[to], true) {
                        queue.push(to);
                    }
                }
            }
        }
        firsts
    }

    /// The edges by the node that they leave.
    pub(crate) fn index_edges(&self) -> Ways {
        // Counted first: one list then holds the edges of all nodes without gaps.
        let mut starts = vec![0; self.nodes.len() + 1];
        self.edges.iter().for_each(|edge| starts[edge.from + 1] += 1);
        for node in 0..self.nodes.len() {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut list = vec![0; self.edges.len()];
        for (index, edge) in self.edges.iter().enumerate() {
            list[next[edge.from]] = index;
            next[edge.from] += 1;
        }
        Ways { starts, list }
    }

    /// How many ways there are, and how much of what begins, meets and ends on them.
    pub(crate) fn count(&self) -> Flows {
        let marked =
            |mark: fn(&Marks) -> &Option<Mark>| self.nodes.iter().filter(|node| mark(&node.marks).is_some()).count();
        Flows {
            ways: self.edges.len(),
            untrusted: marked(|marks| &marks.untrusted),
            private: marked(|marks| &marks.private),
            exits: marked(|marks| &marks.exit),
        }
    }

    /// One way in words.
    pub(crate) fn describe_edge(&self, edge: &Edge) -> String {
        let (from, to) = (self.describe_node(edge.from), self.describe_node(edge.to));
        match edge.via {
            Via::Reads => format!("{to} reads {from}"),
            Via::Joins => format!("{from} takes part in {to}"),
            Via::Writes => format!("{from} writes {to}"),
            Via::Passes => format!("{from} is passed on to {to}"),
            Via::Sends => format!("{from} can write to {to}"),
            Via::Continues => format!("{to} goes on with the conversation of {from}"),
            Via::Returns => format!("{from} is the value of {to}"),
        }
    }

    /// What would make a step pass on nothing but fixed values.
    pub(crate) fn suggest_typing(&self, node: usize) -> String {
        let name = self.describe_node(node);
        match self.nodes[node].kind {
            Kind::Gate => format!("let {name} `ask` for an `enum` in place of free text"),
            _ if self.nodes[node].with_item => {
                format!("leave out `with-item` in {name}, and give it an output without free text")
            }
            _ => format!("give {name} an output without free text, `output {{ kind enum … }}`"),
        }
    }

    /// A node with what it is.
    pub(crate) fn describe_node(&self, node: usize) -> String {
        let Node { name, kind, .. } = &self.nodes[node];
        match kind {
            Kind::Turn | Kind::Step | Kind::Gate | Kind::Member => format!("`{name}`"),
            Kind::Parameter => format!("parameter `{name}`"),
            Kind::File => format!("file `{name}`"),
            Kind::Pack => format!("context pack `{name}`"),
            Kind::Worktree => format!("worktree `{name}`"),
            Kind::Team => format!("the team of `{name}`"),
            Kind::Stdin => "standard input".to_owned(),
        }
    }
}

/// The edges by the node that they leave.
#[derive(Debug)]
pub(crate) struct Ways {
    starts: Vec<usize>,
    list: Vec<usize>,
}

impl Ways {
    fn edges_from(&self, node: usize) -> &[usize] {
        &self.list[self.starts[node]..self.starts[node + 1]]
    }
}

impl Reach {
    pub(crate) fn has_node(&self, node: usize) -> bool {
        self.by[node].is_some()
    }

    /// Where the walk began that led here, and the edges from there.
    pub(crate) fn path(&self, graph: &Graph, node: usize) -> (usize, Vec<usize>) {
        let (mut at, mut path) = (node, Vec::new());
        // An edge leads back to what was reached before, so this ends at a start.
        while let Some(Some(edge)) = self.by[at] {
            path.push(edge);
            at = graph.edges[edge].from;
        }
        path.reverse();
        (at, path)
    }
}
