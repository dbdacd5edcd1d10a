//! What steps do, and the table of its kinds: what a caller wants to know of a kind without the details of a step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Template;
use crate::step::{Call, Command, Fields, Gate, Loop, PromptBody, Step, StopStatus, SwarmCall};

/// What a step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// One turn of an agent.
    Prompt(PromptBody),
    /// A command; its output is its stdout without the final newline.
    Run(Command),
    /// A computed text.
    Value(Template),
    /// A computed record of texts.
    Fields(Fields),
    /// The end of the pipeline, or of the call that it is in, enclosing loops included.
    Stop {
        /// How it ends.
        status: StopStatus,
        /// Why.
        message: Template,
    },
    /// Another pipeline, as a function; its output is that pipeline's value.
    Call(Call),
    /// A swarm; its output is the swarm's result.
    Swarm(SwarmCall),
    /// A question to a person; its output is a record of `choice` and the fields that the person filled in.
    Gate(Gate),
    /// Steps that repeat. It is not a scope: names are unique in the whole pipeline, and steps outside read the values
    /// of the last round. It has no output.
    Loop(Loop),
}

impl Default for Body {
    /// The empty text.
    fn default() -> Body {
        Body::Value(Template::default())
    }
}

impl Body {
    /// The steps inside, of a loop.
    pub fn loop_steps(&self) -> &[Step] {
        match self {
            Body::Loop(body) => &body.steps,
            _ => &[],
        }
    }

    /// Its kind.
    pub fn kind(&self) -> StepKind {
        match self {
            Body::Prompt(_) => StepKind::Prompt,
            Body::Run(_) => StepKind::Run,
            Body::Value(_) | Body::Fields(_) => StepKind::Value,
            Body::Call(_) => StepKind::Call,
            Body::Swarm(_) => StepKind::Swarm,
            Body::Gate(_) => StepKind::Gate,
            Body::Loop(_) => StepKind::Loop,
            Body::Stop { .. } => StepKind::Stop,
        }
    }

    /// The agent, pipeline or swarm that it names.
    pub fn target(&self) -> Option<&str> {
        match self {
            Body::Prompt(body) => Some(&body.agent),
            Body::Call(call) => Some(&call.pipeline),
            Body::Swarm(call) => Some(&call.swarm),
            Body::Run(_) | Body::Value(_) | Body::Fields(_) => None,
            Body::Stop { .. } | Body::Gate(_) | Body::Loop(_) => None,
        }
    }

    /// Its texts: what is rendered when the step starts.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Body::Prompt(body) => vec![&body.prompt],
            Body::Value(template) | Body::Stop { message: template, .. } => vec![template],
            Body::Fields(fields) => fields.values().collect(),
            Body::Call(call) => call.params.values().collect(),
            Body::Swarm(call) => call.goal.iter().collect(),
            Body::Gate(gate) => vec![&gate.message],
            Body::Run(_) | Body::Loop(_) => Vec::new(),
        }
    }
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepKind {
    /// One turn of an agent.
    Prompt,
    /// A command.
    Run,
    /// A computed text or record.
    Value,
    /// Another pipeline, as a function.
    Call,
    /// A swarm.
    Swarm,
    /// A question to a person.
    Gate,
    /// Steps that repeat.
    Loop,
    /// The end of the pipeline.
    Stop,
}

/// What the limits on concurrent steps count a step as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A command: as many run at once as there are processors.
    Command,
    /// An agent, or a team of them.
    Agent,
}

/// What a picture draws a step as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A turn of an agent.
    Agent,
    /// A command.
    Command,
    /// A computed value.
    Value,
    /// A person decides.
    Gate,
    /// The end.
    Stop,
    /// Another pipeline or a swarm.
    Call,
}

/// What is to be known of a kind.
struct Row {
    /// The node that a spec writes.
    name: &'static str,
    /// Whether that node stands in a `task`; otherwise it stands in a pipeline.
    in_task: bool,
    /// What a step of the kind is called in messages.
    noun: &'static str,
    /// What lists and pictures call a step of the kind, before its [`Body::target`].
    label: &'static str,
    shape: Shape,
    /// Whether most pipelines have one, so that an editor offers it first.
    is_common: bool,
    slot: Option<Slot>,
    is_container: bool,
    is_computed: bool,
    has_output: bool,
    asks_person: bool,
    can_repeat: bool,
}

/// A kind in a `task`, with an output, of which an item of a list can each have one.
const TASK: Row = Row {
    name: "value",
    in_task: true,
    noun: "a computed value",
    label: "value",
    shape: Shape::Value,
    is_common: true,
    slot: None,
    is_container: false,
    is_computed: false,
    has_output: true,
    asks_person: false,
    can_repeat: true,
};

