//! Tests, as written.

use super::Name;
use crate::source::Span;
use crate::syntax::Text;
use crate::test::{Count, Ending, Hold, Part, StepEnd, TeamExpected, TurnFilter};

#[derive(Debug)]
pub(crate) struct Test {
    pub name: Name,
    pub description: Option<String>,
    pub pipeline: Option<Name>,
    /// Names and values.
    pub params: Vec<(Name, Name)>,
    pub stdin: Option<String>,
    pub fakes: Vec<Fake>,
    pub expects: Vec<Expect>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Fake {
    pub step: Name,
    pub part: Part,
    /// Where it says which part.
    pub part_span: Span,
    /// The tool that a member calls.
    pub tool: Option<String>,
    pub moment: TurnFilter,
    pub texts: Vec<Name>,
    pub file: Option<Text>,
    pub exit: i32,
    /// Where it says so.
    pub exit_span: Option<Span>,
    pub delay_ms: u64,
    pub choice: Option<Name>,
    /// Names and values.
    pub fields: Vec<(Name, Name)>,
    pub unchecked: bool,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Expect {
    pub kind: ExpectKind,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum ExpectKind {
    Status(Ending),
    Step(Name, TurnFilter, StepEnd),
    Order(Vec<Name>),
    Prompt(Name, TurnFilter, Vec<Holds>),
    Output(Name, TurnFilter, Vec<Holds>),
    Result(Vec<Holds>),
    Rounds(Option<Name>, u64),
    Launches(Count),
    Turns(Count),
    Tokens(u64),
    Cost(u64),
    /// What is expected of a swarm with a coordinator: the step that runs it, and the agent that is meant.
    Team {
        of: Option<Name>,
        agent: Option<Name>,
        expected: TeamExpected,
    },
}

impl ExpectKind {
    /// The steps that it names.
    pub(crate) fn step_names(&self) -> Vec<&Name> {
        match self {
            ExpectKind::Step(step, ..) | ExpectKind::Prompt(step, ..) | ExpectKind::Output(step, ..) => vec![step],
            ExpectKind::Order(steps) => steps.iter().collect(),
            ExpectKind::Rounds(of, _) | ExpectKind::Team { of, .. } => of.iter().collect(),
            ExpectKind::Status(_)
            | ExpectKind::Result(_)
            | ExpectKind::Launches(_)
            | ExpectKind::Turns(_)
            | ExpectKind::Tokens(_)
            | ExpectKind::Cost(_) => Vec::new(),
        }
    }

    /// What it says of a text.
    pub(crate) fn holds(&self) -> &[Holds] {
        match self {
            ExpectKind::Prompt(_, _, holds) | ExpectKind::Output(_, _, holds) | ExpectKind::Result(holds) => holds,
            _ => &[],
        }
    }
}

/// What is said of a text, with the place of what it says.
#[derive(Debug)]
pub(crate) struct Holds {
    pub hold: Hold,
    pub span: Span,
}
