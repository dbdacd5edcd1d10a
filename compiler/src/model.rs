//! The resolved model of a spec: it holds indices for names, scanned texts, and the needs of each step.
//!
//! The checks read the model, and emission writes it as a plan. Indices point into the lists of the model itself; where
//! a reference does not resolve, the index is missing, and a diagnostic reports it.

mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swarmc_plan as plan;
use swarmc_plan::{ProviderKind, StepKind};

use crate::ast::{self, Name};
use crate::mapped_text::MappedText;
use crate::source::{FileId, Span};
use crate::symbols::Tables;
use crate::syntax::Text;
use crate::template::{Expression, Template};
use crate::types::{Type, Typing, Workflow};
pub(crate) use read::{ParamRef, Read, ReadTarget};

/// A resolved spec.
#[derive(Debug)]
pub(crate) struct Model<'a> {
    pub spec: &'a ast::Spec,
    /// What runs when nothing is named.
    pub default: Option<Start>,
    pub providers: Vec<Provider<'a>>,
    pub agents: Vec<Agent<'a>>,
    pub servers: Vec<Server<'a>>,
    /// The script files of the hooks, where they have one.
    pub hooks: Vec<Option<FileId>>,
    pub pipelines: Vec<Pipeline<'a>>,
    pub swarms: Vec<Swarm<'a>>,
    pub packs: Vec<Pack<'a>>,
    /// Those of the spec itself.
    pub tests: Vec<Test<'a>>,
    /// Which pipelines a run can come to: the others, of imports, are not in the plan.
    pub wanted: Vec<bool>,
    pub uses: Uses,
    /// The names of the top level, by module.
    pub tables: Tables,
    /// Parameters that have another name in the plan than in a text: by the spec that the text belongs to and the place
    /// of the whole reference, with the name and how many fields belong to it.
    pub renames: BTreeMap<(FileId, Span), (String, usize)>,
    /// Of which type everything is.
    pub typing: Typing,
}

/// What can be run, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Start {
    Pipeline(usize),
    Swarm(usize),
}

/// What is used, by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    pub params: Vec<bool>,
    pub secrets: Vec<bool>,
    pub providers: Vec<bool>,
    pub tiers: Vec<bool>,
    /// Those that take a turn.
    pub agents: Vec<bool>,
    /// Those that others start from.
    pub templates: Vec<bool>,
    pub prompts: Vec<bool>,
    pub tasks: Vec<bool>,
    pub packs: Vec<bool>,
    pub swarms: Vec<bool>,
    pub types: Vec<bool>,
    /// By pipeline.
    pub pipeline_params: Vec<Vec<bool>>,
}

#[derive(Debug)]
pub(crate) struct Provider<'a> {
    pub ast: &'a ast::Provider,
    /// What it starts from.
    pub preset: Option<&'a ast::Provider>,
    /// The variable that holds the key of its model.
    pub auth: Option<String>,
    pub env: Vec<Variable>,
    /// What `env` reads.
    pub env_reads: Vec<Read>,
    pub answers: Vec<Answer<'a>>,
}

#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub ast: &'a ast::Answer,
    pub text: String,
}

/// A variable of an environment.
#[derive(Debug)]
pub(crate) enum Variable {
    Pass(String),
    /// A secret, by its variable.
    Secret(String),
    Set(String, TemplateText),
}

#[derive(Debug)]
pub(crate) struct Agent<'a> {
    pub ast: &'a ast::Agent,
    pub provider: Option<usize>,
    /// The tier that names its provider.
    pub tier: Option<usize>,
    /// Who takes its turn when its provider cannot.
    pub fallback: Option<usize>,
    pub system: Option<TemplateText>,
    pub files: Option<Files>,
}

impl Agent<'_> {
    /// The texts that it brings into each of its turns.
    pub(crate) fn template_texts(&self) -> impl Iterator<Item = &TemplateText> {
        self.system.iter().chain(self.files.iter().flat_map(Files::template_texts))
    }
}

