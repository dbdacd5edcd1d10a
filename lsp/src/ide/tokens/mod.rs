//! Semantic tokens for highlighting: all words of a spec, and the interpolations of a prompt.
//!
//! In: a file, and a part of it. Out: tokens by place; no token crosses another one or the end of a line.

mod expression;

use std::ops::Range;

use swarmc_compiler::index::{Role, SymbolKind};
use swarmc_compiler::interpolation::HoleKind;
use swarmc_compiler::schema::{self, Kind as Value};
use swarmc_compiler::syntax::{Node, TokenKind, ValueKind};

use super::document::Kind;
use super::texts::{self, Said};
use super::{Document, Snapshot, element, names};

/// A word with what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Where it stands.
    pub range: Range<usize>,
    /// What it is.
    pub kind: TokenType,
    /// Whether it declares what it names.
    pub declares: bool,
}

/// What a word is, in the terms that themes of editors know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenType {
    /// A pipeline, a swarm or an import.
    Namespace,
    /// A type.
    Type,
    /// An agent, a provider, a tier, a server or a member.
    Class,
    /// A word of a list: a choice, an option of a gate.
    EnumMember,
    /// A parameter or a port.
    Parameter,
    /// Anything else with a name.
    Variable,
    /// A field, or the key of a property.
    Property,
    /// A step.
    Function,
    /// A filter or a test.
    Method,
    /// A directive, or the root of a path in an expression.
    Macro,
    /// A node, or a word of expressions.
    Keyword,
    /// A comment.
    Comment,
    /// A text.
    String,
    /// A number, or a truth.
    Number,
    /// The delimiters of an interpolation, and arrows.
    Operator,
}

impl TokenType {
    /// Every one, in the order of their numbers.
    pub const ALL: [TokenType; 15] = [
        TokenType::Namespace,
        TokenType::Type,
        TokenType::Class,
        TokenType::EnumMember,
        TokenType::Parameter,
        TokenType::Variable,
        TokenType::Property,
        TokenType::Function,
        TokenType::Method,
        TokenType::Macro,
        TokenType::Keyword,
        TokenType::Comment,
        TokenType::String,
        TokenType::Number,
        TokenType::Operator,
    ];

    /// As themes call it.
    pub fn as_str(self) -> &'static str {
        match self {
            TokenType::Namespace => "namespace",
            TokenType::Type => "type",
            TokenType::Class => "class",
            TokenType::EnumMember => "enumMember",
            TokenType::Parameter => "parameter",
            TokenType::Variable => "variable",
            TokenType::Property => "property",
            TokenType::Function => "function",
            TokenType::Method => "method",
            TokenType::Macro => "macro",
            TokenType::Keyword => "keyword",
            TokenType::Comment => "comment",
            TokenType::String => "string",
            TokenType::Number => "number",
            TokenType::Operator => "operator",
        }
    }
}

/// The tokens of a file in a range of it.
pub fn list_tokens(snapshot: &Snapshot, path: &str, within: Range<usize>) -> Vec<Token> {
    let Some(document) = snapshot.document(path) else { return Vec::new() };
    if document.kind() == Kind::Foreign {
        return Vec::new();
    }
    let mut painter = Painter { document: &document, within, strokes: Vec::new() };
    painter.paint_spec();
    for said in texts::list_texts(snapshot, path, &document) {
        if painter.intersects_range(&said.range) {
            painter.paint_text(&said);
        }
    }
    painter.paint_names(snapshot, path);
    painter.finish()
}

/// Gathers what lies over what.
struct Painter<'d> {
    document: &'d Document,
    within: Range<usize>,
    strokes: Vec<Stroke>,
}

/// What is painted over what.
struct Stroke {
    range: Range<usize>,
    /// Of two that stand in the same place, the higher one is seen.
    layer: u8,
    /// None where what lies beneath must not be seen.
    kind: Option<TokenType>,
    declares: bool,
}

