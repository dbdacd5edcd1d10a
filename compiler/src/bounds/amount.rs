//! Numbers that may have no limit: what is certain of them, and why the rest is not known.
//!
//! Sums and products saturate. Nothing times something unknown is nothing; otherwise what is unknown stays so, and the
//! first reason is kept.

use swarmc_plan::{Agent, Bound, ContextPack, Directive, DirectiveKind, Expression, Origin, Provider, Step};

/// A number that is at most `known`, or has no limit because of `open`; then `known` is the part that is certain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Amount<'p> {
    pub(crate) known: u64,
    pub(crate) open: Option<Cause<'p>>,
}

/// Why a number has no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause<'p> {
    /// It runs once for each item of a list that is made at run time.
    Items(&'p Step),
    /// It declares no `max-output`.
    Answer(&'p Agent),
    /// It declares no price.
    Price(&'p Provider),
    /// It may use tools.
    Tools(&'p Agent),
    /// What the program adds to a prompt by itself was never measured.
    Program(&'p Provider),
    /// It has no time limit.
    Time(&'p Step),
    /// A person decides, whenever that is.
    Person(&'p Step),
    /// It continues a conversation.
    Session(&'p Step),
    /// It calls a pipeline that is in the middle of calling it.
    Circle(&'p Step),
    /// A value of any length.
    Hole(&'p Directive),
    /// Logic whose text can have any length.
    Logic(&'p Expression),
    /// A pack without a limit.
    Pack(&'p ContextPack),
}

/// How often something happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Times<'p> {
    Most(u64),
    Open(Cause<'p>),
}

impl<'p> Amount<'p> {
    pub(crate) const ZERO: Amount<'static> = Amount { known: 0, open: None };

    pub(crate) fn at_most(known: u64) -> Amount<'p> {
        Amount { known, open: None }
    }

    pub(crate) fn unbounded(cause: Cause<'p>) -> Amount<'p> {
        Amount { known: 0, open: Some(cause) }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.known == 0 && self.open.is_none()
    }

    pub(crate) fn plus(self, other: Amount<'p>) -> Amount<'p> {
        Amount { known: self.known.saturating_add(other.known), open: self.open.or(other.open) }
    }

    pub(crate) fn times(self, times: impl Into<Times<'p>>) -> Amount<'p> {
        match times.into() {
            Times::Most(0) => Amount::ZERO,
            Times::Most(times) => Amount { known: self.known.saturating_mul(times), open: self.open },
            Times::Open(_) if self.is_zero() => self,
            // The list may be empty.
            Times::Open(cause) => Amount { known: 0, open: self.open.or(Some(cause)) },
        }
    }

    /// The greater of the two.
    pub(crate) fn maximum(self, other: Amount<'p>) -> Amount<'p> {
        Amount { known: self.known.max(other.known), open: self.open.or(other.open) }
    }

    /// This number where something keeps it at `limit` or below.
    pub(crate) fn limit_to(self, limit: Option<u64>) -> Amount<'p> {
        match (limit, self.open) {
            (Some(limit), None) => Amount::at_most(self.known.min(limit)),
            // `known` is only the certain part, so the limit alone bounds the number.
            (Some(limit), Some(_)) => Amount::at_most(limit),
            (None, _) => self,
        }
    }

    /// The lower of this number and a limit; what is unknown stays so.
    pub(crate) fn lower_to(self, limit: Option<u64>) -> Amount<'p> {
        if self.open.is_some() { self } else { self.limit_to(limit) }
    }

    /// As the plan says it.
    pub(crate) fn to_bound(self) -> Bound {
        match self.open {
            None => Bound::Most(self.known),
            Some(cause) => Bound::Unbounded { because: cause.describe(), origin: cause.origin().clone() },
        }
    }
}

impl From<u64> for Times<'_> {
    fn from(times: u64) -> Self {
        Times::Most(times)
    }
}

impl From<u32> for Times<'_> {
    fn from(times: u32) -> Self {
        Times::Most(times.into())
    }
}

impl<'p> Cause<'p> {
    /// The reason, as it stands behind "unbounded because".
    pub(crate) fn describe(self) -> String {
        match self {
            Cause::Items(step) => {
                let list = step.for_each.as_ref().map_or("", |each| each.list.source.trim());
                format!("`{}` runs once for each item of `{list}`", step.name)
            }
            Cause::Answer(agent) => format!("agent `{}` declares no `max-output`", agent.name),
            Cause::Price(provider) => format!("provider `{}` declares no `price`", provider.name),
            Cause::Tools(agent) => {
                format!("agent `{}` may use tools, and the tokens that they cost are not known", agent.name)
            }
            Cause::Program(provider) => {
                format!("provider `{}` adds an unknown number of tokens to a prompt", provider.name)
            }
            Cause::Time(step) => format!("`{}` has no `timeout`", step.name),
            Cause::Person(step) => format!("`{}` waits for a person, without `on-timeout`", step.name),
            Cause::Session(step) => {
                let session = step.session.as_deref().unwrap_or_default();
                format!("`{}` continues the session `{session}`, which grows with every turn", step.name)
            }
            Cause::Circle(step) => format!("`{}` calls a pipeline that calls its own again", step.name),
            Cause::Hole(directive) => describe_directive(directive),
            Cause::Logic(expression) => format!("`{}` can give any amount of text", shorten_source(&expression.source)),
            Cause::Pack(pack) => format!("context pack `{}` has no budget", pack.name),
        }
    }

    /// Where the reason stands.
    pub(crate) fn origin(self) -> &'p Origin {
        match self {
            Cause::Items(step) => step.for_each.as_ref().map_or(&step.origin, |each| &each.list.origin),
            Cause::Answer(agent) | Cause::Tools(agent) => &agent.origin,
            Cause::Price(provider) | Cause::Program(provider) => &provider.origin,
            Cause::Time(step) | Cause::Person(step) | Cause::Session(step) | Cause::Circle(step) => &step.origin,
            Cause::Hole(directive) => &directive.origin,
            Cause::Logic(expression) => &expression.origin,
            Cause::Pack(pack) => &pack.origin,
        }
    }
}

fn describe_directive(directive: &Directive) -> String {
    let name = directive_source(directive);
    match directive.kind {
        DirectiveKind::File => format!("`{name}` is as long as the file when its turn starts"),
        DirectiveKind::Stdin => format!("`{name}` is the text piped into the run"),
        _ => format!("`{name}` can be of any length"),
    }
}

/// The directive as it is written, without its filters.
pub(crate) fn directive_source(directive: &Directive) -> String {
    let word = match directive.kind {
        DirectiveKind::Output => "output",
        DirectiveKind::Previous => "previous",
        DirectiveKind::Status => "status",
        DirectiveKind::Exit => "exit",
        DirectiveKind::Error => "error",
        DirectiveKind::Log => "log",
        DirectiveKind::Input => "input",
        DirectiveKind::Param => "param",
        DirectiveKind::Iteration => "iteration",
        DirectiveKind::File => "file",
        DirectiveKind::Run => "run",
        DirectiveKind::Task => "task",
        DirectiveKind::Stdin => "stdin",
        DirectiveKind::Item => "item",
        DirectiveKind::Index => "index",
        DirectiveKind::Context => "context",
        DirectiveKind::Inbox => "inbox",
        DirectiveKind::Shared => "shared",
        DirectiveKind::Team => "team",
        DirectiveKind::Plan => "plan",
    };
    let colon = if directive.name.is_some() { ":" } else { "" };
    let fields: String = directive.fields.iter().map(|field| format!(".{field}")).collect();
    format!("<<{word}{colon}{}{fields}>>", directive.name.as_deref().unwrap_or_default())
}

/// The beginning of a source text, on one line.
fn shorten_source(source: &str) -> String {
    let line = source.trim().replace('\n', " ");
    match line.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_stays_so_unless_there_is_none_of_it() {
        let step = Step { name: "each".to_owned(), ..Step::default() };
        let open = Cause::Items(&step);
        assert!(Amount::ZERO.times(Times::Open(open)).is_zero());
        let many = Amount::at_most(3).times(Times::Open(open));
        assert!(many.open.is_some() && many.known == 0);
        assert!(many.times(0_u64).is_zero());
        assert_eq!(many.plus(Amount::at_most(2)).known, 2);
        assert_eq!(many.limit_to(Some(7)).to_bound(), Bound::Most(7));
        assert_eq!(Amount::at_most(5).limit_to(Some(7)).to_bound(), Bound::Most(5));
        assert_eq!(Amount::at_most(u64::MAX).plus(Amount::at_most(1)).times(2_u64).to_bound(), Bound::Most(u64::MAX));
    }
}
