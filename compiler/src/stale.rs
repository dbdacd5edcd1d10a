//! SW703: a plan that was written before and is not what its spec gives now.
//!
//! In: a compilation, and the text of the plan. Out: nothing when the two are the same, byte for byte; else what differs,
//! which file is to blame, and what to type. A place that moved counts too: messages of a run would name wrong lines.

use std::collections::BTreeSet;

use serde_json::Value;
use swarmc_plan::{self as plan, Change, Difference, Field, Origin, Part, Plan, ReadError, compare_plans};

use crate::analysis::Compilation;
use crate::bounds::compute_bounds;
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::source::{FileId, Sources, Span};
use crate::tokens::O200k;

/// How many parts a message names, and how many places it shows.
const SHOWN: usize = 5;

/// Why the plan `text`, which stands in `file`, is not what `compilation` gives, with `command` as what to type; none
/// when it is, or when there is no plan to hold it against.
///
/// # Errors
/// The text is not a plan, or one of a newer swarmc.
pub fn check_stale(
    compilation: &Compilation,
    text: &str,
    file: &str,
    command: &str,
) -> Result<Option<Diagnostic>, ReadError> {
    let Some(compiled) = &compilation.plan else { return Ok(None) };
    let sources = &compilation.sources;
    let committed = plan::read_plan(text)?;
    // The vocabulary that tokens are counted with takes longer to load than all the rest: only where the rest is the same
    // is it worth knowing whether the bounds are.
    let mut fresh = Plan { bounds: committed.bounds.clone(), ..compiled.clone() };
    if committed == fresh {
        fresh.bounds = compute_bounds(&fresh, &O200k);
        let written = plan::write_plan(&fresh);
        // A checkout may have given the lines other ends.
        if written == text || (text.contains('\r') && written == text.replace("\r\n", "\n")) {
            return Ok(None);
        }
    }
    Ok(Some(explain_changes(&committed, &fresh, sources, file, command)))
}

fn explain_changes(committed: &Plan, fresh: &Plan, sources: &Sources, file: &str, command: &str) -> Diagnostic {
    let all = compare_plans(committed, fresh);
    let files: Vec<&str> = changed_files(&all);
    let told = |found: &&Difference| !matches!(found.part, Part::Source | Part::Bounds);
    let changed: Vec<&Difference> =
        all.iter().filter(told).filter(|found| !matches!(found.change, Change::Moved(_))).collect();
    let moved: Vec<&Difference> =
        all.iter().filter(told).filter(|found| matches!(found.change, Change::Moved(_))).collect();
    let why = match (files.is_empty(), changed.is_empty()) {
        (false, false) => format!(
            "{}, and with {} {}",
            describe_changed(&files),
            choose_pronoun(&files),
            summarize_differences(&changed)
        ),
        (true, false) => format!(
            "no file changed, but {} differ{}: swarmc or its library changed, or the plan was edited",
            summarize_differences(&changed),
            if changed.len() == 1 { "s" } else { "" }
        ),
        (false, true) if !moved.is_empty() => format!("{}, and only positions moved", describe_changed(&files)),
        (false, true) => format!("{}, but nothing that runs", describe_changed(&files)),
        (true, true) if !moved.is_empty() => "only positions moved".to_owned(),
        (true, true) if all.is_empty() => "its layout is not the one that swarmc writes".to_owned(),
        (true, true) => "this swarmc computes other limits of what a run uses".to_owned(),
    };
    let (shown, harmless) = match changed.is_empty() {
        true => (&moved, "what runs is the same; "),
        false => (&changed, ""),
    };
    let mut labels: Vec<(Span, String)> = Vec::new();
    labels.extend(changed.iter().find_map(|found| in_prompt(found, &files, sources)));
    for found in shown.iter().take(SHOWN) {
        labels.extend(
            found.origin.as_ref().and_then(|origin| Some((origin_span(origin, sources)?, describe_difference(found)))),
        );
    }
    if labels.is_empty() {
        labels.extend(files.iter().find_map(|path| Some((file_start(sources.find(path)?), "changed".to_owned()))));
    }
    report_stale(file, &why, sources, labels, command, harmless)
}

