//! The table of codes: the one place that declares the code, name, severity, profile and page of each check.

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The spec is wrong: there is no plan.
    Error,
    /// The spec is probably wrong.
    Warning,
    /// A reviewer should see it.
    Hint,
}

impl Severity {
    /// `error`, `warning` or `hint`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "hint",
        }
    }
}

/// How much is shown. Each profile shows what the ones before it show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// What is wrong, or very probably so.
    #[default]
    Default,
    /// Also what a careful team avoids.
    Strict,
    /// Also what a reviewer should see before approving a workflow.
    Audit,
}

impl Profile {
    /// Every profile, from the one that shows least.
    pub const ALL: &[Profile] = &[Profile::Default, Profile::Strict, Profile::Audit];

    /// `default`, `strict` or `audit`.
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::Default => "default",
            Profile::Strict => "strict",
            Profile::Audit => "audit",
        }
    }
}

macro_rules! codes {
    (@profile) => { Profile::Default };
    (@profile $profile:ident) => { Profile::$profile };
    ($($(#[doc = $doc:literal])* $variant:ident = $code:literal $name:literal $severity:ident $($profile:ident)?;)*) => {
        /// What a diagnostic is about. Codes are never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            /// `SW201`.
            pub fn id(self) -> &'static str {
                match self { $(Code::$variant => $code,)* }
            }

            /// `output-not-upstream`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// How bad it is, unless a flag says otherwise.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }

            /// The first profile that shows it.
            pub fn profile(self) -> Profile {
                match self { $(Code::$variant => codes!(@profile $($profile)?),)* }
            }

            /// The page that explains it, in Markdown.
            pub fn page(self) -> &'static str {
                match self { $(Code::$variant => include_str!(concat!("codes/", $code, ".md")),)* }
            }
        }
    };
}

codes! {
    /// KDL syntax.
    Syntax = "SW001" "kdl-syntax" Error;
    /// A literal of KDL 1.
    V1Literal = "SW002" "kdl-v1-literal" Error;
    /// A node or property that nothing declares.
    UnknownNode = "SW003" "unknown-node" Error;
    /// A node in the wrong place.
    MisplacedNode = "SW004" "misplaced-node" Error;
    /// A missing, surplus or ill-typed argument.
    WrongValue = "SW005" "wrong-value" Error;
    /// A node or property that stands twice.
    Duplicate = "SW006" "duplicate" Error;
    /// Too large or too deep.
    InputLimits = "SW007" "input-limits" Error;
    /// An `allow` that suppresses nothing or has no reason.
    UnusedSuppression = "SW008" "unused-suppression" Warning;
    /// Shell in words that no shell reads.
    UnquotedShell = "SW009" "unquoted-shell" Error;
    /// A name that nothing defines.
    UnknownReference = "SW101" "unknown-reference" Error;
    /// Two definitions with one name.
    DuplicateDefinition = "SW102" "duplicate-definition" Error;
    /// A definition that nothing uses.
    UnusedDefinition = "SW103" "unused-definition" Warning;
    /// A file that is not there.
    MissingFile = "SW104" "missing-file" Error;
    /// Imports in a circle, or a name that hides an imported one.
    ImportCycle = "SW105" "import-cycle" Error;
    /// A pattern of paths that no file matches.
    GlobMatchesNothing = "SW106" "glob-matches-nothing" Warning;
    /// A program of the workspace that is not there.
    MissingProgram = "SW107" "missing-program" Error;
    /// An output read where its task cannot have run.
    OutputNotUpstream = "SW201" "output-not-upstream" Error;
    /// An output read where its task may not have run.
    OutputMayBeSkipped = "SW202" "output-may-be-skipped" Error;
    /// A field that the value does not have.
    UnknownField = "SW203" "unknown-field" Error;
    /// An optional field without a default or a guard.
    OptionalFieldUnguarded = "SW204" "optional-field-unguarded" Error;
    /// A value of the wrong type.
    TypeMismatch = "SW205" "type-mismatch" Error;
    /// A field of a value without fields.
    UntypedFieldAccess = "SW206" "untyped-field-access" Error;
    /// Routes over a value that leave a case out.
    NonExhaustive = "SW207" "non-exhaustive" Error;
    /// A directive that does not fit the notation.
    BadDirective = "SW208" "bad-directive" Error;
    /// A template that minijinja refuses.
    TemplateError = "SW209" "template-error" Error;
    /// An output read across rounds without saying so.
    PreviousIteration = "SW210" "previous-iteration" Warning;
    /// Steps that write the same at once.
    ParallelWriters = "SW211" "parallel-writers" Error;
    /// A typed output that nothing reads.
    DeadOutput = "SW212" "dead-output" Warning Strict;
    /// The older notation.
    LegacyDirective = "SW213" "legacy-directive" Warning;
    /// The free text of an agent, compared with a text.
    FreeTextCompared = "SW214" "free-text-compared" Warning;
    /// Steps that wait for each other.
    Cycle = "SW301" "cycle" Error;
    /// A step that never runs.
    NeverRuns = "SW302" "never-runs" Warning;
    /// A step that can structurally never run.
    Deadlock = "SW303" "deadlock" Error;
    /// A loop without a limit.
    UnboundedLoop = "SW304" "unbounded-loop" Error;
    /// A failure that fails the run although a step is written for it.
    FailureUnhandled = "SW305" "failure-unhandled" Warning Strict;
    /// A gate without a default, which waits for ever without an answer.
    UnattendedGate = "SW306" "unattended-gate" Error;
    /// An edge to a task that takes no turn after it.
    UnreachableReceiver = "SW307" "unreachable-receiver" Warning;
    /// A join that one step which is not needed skips.
    GuardedJoin = "SW308" "guarded-join" Warning;
    /// A worktree of a swarm whose manager has work of its own.
    ManagerWorks = "SW309" "manager-works" Warning;
    /// A coordinator that does the work itself.
    CoordinatorWorks = "SW310" "coordinator-works" Warning Strict;
    /// Items of a plan that can run at once and touch the same files.
    SharedScope = "SW311" "shared-scope" Warning Strict;
    /// A prompt that may be longer than its model's window.
    ContextOverflow = "SW401" "context-overflow" Error;
    /// A context pack whose own text is longer than its budget.
    PackOverBudget = "SW402" "pack-over-budget" Warning;
    /// An output in a prompt without a limit of its own.
    UnboundedInput = "SW403" "unbounded-input" Warning Strict;
    /// A budget that the worst case goes beyond, or none where there is no end.
    BudgetExceeded = "SW404" "budget-exceeded" Error;
    /// One text twice in a prompt.
    DuplicatedContext = "SW405" "duplicated-context" Warning Strict;
    /// A command that no run reuses, in a spec whose others can be.
    NeverReused = "SW406" "never-reused" Warning Strict;
    /// Private data, text of strangers and a way out in one flow.
    LethalTrifecta = "SW501" "lethal-trifecta" Error;
    /// Text of strangers in the prompt of an agent that acts.
    UntrustedToPrivileged = "SW502" "untrusted-to-privileged" Warning Strict;
    /// A directive or template where a process would see it as a command.
    UntrustedToCommand = "SW503" "untrusted-to-command" Error;
    /// An agent that starts others which can do more.
    SpawnEscalation = "SW504" "spawn-escalation" Error;
    /// More permission than anything needs.
    OverBroadPermission = "SW505" "over-broad-permission" Warning Strict;
    /// A prompt that asks for a tool that its agent may not use.
    NeedsDeniedTool = "SW506" "needs-denied-tool" Warning Strict;
    /// Characters that cannot be seen.
    HiddenText = "SW507" "hidden-text" Warning;
    /// A command that cannot be undone, without a gate or a check before it.
    UngatedIrreversible = "SW508" "ungated-irreversible" Hint Audit;
    /// A tool that its agent is not able to use.
    ToolNotAble = "SW509" "tool-not-able" Error;
    /// A literal that looks like a key.
    SecretInSource = "SW601" "secret-in-source" Error;
    /// A secret that is printed.
    SecretInPrompt = "SW602" "secret-in-prompt" Error;
    /// A secret that more steps have than use it.
    SecretTooWide = "SW603" "secret-too-wide" Warning Strict;
    /// A provider that cannot do what a step needs.
    ProviderLacks = "SW701" "provider-lacks" Error;
    /// A model or a tool that may be another one tomorrow.
    FloatingVersion = "SW702" "floating-version" Hint Audit;
    /// A plan that is not what its spec gives.
    StalePlan = "SW703" "stale-plan" Error;
    /// An older spelling.
    Deprecated = "SW704" "deprecated" Warning;
    /// Something of a compose file that no spec says.
    NotImported = "SW705" "not-imported" Error;
    /// Something that this version cannot run.
    CannotRun = "SW706" "cannot-run" Error;
}

