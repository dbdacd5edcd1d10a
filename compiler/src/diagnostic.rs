//! Diagnostics: what is wrong in a spec, where, and how to fix it.
//!
//! Each stage pushes into [`Diagnostics`] and continues. [`Report`] is the one `impl miette::Diagnostic`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::code::{Code, Profile, Severity};
use crate::settings::{Levels, Settings};
use crate::source::{FileId, SourceFile, Sources, Span};
use crate::suggest::Near;
use crate::syntax::{Problem, ProblemKind};

/// One problem of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What it is about.
    pub code: Code,
    /// What is wrong: lower case, no full stop, the user's names in backticks.
    pub message: String,
    /// Where, the place itself first. Empty only when there is no text at all, as for a missing spec.
    pub labels: Vec<Label>,
    /// How one thing leads to another: the places in order, the first cause first.
    pub trace: Vec<Label>,
    /// What to type.
    pub help: Option<String>,
    /// Edits that would mend it.
    pub fix: Option<Fix>,
    /// The step that it is about, where that stands elsewhere: a suppression there holds for its prompt files too.
    pub home: Option<Span>,
    /// How bad it is, where that is not what its code says.
    pub severity: Option<Severity>,
}

/// A place with what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What this place is.
    pub text: String,
}

/// Edits that mend a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What they do, as an order: "write `#true`".
    pub title: String,
    /// The edits, none overlapping another.
    pub edits: Vec<Edit>,
    /// Whether the meaning is certainly the one wanted; otherwise a person should look.
    pub certain: bool,
}

/// The replacement of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced; empty to insert.
    pub span: Span,
    /// By what.
    pub text: String,
}

impl Diagnostic {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            message: message.into(),
            labels: Vec::new(),
            trace: Vec::new(),
            help: None,
            fix: None,
            home: None,
            severity: None,
        }
    }

    pub(crate) fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Shows how one place leads to the next.
    pub(crate) fn trace(mut self, trace: Vec<(Span, String)>) -> Diagnostic {
        self.trace = trace.into_iter().map(|(span, text)| Label { span, text }).collect();
        self
    }

    /// The labels, and after them the trace, numbered.
    pub fn all_labels(&self) -> Vec<Label> {
        let numbered =
            |(index, label): (usize, &Label)| Label { text: format!("{}. {}", index + 1, label.text), ..*label };
        self.labels.iter().cloned().chain(self.trace.iter().enumerate().map(numbered)).collect()
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn help_maybe(self, help: Option<String>) -> Diagnostic {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// Attaches an edit that certainly means what was meant.
    pub(crate) fn fix(self, title: impl Into<String>, span: Span, text: impl Into<String>) -> Diagnostic {
        self.edit(title, span, text, true)
    }

    /// Attaches an edit that probably means what was meant.
    pub(crate) fn unsafe_fix(self, title: impl Into<String>, span: Span, text: impl Into<String>) -> Diagnostic {
        self.edit(title, span, text, false)
    }

    /// Attaches the edit that writes the name that was nearly written.
    pub(crate) fn write_near(self, span: Span, near: Near<'_>) -> Diagnostic {
        self.edit(format!("write `{near}`"), span, near.name, near.certain)
    }

    /// Attaches the edit that gives an expression the empty text as its default.
    pub(crate) fn give_default(self, expression: Span) -> Diagnostic {
        // A string of the spec may stand around it, in which `"` would end it.
        let end = Span { start: expression.end, ..expression };
        self.unsafe_fix("add a default", end, " | default('')")
    }

    /// Attaches an edit, and says whether it certainly means what was meant.
    pub(crate) fn edit(
        mut self,
        title: impl Into<String>,
        span: Span,
        text: impl Into<String>,
        certain: bool,
    ) -> Diagnostic {
        self.fix = Some(Fix { title: title.into(), edits: vec![Edit { span, text: text.into() }], certain });
        self
    }

    /// Its own severity, else that of its code.
    pub fn severity(&self) -> Severity {
        self.severity.unwrap_or_else(|| self.code.severity())
    }

    /// How bad it counts where these levels hold; none leaves it out.
    pub fn severity_in(&self, levels: &Levels) -> Option<Severity> {
        levels.severity_of(self.code, self.severity())
    }

    /// The place itself.
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|label| label.span)
    }
}