/// A server of tools.
#[derive(Debug)]
pub(crate) struct Server<'a> {
    pub ast: &'a ast::ToolServer,
    /// The variable that holds what it is sent to let us in.
    pub auth: Option<String>,
    pub env: Vec<Variable>,
    /// What `env` reads.
    pub env_reads: Vec<Read>,
}

/// A text with interpolations.
#[derive(Debug)]
pub(crate) struct TemplateText {
    pub passage: MappedText,
    pub template: Arc<Template>,
    /// Whether the run puts whole texts between delimiters.
    pub wrap: bool,
}

/// A `when` or an `until`.
#[derive(Debug)]
pub(crate) struct Condition {
    /// Shared with the spec: conditions are long where there are many.
    pub text: Arc<Text>,
    pub expression: Expression,
}

#[derive(Debug)]
pub(crate) struct Pipeline<'a> {
    pub ast: &'a ast::Pipeline,
    pub steps: Vec<Step<'a>>,
    pub until: Vec<Condition>,
    /// What the `until` conditions read.
    pub until_reads: Vec<Read>,
    pub env: Vec<Variable>,
    /// What `env` reads.
    pub env_reads: Vec<Read>,
    /// What its edges carry, in their order.
    pub carries: Vec<Option<Type>>,
    /// By step, the `spawn` edge that leads to it: the run skips the step unless another step spawns it.
    pub spawned: Vec<Option<Span>>,
    /// The steps whose output is the value.
    pub result: Vec<usize>,
    pub order: Order,
}

impl Pipeline<'_> {
    /// The pipelines that its steps call.
    pub(crate) fn called_pipelines(&self) -> impl Iterator<Item = usize> {
        self.steps.iter().filter_map(|step| if let Body::Call { pipeline, .. } = &step.body { *pipeline } else { None })
    }

    /// Whether there is ever a round before this one that `reader` and `target` are both part of.
    pub(crate) fn has_previous_round(&self, reader: usize, target: usize) -> bool {
        let holders = |step| std::iter::successors(Some(step), |&step: &usize| self.steps[step].within).skip(1);
        self.ast.iterations > 1 || holders(reader).any(|holder| holders(target).any(|other| other == holder))
    }
}

/// How the steps of a pipeline can be ordered.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The steps in an order that their needs allow; all of them unless there are cycles.
    pub sorted: Vec<usize>,
    /// Reads that close a cycle of references alone, by step: they can only mean the round before.
    pub back: Vec<Back>,
    /// Cycles that something else closes: each step needs the next one, the last needs the first.
    pub cycles: Vec<Vec<usize>>,
}

/// A reference to a step that runs later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Back {
    /// The reader.
    pub step: usize,
    /// The read, by its index in the step.
    pub read: usize,
}

#[derive(Debug)]
pub(crate) struct Step<'a> {
    pub ast: &'a ast::Step,
    /// The loop that it stands in.
    pub within: Option<usize>,
    pub agent: Option<usize>,
    /// The agent of its `on-failure fix`.
    pub fixer: Option<usize>,
    /// The context packs of its prompt.
    pub context: Vec<usize>,
    pub body: Body<'a>,
    pub when: Option<Condition>,
    /// The list of its `for-each`.
    pub list: Option<Box<Condition>>,
    pub stdin: Option<TemplateText>,
    pub env: Vec<Variable>,
    /// The ports: what they are called here, and the step behind them.
    pub inputs: Vec<(String, usize)>,
    /// Everything that its texts and its `when` read.
    pub reads: Vec<Read>,
    /// What it waits for: steps of the same list, each at most once.
    pub needs: Vec<Need>,
    /// How many of the needs stand in a `depends-on`, its own or that of a step in it; they come first.
    pub written: usize,
    /// What it waits for besides what it reads.
    pub awaits: Vec<Await>,
    pub files: Option<Files>,
    /// The files it reads that are not there before a step makes them.
    pub made: Vec<Made>,
    /// The type that its `output` declares; of a for-each, that of one item.
    pub declared: Option<Type>,
    /// Of which type its value is.
    pub output: Type,
}