impl Painter<'_> {
    fn intersects_range(&self, range: &Range<usize>) -> bool {
        range.start < self.within.end && self.within.start < range.end
    }

    fn paint(&mut self, layer: u8, range: Range<usize>, kind: TokenType, declares: bool) {
        if !range.is_empty() && self.intersects_range(&range) {
            self.strokes.push(Stroke { range, layer, kind: Some(kind), declares });
        }
    }

    /// Keeps what lies beneath from being seen.
    fn blank_range(&mut self, range: Range<usize>) {
        if self.intersects_range(&range) {
            self.strokes.push(Stroke { range, layer: 0, kind: None, declares: false });
        }
    }

    fn paint_spec(&mut self) {
        let Some(tree) = self.document.tree().cloned() else { return };
        let mut start = 0;
        for token in &tree.tokens {
            let range = start..token.end as usize;
            start = range.end;
            let kind = match token.kind {
                TokenKind::LineComment | TokenKind::BlockComment | TokenKind::OpenComment => TokenType::Comment,
                TokenKind::Quoted | TokenKind::Raw | TokenKind::Lines | TokenKind::RawLines | TokenKind::OpenString => {
                    TokenType::String
                }
                TokenKind::Keyword => TokenType::Number,
                _ => continue,
            };
            self.paint(0, range, kind, false);
        }
        element::visit_nodes(self.document, &mut |node, known| self.paint_node(node, known));
    }

    fn paint_node(&mut self, node: &Node, known: &'static schema::Node) {
        let name = node.name.span.range();
        let own = known.name.starts_with(|sign: char| sign.is_ascii_uppercase());
        self.paint(1, name, if own { TokenType::Property } else { TokenType::Keyword }, own);
        for (entry, slot) in element::list_entries(node, known) {
            if let Some(key) = &entry.name {
                self.paint(1, key.span.range(), TokenType::Property, false);
            }
            let value = entry.value.span.range();
            let text = match &entry.value.kind {
                ValueKind::Number(_) => {
                    self.paint(1, value, TokenType::Number, false);
                    continue;
                }
                ValueKind::String(text) => text,
                _ => continue,
            };
            let inside = texts::unquoted_range(self.document.text(), value);
            match slot.map(element::Slot::kind) {
                Some(Value::Choice(words)) if words.iter().any(|word| word.word == text.as_str()) => {
                    self.paint(1, inside, TokenType::EnumMember, false);
                }
                Some(Value::Type) => self.paint_types(inside),
                Some(Value::Name) => {
                    let kind = if known.name == "workflow" { TokenType::Namespace } else { TokenType::Variable };
                    self.paint(1, inside, kind, true);
                }
                Some(Value::Text) if std::ptr::eq(known, &raw const schema::EDGE) => {
                    self.paint(1, inside, TokenType::Operator, false);
                }
                // The words of an enumeration.
                Some(Value::Text) if own || matches!(known.name, "type" | "output" | "ask") => {
                    self.paint(1, inside, TokenType::EnumMember, false);
                }
                _ => {}
            }
        }
    }

    /// The built-in words of a type.
    fn paint_types(&mut self, range: Range<usize>) {
        let text = self.document.text();
        let mut at = range.start;
        for word in text[range].split_inclusive(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_') {
            let bare = word.trim_end_matches(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
            self.paint(1, at..at + bare.len(), TokenType::Type, false);
            at += word.len();
        }
    }

    fn paint_text(&mut self, said: &Said) {
        if said.expression {
            self.blank_range(said.range.clone());
            expression::visit_words(self.document.text(), said.range.clone(), &mut |range, kind| {
                self.paint(2, range, kind, false);
            });
            return;
        }
        for hole in texts::list_holes(self.document, said) {
            if !self.intersects_range(&hole.range) {
                continue;
            }
            let range = hole.range;
            self.blank_range(range.clone());
            match hole.kind {
                HoleKind::Comment => self.paint(2, range, TokenType::Comment, false),
                HoleKind::Logic => {
                    let inner = range.start + 2..range.end.saturating_sub(2).max(range.start + 2);
                    self.paint(2, range.start..inner.start, TokenType::Operator, false);
                    self.paint(2, inner.end..range.end, TokenType::Operator, false);
                    expression::visit_words(self.document.text(), inner, &mut |range, kind| {
                        self.paint(2, range, kind, false);
                    });
                }
                HoleKind::Directive { word, name, fields, filters } => {
                    self.paint(1, range.start..word.start, TokenType::Operator, false);
                    self.paint(1, range.end - 2..range.end, TokenType::Operator, false);
                    self.paint(2, word, TokenType::Macro, false);
                    name.into_iter().for_each(|name| self.paint(2, name, TokenType::Variable, false));
                    fields.into_iter().for_each(|field| self.paint(2, field, TokenType::Property, false));
                    for filter in filters {
                        let written = &self.document.text()[filter.clone()];
                        let called = written.split(':').next().unwrap_or(written).trim_end().len();
                        let argument = written[called..].trim_start_matches([':', ' ']);
                        let text = argument.starts_with(['"', '\'']);
                        let kind = if text { TokenType::String } else { TokenType::Number };
                        self.paint(2, filter.start..filter.start + called, TokenType::Method, false);
                        self.paint(2, filter.end - argument.len()..filter.end, kind, false);
                    }
                }
            }
        }
    }

    /// What the specs know that read the file; the first one's word counts.
    fn paint_names(&mut self, snapshot: &Snapshot, path: &str) {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        for analysis in snapshot.find_analyses(path) {
            let Some(file) = analysis.file(path) else { continue };
            let index = &analysis.index;
            // A name that only begins before the range is not worth a search.
            for found in index.occurrences_in(file, number(self.within.start)..number(self.within.end)) {
                let range = names::name_range(analysis.compilation.sources.slice(found.span), found.span);
                let kind = symbol_token_type(index.symbol(found.symbol).kind);
                self.paint(3, range, kind, found.role == Role::Definition);
            }
        }
    }

    /// The topmost of what lies over each other, cut at the ends of lines.
    fn finish(self) -> Vec<Token> {
        let mut strokes = self.strokes;
        strokes.sort_by_key(|stroke| (stroke.range.start, std::cmp::Reverse(stroke.range.end), stroke.layer));
        let mut flat: Vec<Token> = Vec::with_capacity(strokes.len());
        // What is open, outermost first; what was painted of the innermost ends at `at`.
        let (mut open, mut at): (Vec<Stroke>, usize) = (Vec::new(), 0);
        let text = self.document.text();
        for stroke in strokes {
            while let Some(outer) = open.pop_if(|outer| outer.range.end <= stroke.range.start) {
                append_lines(text, &outer, at..outer.range.end, &mut flat);
                at = at.max(outer.range.end);
            }
            if let Some(outer) = open.last() {
                // What crosses its end is broken text, and left out.
                if stroke.range.end > outer.range.end {
                    continue;
                }
                append_lines(text, outer, at..stroke.range.start, &mut flat);
            }
            at = at.max(stroke.range.start);
            open.push(stroke);
        }
        while let Some(outer) = open.pop() {
            append_lines(text, &outer, at..outer.range.end, &mut flat);
            at = at.max(outer.range.end);
        }
        flat
    }
}