/// The most diagnostics of a code that one compilation keeps: a person does not read more, and showing them takes time.
/// Those of another code may be denied where these are allowed, and are kept beside.
pub(crate) const MOST: usize = 1000;

/// The problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    list: Vec<Diagnostic>,
    /// Where each of them starts.
    starts: BTreeSet<(FileId, u32)>,
    errors: usize,
    /// How many of each code are in the list.
    kept: BTreeMap<Code, usize>,
    /// How many of each were found beyond [`MOST`].
    left_out: BTreeMap<Code, usize>,
    home: Option<Span>,
    /// The codes that the running check says it reports.
    declared: Option<&'static [Code]>,
    settings: Settings,
}

impl Diagnostics {
    pub(crate) fn new(settings: Settings) -> Diagnostics {
        Diagnostics { settings, ..Diagnostics::default() }
    }

    /// Whether problems with this code are kept: a check may save itself the work otherwise.
    pub(crate) fn is_enabled(&self, code: Code) -> bool {
        self.settings.is_enabled(code)
    }

    /// Says which step the next problems are about.
    pub(crate) fn set_home(&mut self, home: Option<Span>) {
        self.home = home;
    }

    /// Says which codes the next problems may have: those that the running check declares.
    pub(crate) fn declare_codes(&mut self, codes: Option<&'static [Code]>) {
        self.declared = codes;
    }

    pub(crate) fn push(&mut self, mut diagnostic: Diagnostic) {
        let is_declared = self.declared.is_none_or(|codes| codes.contains(&diagnostic.code));
        debug_assert!(is_declared, "the check does not declare {}", diagnostic.code.id());
        if !self.is_enabled(diagnostic.code) {
            return;
        }
        diagnostic.home = self.home;
        // What must stand in a place says more than how it must be quoted.
        if diagnostic.code == Code::WrongValue
            && let Some(span) = diagnostic.span().filter(|span| self.starts.contains(&(span.file, span.start)))
        {
            self.suppress(|known| known.code == Code::Syntax && known.span() == Some(span));
        }
        // Counted past `MOST` as well: no plan may come of a spec whose errors are not all kept.
        self.errors += usize::from(diagnostic.severity() == Severity::Error);
        // What only some profiles show must not hide what all of them show.
        if let Some(span) = diagnostic.span()
            && diagnostic.code.profile() == Profile::Default
            // An older spelling is right, and hides nothing that is wrong with it.
            && diagnostic.code != Code::Deprecated
        {
            self.starts.insert((span.file, span.start));
        }
        let kept = self.kept.entry(diagnostic.code).or_default();
        if *kept < MOST {
            *kept += 1;
            self.list.push(diagnostic);
        } else {
            *self.left_out.entry(diagnostic.code).or_default() += 1;
        }
    }

    pub(crate) fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        diagnostics.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// Gives what was reported at `span` with this code the help and the fix of another diagnostic.
    pub(crate) fn amend(&mut self, code: Code, span: Span, other: Diagnostic) {
        let known = self.list.iter_mut().rev().find(|known| known.code == code && known.span() == Some(span));
        if let Some(known) = known {
            known.help = other.help;
            known.fix = other.fix.map(|fix| Fix { certain: true, ..fix });
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether something was reported in this place: what follows from it need not be.
    pub(crate) fn has_report_at(&self, span: Span) -> bool {
        self.starts.range((span.file, span.start)..(span.file, span.end)).next().is_some()
    }

    /// Whether a node between these places is not known there.
    pub(crate) fn has_unknown_node(&self, from: Span, to: Option<Span>) -> bool {
        let end = to.filter(|to| to.file == from.file).map_or(u32::MAX, |to| to.start);
        let between = |span: Span| span.file == from.file && (from.end..end).contains(&span.start);
        let unknown = |known: &Diagnostic| matches!(known.code, Code::UnknownNode | Code::MisplacedNode);
        self.errors > 0 && self.list.iter().any(|known| unknown(known) && known.span().is_some_and(between))
    }

    /// Takes the diagnostics for which `drop` is true out again.
    pub(crate) fn suppress(&mut self, mut drop: impl FnMut(&Diagnostic) -> bool) {
        self.list.retain(|diagnostic| {
            let dropped = drop(diagnostic);
            if dropped {
                self.errors -= usize::from(diagnostic.severity() == Severity::Error);
                self.kept.entry(diagnostic.code).and_modify(|kept| *kept -= 1);
            }
            !dropped
        });
    }

    /// How many problems of each code there are that are not kept.
    pub(crate) fn take_left_out(&mut self) -> BTreeMap<Code, usize> {
        std::mem::take(&mut self.left_out)
    }

    /// The diagnostics by place, each once.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by(|a, b| (a.span(), a.code, &a.message).cmp(&(b.span(), b.code, &b.message)));
        // A text that steps share is wrong once.
        self.list.dedup_by(|a, b| {
            a.home = b.home;
            a == b
        });
        self.list
    }
}

/// A diagnostic together with the text it points into, for a renderer that speaks `miette`.
#[derive(Debug)]
pub struct Report<'a> {
    diagnostic: &'a Diagnostic,
    severity: Severity,
    source: Option<&'a SourceFile>,
    /// Labels in the file of the first.
    here: Vec<Label>,
    /// Labels in other files, a report each.
    elsewhere: Vec<Elsewhere<'a>>,
}