/// A swarm. Its names lead somewhere; members, items and channels are named as the tree has them.
#[derive(Debug)]
pub(crate) struct Swarm<'a> {
    pub ast: &'a ast::Swarm,
    /// Whether a run can come to it: the others, of imports, are not in the plan.
    pub wanted: bool,
    pub goal: Option<TemplateText>,
    /// The agent that leads.
    pub leader: Option<usize>,
    /// In the order of the tree.
    pub members: Vec<Member>,
    /// The agents of members that are named from a list.
    pub groups: Vec<Option<usize>>,
    /// The agent that plays the manager of each worktree, where that is no member.
    pub managers: Vec<Option<usize>>,
    /// The agents that the coordinator may add.
    pub spawns: Vec<Option<usize>>,
    /// The agent that sums up.
    pub synthesize: Option<usize>,
    /// What its edges carry, in their order.
    pub carries: Vec<Option<Type>>,
    /// What its texts and its agents' read.
    pub reads: Vec<Read>,
}

impl Swarm<'_> {
    /// The agents that play in it, each once.
    pub(crate) fn list_players(&self) -> Vec<usize> {
        let members = self.members.iter().map(|member| member.agent);
        let others = self.groups.iter().chain(&self.managers).chain(&self.spawns).copied();
        let playing = [self.leader, self.synthesize].into_iter().chain(members).chain(others);
        let mut playing: Vec<usize> = playing.flatten().collect();
        playing.sort_unstable();
        playing.dedup();
        playing
    }
}

#[derive(Debug)]
pub(crate) struct Member {
    pub agent: Option<usize>,
    pub task: Option<TemplateText>,
}

/// A context pack.
#[derive(Debug)]
pub(crate) struct Pack<'a> {
    pub ast: &'a ast::ContextPack,
    /// In the order of the tree.
    pub rules: Vec<PackRule>,
    /// What its texts read.
    pub reads: Vec<Read>,
    /// The documents that steps say they write, and that are not there yet.
    pub made: Vec<Made>,
}

impl Pack<'_> {
    /// The texts that stand in it.
    pub(crate) fn template_texts(&self) -> impl Iterator<Item = &TemplateText> {
        self.rules.iter().flat_map(|rule| match rule {
            PackRule::Texts(texts) => texts.as_slice(),
            PackRule::Merge(_) | PackRule::Summed(_) | PackRule::Plain => &[],
        })
    }

    /// The agents that sum files up for it.
    pub(crate) fn summary_agents(&self) -> impl Iterator<Item = usize> {
        self.rules.iter().filter_map(|rule| match rule {
            PackRule::Summed(agent) => *agent,
            PackRule::Texts(_) | PackRule::Merge(_) | PackRule::Plain => None,
        })
    }
}

/// What a rule of a pack leads to.
#[derive(Debug)]
pub(crate) enum PackRule {
    /// Its texts.
    Texts(Vec<TemplateText>),
    /// Another pack.
    Merge(Option<usize>),
    /// Files that this agent sums up.
    Summed(Option<usize>),
    /// The tree says it all.
    Plain,
}

impl Model<'_> {
    /// What every text of a file can read.
    pub(crate) fn workflow(&self, file: FileId) -> Workflow<'_> {
        Workflow::new(&self.tables, &self.spec.params, &self.typing, file)
    }

    /// The pipelines that steps call.
    pub(crate) fn called_pipelines(&self) -> BTreeSet<usize> {
        self.pipelines.iter().flat_map(Pipeline::called_pipelines).collect()
    }

    /// Who takes the turns of an agent where it cannot: its fallback, the fallback of that, and so on, each once.
    pub(crate) fn list_fallbacks(&self, agent: usize) -> Vec<usize> {
        let mut chain = vec![agent];
        let next = |last: &usize| self.agents.get(*last).and_then(|agent| agent.fallback);
        // Agents that are fallbacks of each other are reported, and the checks still run.
        while let Some(fallback) = chain.last().and_then(next).filter(|fallback| !chain.contains(fallback)) {
            chain.push(fallback);
        }
        chain.split_off(1)
    }

    /// These packs and all that they take in.
    pub(crate) fn taken_in(&self, packs: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<usize> = packs.into_iter().collect();
        while let Some(pack) = open.pop() {
            // Packs may take in each other: each is opened once.
            if seen.insert(pack) {
                open.extend(self.packs[pack].rules.iter().filter_map(PackRule::merged_pack));
            }
        }
        seen
    }
}