fn report_stale(
    file: &str,
    why: &str,
    sources: &Sources,
    mut labels: Vec<(Span, String)>,
    command: &str,
    harmless: &str,
) -> Diagnostic {
    if labels.is_empty() {
        labels.extend(sources.files().next().map(|spec| (file_start(spec), "this spec gives another plan".to_owned())));
    }
    let diagnostic = Diagnostic::new(Code::StalePlan, format!("the plan `{file}` is stale: {why}"))
        .help(format!("{harmless}write it again: `{command}`"));
    labels.into_iter().fold(diagnostic, |diagnostic, (span, text)| diagnostic.label(span, text))
}

/// The files that are not what they were; where all are, those that came or went.
fn changed_files(all: &[Difference]) -> Vec<&str> {
    let of = |changed: bool| {
        let files = all.iter().filter(|found| found.part == Part::Source);
        let files = files.filter(move |found| matches!(found.change, Change::Changed(_)) == changed);
        files.map(|found| found.name.as_str()).collect::<Vec<&str>>()
    };
    let changed = of(true);
    if changed.is_empty() { of(false) } else { changed }
}

/// "`a.md` and `b.md` changed".
fn describe_changed(files: &[&str]) -> String {
    let quoted = files.iter().map(|file| format!("`{file}`")).collect();
    format!("{} changed", join_some(quoted))
}

fn choose_pronoun(files: &[&str]) -> &'static str {
    if files.len() == 1 { "it" } else { "them" }
}

/// "agent `coder`, step `draft` and 3 more".
fn summarize_differences(found: &[&Difference]) -> String {
    join_some(found.iter().map(|found| name_difference(found)).collect())
}

fn name_difference(found: &Difference) -> String {
    let gone = match found.change {
        Change::Added => " (new)",
        Change::Removed => " (gone)",
        Change::Changed(_) | Change::Moved(_) => "",
    };
    format!("{} `{}`{gone}", found.part.as_str(), found.name)
}

/// The first few of these, and how many more there are.
fn join_some(mut items: Vec<String>) -> String {
    let more = items.len().saturating_sub(SHOWN);
    items.truncate(SHOWN);
    if more > 0 {
        items.push(format!("{more} more"));
    }
    match items.split_last() {
        Some((last, rest @ [_, ..])) => format!("{} and {last}", rest.join(", ")),
        _ => items.concat(),
    }
}

/// What a place has to do with it: "step `draft`: its prompt and its timeout differ".
fn describe_difference(found: &Difference) -> String {
    let name = format!("{} `{}`", found.part.as_str(), found.name);
    match &found.change {
        Change::Added => format!("{name} is not in the plan"),
        Change::Removed => format!("{name} is in the plan, but no longer here"),
        Change::Moved(before) => format!("{name}, or something in it, was at {before}"),
        Change::Changed(fields) => {
            let words: BTreeSet<String> = fields.iter().map(|field| describe_field(&field.path)).collect();
            match fields.as_slice() {
                [field] if is_scalar(&field.before) && is_scalar(&field.after) => {
                    let time = field.path.ends_with("_ms");
                    let said = |value: &Option<Value>| match value {
                        Some(Value::Number(number)) if time => format!("{number} ms"),
                        Some(Value::String(text)) => format!("`{}`", text.escape_debug()),
                        Some(value) => format!("`{value}`"),
                        None => "not there".to_owned(),
                    };
                    format!(
                        "{name}: {} was {}, and is {}",
                        describe_field(&field.path),
                        said(&field.before),
                        said(&field.after)
                    )
                }
                _ => format!("{name} differs in {}", join_some(words.into_iter().collect())),
            }
        }
    }
}

/// Whether a value is short enough to be quoted.
fn is_scalar(value: &Option<Value>) -> bool {
    const LONGEST: usize = 40;
    match value {
        None | Some(Value::Bool(_) | Value::Number(_)) => true,
        Some(Value::String(text)) => text.len() <= LONGEST && !text.contains('\n'),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) => false,
    }
}

/// What a person calls a field, by the way to it.
fn describe_field(path: &str) -> String {
    const WORDS: &[(&str, &str)] = &[
        ("body.prompt.prompt", "prompt"),
        ("body.prompt.context", "context"),
        ("body.prompt.agent", "agent"),
        ("body.run", "command"),
        ("body.loop.iteration", "rounds"),
        ("body.loop.steps", "the steps in it"),
        ("body.gate.options", "options"),
        ("body", "body"),
        ("connection.exec.argv", "command"),
        ("connection.acp.argv", "command"),
        ("connection", "connection"),
        ("transport", "connection"),
        ("needs", "dependencies"),
        ("steps", "the order of steps"),
        ("timeout_ms", "timeout"),
        ("idle_ms", "idle timeout"),
        ("grace_ms", "grace"),
        ("survives", "survive"),
        ("output.max_bytes", "output size"),
    ];
    let fits =
        |known: &str| path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    let known = WORDS.iter().find(|(known, _)| fits(known)).map(|(_, word)| (*word).to_owned());
    known.unwrap_or_else(|| path.split(['.', '[']).next().unwrap_or(path).replace('_', "-"))
}