/// The kinds, in the order in which messages list them.
const KINDS: [StepKind; 8] = [
    StepKind::Prompt,
    StepKind::Run,
    StepKind::Value,
    StepKind::Call,
    StepKind::Swarm,
    StepKind::Gate,
    StepKind::Loop,
    StepKind::Stop,
];

impl StepKind {
    /// Every kind, in the order in which messages list them.
    pub fn all() -> impl Iterator<Item = StepKind> {
        KINDS.into_iter()
    }

    /// The kinds that stand in a `task`: it has one of them.
    pub fn in_tasks() -> impl Iterator<Item = StepKind> {
        StepKind::all().filter(|kind| kind.row().in_task)
    }

    /// The kind that a node of a `task` is of.
    pub fn in_task(node: &str) -> Option<StepKind> {
        StepKind::in_tasks().find(|kind| kind.name() == node)
    }

    /// Whether a node of this name declares a step: a `task`, or a kind with a node of its own.
    pub fn is_step_node(node: &str) -> bool {
        node == "task" || StepKind::all().any(|kind| !kind.row().in_task && kind.name() == node)
    }

    fn row(self) -> &'static Row {
        match self {
            StepKind::Prompt => &Row {
                name: "prompt",
                noun: "a prompt",
                label: "agent",
                shape: Shape::Agent,
                slot: Some(Slot::Agent),
                ..TASK
            },
            StepKind::Run => &Row {
                name: "run",
                noun: "a command",
                label: "command",
                shape: Shape::Command,
                slot: Some(Slot::Command),
                ..TASK
            },
            StepKind::Value => &Row { is_computed: true, ..TASK },
            StepKind::Call => {
                &Row { name: "call", noun: "a call", label: "call", shape: Shape::Call, is_container: true, ..TASK }
            }
            StepKind::Swarm => &Row {
                name: "swarm",
                noun: "a swarm",
                label: "swarm",
                shape: Shape::Call,
                is_common: false,
                slot: Some(Slot::Agent),
                is_container: true,
                ..TASK
            },
            StepKind::Gate => &Row {
                name: "gate",
                in_task: false,
                noun: "a gate",
                label: "gate",
                shape: Shape::Gate,
                asks_person: true,
                can_repeat: false,
                ..TASK
            },
            StepKind::Loop => &Row {
                name: "loop",
                in_task: false,
                noun: "a loop",
                label: "loop",
                is_container: true,
                has_output: false,
                can_repeat: false,
                ..TASK
            },
            StepKind::Stop => &Row {
                name: "stop",
                in_task: false,
                noun: "a `stop`",
                label: "stop",
                shape: Shape::Stop,
                is_common: false,
                is_computed: true,
                can_repeat: false,
                ..TASK
            },
        }
    }

    /// The node that a spec writes: `prompt`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What a step of the kind is called in messages: "a computed value".
    pub fn noun(self) -> &'static str {
        self.row().noun
    }

    /// What lists and pictures call a step of the kind, before its [`Body::target`]: "agent".
    pub fn label(self) -> &'static str {
        self.row().label
    }

    /// What a picture draws it as; a loop is a frame around its steps.
    pub fn shape(self) -> Shape {
        self.row().shape
    }

    /// Whether most pipelines have one, so that an editor offers it first.
    pub fn is_common(self) -> bool {
        self.row().is_common
    }

    /// What the limits on concurrent steps count it as; none where it takes no slot.
    pub fn takes_slot(self) -> Option<Slot> {
        self.row().slot
    }

    /// Whether it runs further steps or members, and does nothing itself.
    pub fn is_container(self) -> bool {
        self.row().is_container
    }

    /// Whether it takes one turn of a program or an agent itself: such a step sends and receives messages, has an exit
    /// code, and can be run again after a fix.
    pub fn takes_turn(self) -> bool {
        self.takes_slot().is_some() && !self.is_container()
    }

    /// Whether it does nothing outside of the run: no program, no person.
    pub fn is_computed(self) -> bool {
        self.row().is_computed
    }

    /// Whether it has an output that others can read.
    pub fn has_output(self) -> bool {
        self.row().has_output
    }

    /// Whether it waits for a decision of a person.
    pub fn asks_person(self) -> bool {
        self.row().asks_person
    }

    /// Whether it can run once for each item of a list.
    pub fn can_repeat(self) -> bool {
        self.row().can_repeat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_row_and_a_name_of_its_own() {
        let names: Vec<&str> = StepKind::all().map(StepKind::name).collect();
        assert_eq!(names, ["prompt", "run", "value", "call", "swarm", "gate", "loop", "stop"]);
        for kind in StepKind::in_tasks() {
            assert_eq!(StepKind::in_task(kind.name()), Some(kind));
            assert!(!StepKind::is_step_node(kind.name()));
        }
        assert!(["task", "gate", "loop", "stop"].into_iter().all(StepKind::is_step_node));
    }
}