impl PackRule {
    /// The pack that it takes in.
    pub(crate) fn merged_pack(&self) -> Option<usize> {
        match self {
            PackRule::Merge(pack) => *pack,
            PackRule::Texts(_) | PackRule::Summed(_) | PackRule::Plain => None,
        }
    }
}

/// A test.
#[derive(Debug)]
pub(crate) struct Test<'a> {
    pub ast: &'a ast::Test,
    pub pipeline: Option<usize>,
    /// The swarm that it is of, where it is of no pipeline.
    pub swarm: Option<usize>,
    /// The values that parameters are given.
    pub params: Vec<(ParamRef, &'a Name)>,
    pub fakes: Vec<Fake<'a>>,
    /// By expectation, and by the names that it says: the steps that are called so.
    pub expects: Vec<Vec<Vec<StepRef>>>,
}

/// An answer of a test.
#[derive(Debug)]
pub(crate) struct Fake<'a> {
    pub ast: &'a ast::Fake,
    /// The steps that are called so: a pipeline and one that it calls may share a name.
    pub steps: Vec<StepRef>,
    /// The text of its file.
    pub file: Option<String>,
}

/// A step of a pipeline, by indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepRef {
    pub pipeline: usize,
    pub step: usize,
}

/// The file protocol of a step or an agent.
#[derive(Debug)]
pub(crate) struct Files {
    /// The text of `SKILL.md`.
    pub skill: Option<FileId>,
    pub requirements: Vec<TemplateText>,
    pub criteria: Vec<TemplateText>,
    pub constraints: Vec<TemplateText>,
    /// The types of its outputs, in their order.
    pub kinds: Vec<Option<Type>>,
}

impl Files {
    /// Its texts.
    pub(crate) fn template_texts(&self) -> impl Iterator<Item = &TemplateText> {
        self.requirements.iter().chain(&self.criteria).chain(&self.constraints)
    }
}