/// The first line of a changed prompt file that the older text does not have.
fn in_prompt(found: &Difference, files: &[&str], sources: &Sources) -> Option<(Span, String)> {
    let Change::Changed(fields) = &found.change else { return None };
    let home = found.origin.as_ref()?.file.as_str();
    let mut before = BTreeSet::new();
    let mut after = Vec::new();
    for Field { before: old, after: new, .. } in fields {
        visit_lines(old.as_ref(), &mut |line| _ = before.insert(line.to_owned()));
        visit_lines(new.as_ref(), &mut |line| after.push(line.to_owned()));
    }
    let elsewhere = files.iter().filter(|file| **file != home);
    let known: Vec<FileId> = elsewhere.filter_map(|file| sources.find(file)).collect();
    for line in after.iter().filter(|line| !before.contains(*line)) {
        for &file in &known {
            if let Some(at) = memchr::memmem::find(sources.text(file).as_bytes(), line.as_bytes()) {
                let (start, end) = (u32::try_from(at).ok()?, u32::try_from(at + line.len()).ok()?);
                return Some((Span::new(file, start, end), "not in the plan".to_owned()));
            }
        }
    }
    // Something was only taken out.
    let file = known.first()?;
    (!before.is_empty()).then(|| (file_start(*file), "the plan has something that is missing here".to_owned()))
}