impl Code {
    /// Whether a run can go on where the check is wrong; what cannot be understood or found cannot be allowed.
    pub fn is_suppressible(self) -> bool {
        matches!(
            self,
            Code::UnquotedShell
                | Code::UnusedDefinition
                | Code::GlobMatchesNothing
                | Code::MissingProgram
                | Code::OutputMayBeSkipped
                | Code::PreviousIteration
                | Code::ParallelWriters
                | Code::DeadOutput
                | Code::FailureUnhandled
                | Code::LegacyDirective
                | Code::NeverRuns
                | Code::ContextOverflow
                | Code::PackOverBudget
                | Code::UnboundedInput
                | Code::BudgetExceeded
                | Code::DuplicatedContext
                | Code::NeverReused
                | Code::Deadlock
                | Code::UnattendedGate
                | Code::UnreachableReceiver
                | Code::GuardedJoin
                | Code::ManagerWorks
                | Code::CoordinatorWorks
                | Code::SharedScope
                | Code::NonExhaustive
                | Code::LethalTrifecta
                | Code::UntrustedToPrivileged
                | Code::UntrustedToCommand
                | Code::SpawnEscalation
                | Code::OverBroadPermission
                | Code::NeedsDeniedTool
                | Code::HiddenText
                | Code::UngatedIrreversible
                | Code::SecretInSource
                | Code::SecretInPrompt
                | Code::SecretTooWide
                | Code::FloatingVersion
                | Code::Deprecated
        )
    }

    /// Whether it is found in the plan rather than in the text, so that what is wrong in the text hides it.
    pub(crate) fn of_plan(self) -> bool {
        matches!(self, Code::ContextOverflow | Code::UnboundedInput | Code::BudgetExceeded | Code::CannotRun)
    }

    /// The code with this id or name, in any case.
    pub fn find(text: &str) -> Option<Code> {
        Code::ALL
            .iter()
            .copied()
            .find(|code| code.id().eq_ignore_ascii_case(text) || code.name().eq_ignore_ascii_case(text))
    }
}