/// A file that is read, that is not there yet, and that steps say they write.
#[derive(Debug)]
pub(crate) struct Made {
    /// As the workspace sees it.
    pub path: String,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum Body<'a> {
    Prompt(TemplateText),
    Run(&'a ast::Line),
    /// A script file.
    Script(FileId),
    Value(TemplateText),
    Fields(Vec<(&'a ast::Name, TemplateText)>),
    Stop {
        status: plan::StopStatus,
        message: Option<TemplateText>,
    },
    /// Another pipeline, with texts for its parameters.
    Call {
        name: &'a ast::Name,
        pipeline: Option<usize>,
        args: Vec<(&'a ast::Name, TemplateText)>,
    },
    /// A swarm, with the text of its goal.
    Swarm {
        name: &'a ast::Name,
        swarm: Option<usize>,
        goal: Option<TemplateText>,
    },
    /// A question to a person.
    Gate {
        gate: &'a ast::Gate,
        message: Option<TemplateText>,
    },
    /// The steps `within` it, until one of these holds.
    Loop {
        body: &'a ast::Loop,
        until: Vec<Condition>,
        until_reads: Vec<Read>,
    },
    /// It could not be read.
    Missing,
}

impl<'a> Body<'a> {
    /// Its texts.
    pub(crate) fn template_texts(&self) -> Vec<&TemplateText> {
        match self {
            Body::Prompt(prose) | Body::Value(prose) => vec![prose],
            Body::Stop { message: prose, .. } | Body::Gate { message: prose, .. } | Body::Swarm { goal: prose, .. } => {
                prose.iter().collect()
            }
            Body::Fields(fields) | Body::Call { args: fields, .. } => fields.iter().map(|(_, prose)| prose).collect(),
            Body::Run(_) | Body::Script(_) | Body::Loop { .. } | Body::Missing => Vec::new(),
        }
    }

    /// What its `until` reads, of a loop.
    pub(crate) fn until_reads(&self) -> &[Read] {
        match self {
            Body::Loop { until_reads, .. } => until_reads,
            _ => &[],
        }
    }

    /// The question to a person that it is.
    pub(crate) fn gate(&self) -> Option<&'a ast::Gate> {
        match self {
            Body::Gate { gate, .. } => Some(gate),
            _ => None,
        }
    }
}

/// The steps of one list that are `one` and `other`, or hold them; none where one is or holds the other.
pub(crate) fn find_siblings(steps: &[Step<'_>], one: usize, other: usize) -> Option<(usize, usize)> {
    if steps[one].within == steps[other].within {
        return (one != other).then_some((one, other));
    }
    let line = |step| std::iter::successors(Some(step), |&step: &usize| steps[step].within).collect::<Vec<_>>();
    let (one, other) = (line(one), line(other));
    let shared = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
    // The first that differ, from the outside.
    // Where one holds the other, its line ends with what they share.
    Some((*one.get(one.len().checked_sub(shared + 1)?)?, *other.get(other.len().checked_sub(shared + 1)?)?))
}

impl Provider<'_> {
    /// How its agents are reached: its own way, or that of its preset.
    pub(crate) fn kind(&self) -> Option<ProviderKind> {
        self.ast.kind().or_else(|| self.preset?.kind())
    }
}

impl Step<'_> {
    /// What it does; none where that could not be read.
    pub(crate) fn kind(&self) -> Option<StepKind> {
        let body = self.ast.body.as_ref().filter(|_| !matches!(self.body, Body::Missing));
        body.map(ast::Body::kind)
    }

    /// Whether it computes a text that may have no value.
    pub(crate) fn may_compute_nothing(&self) -> bool {
        let proved = self.when.as_ref().map_or(&[][..], |when| when.expression.proves.as_slice());
        let may_fail = |prose: &TemplateText| prose.template.risks.remain(proved);
        self.kind().is_some_and(StepKind::is_computed)
            && (self.may_not_start() || self.body.template_texts().into_iter().any(may_fail))
    }

    /// Whether its `when`, or the list of its `for-each`, may be without a result, so that it fails before it begins.
    pub(crate) fn may_not_start(&self) -> bool {
        let proved = self.when.as_ref().map_or(&[][..], |when| when.expression.proves.as_slice());
        self.when.as_ref().is_some_and(|when| when.expression.risks.remain(&[]))
            || self.list.as_ref().is_some_and(|list| list.expression.risks.remain(proved))
    }

    /// Whether it has a value whenever it ran: a failed command keeps its text, and a text that is computed if that cannot
    /// fail, a list keeps what came of the items that succeeded; a failed agent has none, and a typed output is then missing.
    pub(crate) fn keeps_output(&self) -> bool {
        match self.kind() {
            _ if self.may_not_start() => false,
            _ if self.list.is_some() => true,
            Some(StepKind::Run | StepKind::Value) => self.ast.output.kind.is_none() && !self.may_compute_nothing(),
            Some(StepKind::Stop) | None => true,
            Some(_) => false,
        }
    }

    /// Whether it starts a process, and so has an exit code once it ran.
    pub(crate) fn has_exit(&self) -> bool {
        self.kind().is_none_or(StepKind::takes_turn) && self.list.is_none()
    }

    /// Whether it writes a log: a command that runs once an attempt.
    pub(crate) fn has_log(&self) -> bool {
        self.kind().is_none_or(|kind| kind == StepKind::Run) && self.list.is_none()
    }

    /// Whether a need must hold for the step to start: under `join any` and `none-failed` a lone one must.
    pub(crate) fn is_binding(&self, need: &Need) -> bool {
        !need.declared
            || self.ast.join.value == plan::Join::All
            || self.needs.iter().filter(|need| need.declared).count() == 1
    }

    pub(crate) fn name(&self) -> &str {
        &self.ast.name.value
    }
}

/// A step whose files or messages another one is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Await {
    pub step: usize,
    pub when: plan::When,
    /// Whether it is the round before that is meant where the two wait for each other.
    pub soft: bool,
    pub span: Span,
}

/// One step that another waits for.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub step: usize,
    pub when: plan::When,
    pub declared: bool,
    pub handles: bool,
    /// The `depends-on`, or the first read.
    pub span: Span,
}