/// Adds a part of a token, line by line.
fn append_lines(text: &str, stroke: &Stroke, part: Range<usize>, flat: &mut Vec<Token>) {
    let (Some(kind), mut at) = (stroke.kind, part.start) else { return };
    for line in text.get(part).unwrap_or_default().split_inclusive('\n') {
        let end = at + line.trim_end_matches(['\n', '\r']).len();
        if at < end {
            flat.push(Token { range: at..end, kind, declares: stroke.declares });
        }
        at += line.len();
    }
}

fn symbol_token_type(kind: SymbolKind) -> TokenType {
    match kind {
        SymbolKind::Pipeline | SymbolKind::Swarm | SymbolKind::Alias => TokenType::Namespace,
        SymbolKind::Type => TokenType::Type,
        SymbolKind::Provider | SymbolKind::Tier | SymbolKind::Agent | SymbolKind::ToolServer | SymbolKind::Member => {
            TokenType::Class
        }
        SymbolKind::Option => TokenType::EnumMember,
        SymbolKind::Param | SymbolKind::Port => TokenType::Parameter,
        SymbolKind::Field => TokenType::Property,
        SymbolKind::Task | SymbolKind::Gate | SymbolKind::Loop | SymbolKind::Stop => TokenType::Function,
        SymbolKind::Secret
        | SymbolKind::Prompt
        | SymbolKind::Pack
        | SymbolKind::Item
        | SymbolKind::Channel
        | SymbolKind::Worktree => TokenType::Variable,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::parse_fixture;
    use super::*;

    fn shown(text: &str) -> String {
        let (snapshot, path, _) = parse_fixture(text);
        let document = snapshot.document(&path).expect("the file is there");
        let all = list_tokens(&snapshot, &path, 0..document.text().len());
        for pair in all.windows(2) {
            assert!(pair[0].range.end <= pair[1].range.start, "{pair:?}");
        }
        // A part of a file has the tokens of the whole that lie in it.
        let half = document.text().len() / 2;
        let part = list_tokens(&snapshot, &path, half..document.text().len());
        for token in all.iter().filter(|token| token.range.start >= half) {
            assert!(part.contains(token), "{token:?}");
        }
        let line = |at: usize| document.source().position(at).line;
        let mut lines: Vec<(usize, String)> = Vec::new();
        for token in &all {
            let word = &document.text()[token.range.clone()];
            assert!(!word.contains('\n'));
            let mark = if token.declares { "!" } else { "" };
            let one = format!("{word}:{}{mark}", token.kind.as_str());
            match lines.last_mut().filter(|(last, _)| *last == line(token.range.start)) {
                Some((_, text)) => *text += &format!("  {one}"),
                None => lines.push((line(token.range.start), one)),
            }
        }
        lines.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_spec_is_coloured_by_meaning() {
        insta::assert_snapshot!(shown("//- a.kdl
workflow w // the flow
param goal type=string
provider p { exec cat }
agent a provider=p
type Verdict { ok bool?; level enum low high; points list<Point> }
type Point { text string }
pipeline main {
    iterations 3
    task \"find-it\" agent=a {
        prompt \"look for <<param:goal | chars:9>> é {{ output.find_it.ok }}\"
        output Verdict
        for-each \"output.other.points\" parallel=2
    }
    task other { run echo \"x\"; depends-on find-it when=any; fail-fast #true }
    task again agent=a {
        prompt \"\"\"
            One <<output:find-it.ok>>
            two
            \"\"\"
        when \"output.other == 'x' and status.other is defined\"
    }
    edges { find-it -> other }
}
"), @r#"
        workflow:keyword  w:namespace!  // the flow:comment
        param:keyword  goal:parameter!  type:property  string:type
        provider:keyword  p:class!  exec:keyword
        agent:keyword  a:class!  provider:property  p:class
        type:keyword  Verdict:type!  ok:property!  bool:type  level:property!  enum:type  low:enumMember  high:enumMember  points:property!  list:type  Point:type
        type:keyword  Point:type!  text:property!  string:type
        pipeline:keyword  main:namespace!
        iterations:keyword  3:number
        task:keyword  ":string  find-it:function!  ":string  agent:property  a:class
        prompt:keyword  "look for :string  <<:operator  param:macro  goal:parameter  chars:method  9:number  >>:operator   é :string  {{:operator  output:macro  find_it:function  ok:property  }}:operator  ":string
        output:keyword  Verdict:type
        for-each:keyword  ":string  output:macro  other:function  points:property  ":string  parallel:property  2:number
        task:keyword  other:function!  run:keyword  "x":string  depends-on:keyword  find-it:function  when:property  any:enumMember  #true:number
        task:keyword  again:function!  agent:property  a:class
        prompt:keyword  """:string
                    One :string  <<:operator  output:macro  find-it:function  ok:property  >>:operator
                    two:string
                    """:string
        when:keyword  ":string  output:macro  other:function  'x':string  and:keyword  status:macro  other:function  is:keyword  defined:method  ":string
        edges:keyword  find-it:function  ->:operator  other:function
        "#);
    }

    #[test]
    fn a_prompt_is_coloured_in_its_holes() {
        insta::assert_snapshot!(shown("//- p.md
Say <<output:one | tail:3>> and \\<<output:no>> {# why #}
{% if output.one | length > 3 %}{{ param.goal }}{% else %}none{% endif %} <<half
//- a.kdl
workflow w
param goal type=string
provider p { exec cat }
agent a provider=p
pipeline m { task one { run echo }; task u { prompt file=\"p.md\" } }
"), @"
        <<:operator  output:macro  one:function  tail:method  3:number  >>:operator  {# why #}:comment
        {%:operator  if:keyword  output:macro  one:function  length:method  3:number  %}:operator  {{:operator  param:macro  goal:parameter  }}:operator  {%:operator  else:keyword  %}:operator  {%:operator  endif:keyword  %}:operator
        ");
    }

    #[test]
    fn broken_and_foreign_texts_are_coloured_as_far_as_they_go() {
        insta::assert_snapshot!(shown("//- a.kdl\nworkflow w\npipeline p {\n    task t { prompt \"x <<output:t>> y"), @r#"
        workflow:keyword  w:namespace!
        pipeline:keyword  p:namespace!
        task:keyword  t:function!  prompt:keyword  "x :string  <<:operator  output:macro  t:function  >>:operator   y:string
        "#);
        assert_eq!(shown("//- a.kdl\nlayout { pane }\n"), "");
        assert_eq!(shown("//- README.md\n<<output:x>>\n"), "");
    }
}