/// The lines of the texts in a value.
fn visit_lines(value: Option<&Value>, see: &mut impl FnMut(&str)) {
    let mut open: Vec<&Value> = value.into_iter().collect();
    while let Some(value) = open.pop() {
        match value {
            // A digest stands in no file.
            Value::String(text) if !text.starts_with("sha256:") => {
                text.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(&mut *see);
            }
            // The last one of the stack is seen first: turned round, lines come as they stand in the text.
            Value::Array(values) => open.extend(values.iter().rev()),
            Value::Object(values) => open.extend(values.values().rev()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// The word at a place that a plan names; none where that is not in these sources.
fn origin_span(origin: &Origin, sources: &Sources) -> Option<Span> {
    let file = sources.find(&origin.file)?;
    let at = sources.file(file).offset(origin.line as usize, origin.column as usize);
    let rest = &sources.text(file)[at..];
    let length = rest.find(|c: char| c.is_whitespace() || "{};=".contains(c)).unwrap_or(rest.len());
    Some(Span::new(file, u32::try_from(at).ok()?, u32::try_from(at + length).ok()?))
}

fn file_start(file: FileId) -> Span {
    Span::new(file, 0, 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::compile;

    const SPEC: &str = "\
param goal default=fame
provider local { exec cat }
agent writer provider=local
pipeline main {
    task draft { prompt file=\"prompts/draft.md\" }
    task polish { prompt \"Polish <<output:draft>>\" }
}
";
    const PROMPT: &str = "Write about\n<<param:goal>>\nin short words.\n";

    fn files(spec: &str, prompt: &str) -> BTreeMap<String, String> {
        [("flow.kdl", spec), ("prompts/draft.md", prompt)].map(|(path, text)| (path.to_owned(), text.to_owned())).into()
    }

    fn written(spec: &str, prompt: &str) -> String {
        let compilation = compile("flow.kdl", &files(spec, prompt));
        assert_eq!(compilation.diagnostics, []);
        let mut plan = compilation.plan.expect("the spec is right");
        plan.bounds = compute_bounds(&plan, &O200k);
        plan::write_plan(&plan)
    }

    /// What is said of the plan of [`SPEC`] and [`PROMPT`], edited, when these are the files: the message, then each place.
    fn say(edit: impl Fn(String) -> String, spec: &str, prompt: &str) -> String {
        let compilation = compile("flow.kdl", &files(spec, prompt));
        let committed = edit(written(SPEC, PROMPT));
        let found = check_stale(&compilation, &committed, "plan.json", "swarmc plan flow.kdl -o plan.json");
        let Some(found) = found.expect("it is a plan") else { return String::new() };
        assert!(found.help.is_some_and(|help| help.ends_with("write it again: `swarmc plan flow.kdl -o plan.json`")));
        let sources = &compilation.sources;
        let place = |label: &crate::diagnostic::Label| {
            format!("\n  {} `{}`: {}", sources.name(label.span.file), sources.slice(label.span), label.text)
        };
        let places: String = found.labels.iter().map(place).collect();
        found.message.replace("the plan `plan.json` is stale: ", "") + &places
    }

    fn check(spec: &str, prompt: &str, expected: &str) {
        assert_eq!(say(|plan| plan, spec, prompt), expected);
    }

    #[test]
    fn what_is_the_same_is_not_stale() {
        check(SPEC, PROMPT, "");
        assert_eq!(say(|plan| plan.replace('\n', "\r\n"), SPEC, PROMPT), "");
    }

    #[test]
    fn a_prompt_that_changed_is_named_and_its_line_shown() {
        check(
            SPEC,
            &PROMPT.replace("short", "plain"),
            "`prompts/draft.md` changed, and with it step `draft`\
             \n  prompts/draft.md `in plain words.`: not in the plan\
             \n  flow.kdl `draft`: step `draft` differs in prompt",
        );
        check(
            SPEC,
            "Write about\n<<param:goal>>\n",
            "`prompts/draft.md` changed, and with it step `draft`\
             \n  prompts/draft.md ``: the plan has something that is missing here\
             \n  flow.kdl `draft`: step `draft` differs in prompt",
        );
    }

    #[test]
    fn a_part_that_changed_is_named_with_what_it_was() {
        check(
            &SPEC.replace("fame", "gold"),
            PROMPT,
            "`flow.kdl` changed, and with it param `goal`\
             \n  flow.kdl `goal`: param `goal`: default was `fame`, and is `gold`",
        );
        check(
            &SPEC.replace("exec cat", "exec tac"),
            PROMPT,
            "`flow.kdl` changed, and with it provider `local`\
             \n  flow.kdl `local`: provider `local`: command was `cat`, and is `tac`",
        );
        check(
            &SPEC.replace("polish", "refine"),
            PROMPT,
            "`flow.kdl` changed, and with it pipeline `main`, step `refine` (new) and step `polish` (gone)\
             \n  flow.kdl `main`: pipeline `main`: result was `polish`, and is `refine`\
             \n  flow.kdl `refine`: step `refine` is not in the plan\
             \n  flow.kdl `refine`: step `polish` is in the plan, but no longer here",
        );
    }

    #[test]
    fn positions_and_comments_make_a_plan_stale_and_are_told_apart() {
        check(
            &format!("// About this.\n{SPEC}"),
            PROMPT,
            "`flow.kdl` changed, and only positions moved\
             \n  flow.kdl `goal`: param `goal`, or something in it, was at flow.kdl:1:7\
             \n  flow.kdl `local`: provider `local`, or something in it, was at flow.kdl:2:10\
             \n  flow.kdl `writer`: agent `writer`, or something in it, was at flow.kdl:3:7\
             \n  flow.kdl `main`: pipeline `main`, or something in it, was at flow.kdl:4:10\
             \n  flow.kdl `draft`: step `draft`, or something in it, was at flow.kdl:5:10",
        );
        check(
            &format!("{SPEC}// The end.\n"),
            PROMPT,
            "`flow.kdl` changed, but nothing that runs\n  flow.kdl ``: changed",
        );
    }

    #[test]
    fn what_no_file_explains_is_the_compilers_or_a_persons() {
        assert_eq!(
            say(|plan| plan.replace("\"cat\"", "\"rm\""), SPEC, PROMPT),
            "no file changed, but provider `local` differs: swarmc or its library changed, or the plan was edited\
             \n  flow.kdl `local`: provider `local`: command was `rm`, and is `cat`"
        );
        assert_eq!(
            say(|plan| format!("{plan}\n"), SPEC, PROMPT),
            "its layout is not the one that swarmc writes\n  flow.kdl ``: this spec gives another plan"
        );
        assert_eq!(
            say(|plan| plan.replace("\"most\": 2", "\"most\": 1"), SPEC, PROMPT),
            "this swarmc computes other limits of what a run uses\n  flow.kdl ``: this spec gives another plan"
        );
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        let compilation = compile("flow.kdl", &files(SPEC, PROMPT));
        for text in ["", "{", "[]", "null", "{}", "{\"version\": 99}", "\u{0}"] {
            assert!(check_stale(&compilation, text, "plan.json", "swarmc").is_err(), "{text}");
        }
    }
}