#[derive(Debug)]
struct Elsewhere<'a> {
    label: Label,
    source: &'a SourceFile,
}

impl<'a> Report<'a> {
    /// Joins a diagnostic with its sources.
    pub fn new(diagnostic: &'a Diagnostic, sources: &'a Sources) -> Report<'a> {
        let home = diagnostic.span().map(|span| span.file);
        let (here, elsewhere): (Vec<Label>, Vec<Label>) =
            diagnostic.all_labels().into_iter().partition(|label| Some(label.span.file) == home);
        Report {
            diagnostic,
            severity: diagnostic.severity(),
            source: home.map(|file| sources.file(file)),
            here,
            elsewhere: elsewhere
                .into_iter()
                .map(|label| Elsewhere { source: sources.file(label.span.file), label })
                .collect(),
        }
    }

    /// Shows it as this bad, where a flag says otherwise than its code.
    pub fn with_severity(self, severity: Severity) -> Report<'a> {
        Report { severity, ..self }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}

impl std::error::Error for Report<'_> {}

impl miette::Diagnostic for Report<'_> {
    fn code<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        Some(Box::new(format!("{}[{}]", self.severity.as_str(), self.diagnostic.code.id())))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Hint => miette::Severity::Advice,
        })
    }

    fn help<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        self.diagnostic.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.source.map(|source| source as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        self.diagnostic.span()?;
        Some(Box::new(self.here.iter().enumerate().map(|(index, label)| match index {
            0 => miette::LabeledSpan::new_primary_with_span(Some(label.text.clone()), to_miette_span(label.span)),
            _ => miette::LabeledSpan::new_with_span(Some(label.text.clone()), to_miette_span(label.span)),
        })))
    }

    fn related<'b>(&'b self) -> Option<Box<dyn Iterator<Item = &'b dyn miette::Diagnostic> + 'b>> {
        match self.elsewhere.is_empty() {
            true => None,
            false => Some(Box::new(self.elsewhere.iter().map(|other| other as &dyn miette::Diagnostic))),
        }
    }
}

impl fmt::Display for Elsewhere<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label.text)
    }
}

impl std::error::Error for Elsewhere<'_> {}

impl miette::Diagnostic for Elsewhere<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(miette::Severity::Advice)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        Some(Box::new(std::iter::once(miette::LabeledSpan::new_primary_with_span(
            None,
            to_miette_span(self.label.span),
        ))))
    }
}

fn to_miette_span(span: Span) -> miette::SourceSpan {
    (span.start as usize, (span.end - span.start) as usize).into()
}

/// A problem of the text as a diagnostic.
impl From<Problem> for Diagnostic {
    fn from(problem: Problem) -> Diagnostic {
        let code = match problem.kind {
            ProblemKind::Syntax | ProblemKind::Habit => Code::Syntax,
            ProblemKind::V1Literal => Code::V1Literal,
            ProblemKind::Limit => Code::InputLimits,
        };
        let diagnostic =
            Diagnostic::new(code, problem.message).label(problem.span, problem.label).help_maybe(problem.help);
        let diagnostic = match problem.second {
            Some((span, text)) => diagnostic.label(span, text),
            None => diagnostic,
        };
        match problem.fix {
            Some(fix) => diagnostic.edit(fix.title, fix.span, fix.replacement, fix.certain),
            None => diagnostic,
        }
    }
}
