//! SW202: a step reads a value whose own step may have been skipped, or may have failed.
//!
//! A read is right when it has a default or a guard, when the needs of its step prove the value (nearly always), or
//! when no route through the pipeline's conditions reaches it without the value. Otherwise the diagnostic shows such a
//! route. Where the conditions are too large to follow, the check warns once for the pipeline.

use swarmc_plan::{StepKind, When};

use crate::check::given_values::list_values;
use crate::check::upstream::read_as_previous;
use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flow::{Answer, Lazy, Missing, Proofs, is_about, is_assumed};
use crate::model::{Body, Model, ParamRef, Pipeline, Read, Step, find_siblings};
use crate::source::Span;
use crate::stats::Outputs;
use crate::template::{Fact, Kind, Root, Status};

/// Reports the values that may be missing; says how many are read, and how many of them are certainly there.
pub(super) fn check<'a>(
    model: &Model<'a>,
    pipeline: &Pipeline<'a>,
    flow: &mut Lazy<'_, 'a>,
    diagnostics: &mut Diagnostics,
) -> Outputs {
    let mut outputs = Outputs::default();
    let mut proofs = Proofs::new(pipeline);
    let mut open: Vec<(usize, usize, &Read)> = Vec::new();
    for (index, step) in pipeline.steps.iter().enumerate() {
        diagnostics.set_home(Some(step.ast.name.span));
        let needed = list_needed(model, step);
        for (position, read) in step.reads.iter().enumerate() {
            // Where it is all of a value, a directive without one is `null` and no text.
            let renders = read.directive && !needed.contains(&read.whole);
            // `order_steps` gathers them in the order of the steps and their reads, so a search finds one.
            let back =
                pipeline.order.back.binary_search_by_key(&(index, position), |back| (back.step, back.read)).is_ok();
            let read_before = read_as_previous(pipeline, index, read) && !renders;
            let is_value = matches!(read.root, Root::Output | Root::Previous | Root::Input)
                && read.step().is_some_and(|target| target != index || read.root == Root::Previous);
            outputs.read += usize::from(is_value);
            if read.guards_step() || read.optional || (back && !read_before) {
                outputs.guarded += usize::from(is_value);
                continue;
            }
            let problem = match (read.root, read.step()) {
                (Root::Param | Root::Stdin, _) => {
                    let asked = step.when.as_ref().filter(|_| !read.in_when).is_some_and(|when| {
                        let asks = |fact: &Fact| matches!(fact, Fact::Defined { root, .. } if *root == read.root);
                        when.expression.proves.iter().any(|fact| asks(fact) && is_about(fact, read))
                    });
                    if asked || renders { None } else { not_given(model, Some(pipeline), read) }
                }
                (Root::Output | Root::Previous | Root::Input, Some(target))
                    if has_no_output(&pipeline.steps[target]) =>
                {
                    Some(no_output(pipeline, read, target))
                }
                // It renders nothing where there is no round before.
                (Root::Previous, Some(_)) if renders => {
                    outputs.guarded += 1;
                    continue;
                }
                (Root::Previous, Some(target)) if !is_assumed(read, &pipeline.steps[target]) => {
                    let later = has_rounds(step, read, &pipeline.steps[target])
                        && (is_later(step, read) || flow.get().starts_later(index, read.in_when));
                    let there = match later {
                        true => flow.get().leaves_round_before(index, read.in_when, target),
                        false => Answer::No,
                    };
                    match there {
                        Answer::Yes => None,
                        Answer::No => round_before(step, read, &pipeline.steps[target], later),
                        Answer::Unknown => {
                            open.push((index, target, read));
                            continue;
                        }
                    }
                }
                (Root::Output | Root::Log, Some(target)) if back => {
                    round_before(step, read, &pipeline.steps[target], false)
                }
                (Root::Output | Root::Input, Some(target)) if target != index => {
                    let producer = &pipeline.steps[target];
                    let there = producer.ast.output.default.is_some()
                        || is_assumed(read, producer)
                        || proofs.is_proved(index, target, read);
                    let found = if there { Missing::No } else { flow.get().find_missing(index, target, read) };
                    if matches!(found, Missing::Unknown) {
                        open.push((index, target, read));
                        continue;
                    }
                    report_missing(pipeline, index, read, target, found)
                }
                (Root::Log, Some(target)) if !pipeline.steps[target].has_log() => {
                    Some(no_log(read, &pipeline.steps[target]))
                }
                // As a directive it renders nothing.
                (Root::Exit | Root::Error | Root::Log, Some(target)) if !renders => {
                    let there = is_assumed(read, &pipeline.steps[target]) || proofs.is_proved(index, target, read);
                    let found = match there {
                        true => Missing::No,
                        // What it reads is the attempt before.
                        false if target == index => Missing::When { ends: Vec::new(), hops: Vec::new() },
                        false => flow.get().find_missing(index, target, read),
                    };
                    if matches!(found, Missing::Unknown) {
                        open.push((index, target, read));
                        continue;
                    }
                    report_missing(pipeline, index, read, target, found)
                }
                _ => None,
            };
            outputs.present += usize::from(is_value && problem.is_none());
            diagnostics.extend(problem);
        }
    }
    if let [(index, target, read), others @ ..] = open.as_slice() {
        diagnostics.set_home(Some(pipeline.steps[*index].ast.name.span));
        diagnostics.push(too_large(pipeline, *index, *target, read, others.len()));
    }
    diagnostics.set_home(None);
    let of_loops = pipeline.steps.iter().flat_map(|step| step.body.until_reads());
    // An `until` that reads what is missing does not hold; one that reads what is never there never does.
    for read in pipeline.until_reads.iter().chain(of_loops).filter(|read| !read.guarded) {
        let target = read.step().filter(|&target| has_no_output(&pipeline.steps[target]));
        if let (Root::Output | Root::Previous, Some(target)) = (read.root, target) {
            diagnostics.push(no_output(pipeline, read, target));
        }
    }
    // In the `env` of a pipeline nothing is known of any step.
    for read in pipeline.env_reads.iter().filter(|read| !read.directive) {
        diagnostics.extend(not_given(model, Some(pipeline), read));
    }
    outputs
}

/// What stands outside of pipelines: in the `env` of a provider or of a tool server, in swarms, and in context packs.
pub(super) fn check_outside(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let providers = model.providers.iter().flat_map(|provider| &provider.env_reads);
    let servers = model.servers.iter().flat_map(|server| &server.env_reads);
    let swarms = model.swarms.iter().flat_map(|swarm| &swarm.reads);
    let packs = model.packs.iter().flat_map(|pack| &pack.reads);
    for read in providers.chain(servers).chain(swarms).chain(packs).filter(|read| !read.directive) {
        diagnostics.extend(not_given(model, None, read));
    }
}

fn report_missing(
    pipeline: &Pipeline<'_>,
    index: usize,
    read: &Read,
    target: usize,
    found: Missing,
) -> Option<Diagnostic> {
    let (lacking, hops) = match found {
        Missing::No | Missing::Unknown => return None,
        Missing::When { ends, hops } => (ends, hops),
    };
    let step = &pipeline.steps[index];
    let producer = &pipeline.steps[target];
    let (reader, name) = (step.name(), producer.name());
    let plain = name.replace('-', "_");
    let what = describe_read(read);
    let word = Kind::Read(read.root).as_str();
    let ask = format!("ask first: `{word}.{plain} is defined and …`");
    if std::ptr::eq(step, producer) {
        return Some(
            Diagnostic::new(Code::OutputMayBeSkipped, format!("the first attempt of `{name}` has no {what} before it"))
                .label(read.span, "missing in the first attempt")
                .help(match read.directive {
                    true => propose_default(&format!("{word}.{plain}")),
                    false => format!("{ask}, or write `<<{word}:{name}>>`, which then renders nothing"),
                }),
        );
    }
    if read.root == Root::Exit && !producer.has_exit() {
        return Some(
            Diagnostic::new(Code::OutputMayBeSkipped, format!("`{name}` starts no process, and has no exit code"))
                .label(read.span, "never there")
                .label(producer.ast.name.span, "computes its text")
                .help(format!("ask how it ended: `status.{plain} == \"succeeded\"`")),
        );
    }
    let (holder, needed) = find_siblings(&pipeline.steps, index, target).unwrap_or((index, target));
    let (holder, waits_for) = (&pipeline.steps[holder], pipeline.steps[needed].name());
    let need = holder.needs.iter().find(|need| need.step == needed);
    let empty = matches!(producer.body, Body::Call { .. }) && lacking.contains(&Status::Succeeded);
    let lacking: Vec<&str> = lacking
        .into_iter()
        .map(|status| match status {
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Skipped => "been skipped",
        })
        .collect();
    let how = match empty {
        true => "can have ended without a value".to_owned(),
        false => format!("can have {}", lacking.join(" or ")),
    };
    let message = format!("`{reader}` reads the {what} of `{name}`, which {how}");
    let diagnostic = Diagnostic::new(Code::OutputMayBeSkipped, message).label(read.span, "may be missing here");
    let diagnostic = match &producer.body {
        Body::Call { name, .. } if empty => {
            diagnostic.label(name.span, "succeeds also where none of the steps of its `result` has a value")
        }
        _ => diagnostic,
    };
    let diagnostic = match need {
        Some(need) if need.declared => {
            let starts = holder.name();
            let route = match (holder.is_binding(need), need.when) {
                (false, _) => format!("`{starts}` runs also when only another of these held"),
                (true, When::Always) => format!("`{starts}` runs however `{waits_for}` ends"),
                (true, When::Failure) => format!("`{starts}` runs when `{waits_for}` failed"),
                (true, When::Success) => format!("`{starts}` runs when `{waits_for}` succeeded"),
                (true, When::Any) => format!("`{starts}` runs also when `{waits_for}` failed"),
            };
            diagnostic.label(need.span, route)
        }
        Some(need) if need.span != read.span && need.when != When::Success => {
            let starts = holder.name();
            let text = format!("because of this, `{starts}` runs also when `{waits_for}` did not succeed");
            diagnostic.label(need.span, text)
        }
        _ => diagnostic,
    };
    let diagnostic = hops.into_iter().fold(diagnostic, |diagnostic, hop| diagnostic.label(hop.span, hop.text));
    let field = read.fields.iter().map(|field| format!(".{}", field.value)).collect::<String>();
    Some(diagnostic.help(match (read.root, read.directive) {
        // A condition holds no directives.
        (Root::Exit | Root::Error | Root::Log, _) if read.in_when => ask,
        (Root::Exit | Root::Error | Root::Log, true) => propose_default(&format!("{word}.{plain}")),
        (Root::Exit | Root::Error | Root::Log, _) => {
            format!("{ask}, or write `<<{word}:{name}>>`, which renders nothing where there is none")
        }
        (Root::Input, _) => {
            let port = read.name.as_deref().unwrap_or_default();
            match read.directive {
                true => format!(
                    "say what to read instead: `<<input:{port}{field} | default:\"…\">>`, or `output default=\"…\"` in `{name}`"
                ),
                false => format!("ask first: `input.{} is defined and …`, or `output default=\"…\"` in `{name}`", port.replace('-', "_")),
            }
        }
        (_, true) => format!(
            "say what to read instead: `<<output:{name}{field} | default:\"…\">>`, or `output default=\"…\"` in `{name}`"
        ),
        (_, false) => format!("{ask}, or `output default=\"…\"` in `{name}`"),
    }))
}

/// The log of a step that is no command.
fn no_log(read: &Read, producer: &Step<'_>) -> Diagnostic {
    let name = producer.name();
    let (what, help) = match (&producer.list, &producer.body) {
        (Some(_), _) => (
            "runs for each item, and has no log of its own",
            format!("`error.{}` lists the items that failed", name.replace('-', "_")),
        ),
        (None, Body::Prompt(_)) => ("is an agent's, and has no log", format!("read its answer: `<<output:{name}>>`")),
        (None, _) => ("runs no command, and has no log", format!("read what it puts out: `<<output:{name}>>`")),
    };
    Diagnostic::new(Code::OutputMayBeSkipped, format!("`{name}` {what}"))
        .label(read.span, "never there")
        .label(producer.ast.name.span, "declared here")
        .help(help)
}

fn describe_read(read: &Read) -> &'static str {
    match read.root {
        Root::Exit => "exit code",
        Root::Error => "error",
        Root::Log => "log",
        _ => "output",
    }
}

/// A read before which there are more conditions than can be followed, and how many more such reads there are.
fn too_large(pipeline: &Pipeline<'_>, index: usize, target: usize, read: &Read, others: usize) -> Diagnostic {
    let (reader, name) = (pipeline.steps[index].name(), pipeline.steps[target].name());
    let others = match others {
        0 => String::new(),
        1 => "; the same holds for another value".to_owned(),
        _ => format!("; the same holds for {others} other values"),
    };
    let what = describe_read(read);
    let message =
        format!("too many conditions lead to `{reader}` to tell whether the {what} of `{name}` is there{others}");
    let diagnostic = Diagnostic::new(Code::OutputMayBeSkipped, message)
        .label(read.span, "not known to be there")
        .help("give it a default where it is read, or put some of the tasks before it into a pipeline of their own, for a `call`");
    Diagnostic { severity: Some(Severity::Warning), ..diagnostic }
}

/// A read of a value that the caller of the run may leave out.
fn not_given(model: &Model<'_>, pipeline: Option<&Pipeline<'_>>, read: &Read) -> Option<Diagnostic> {
    if read.guarded {
        return None;
    }
    if read.root == Root::Stdin {
        let diagnostic =
            Diagnostic::new(Code::OutputMayBeSkipped, "`stdin` is missing when nothing is piped into `swarmc run`")
                .label(read.span, "may be missing here");
        return Some(match read.directive {
            true => diagnostic.help(propose_default("stdin")),
            false => diagnostic
                .help("write `stdin | default(\"\")`, or `<<stdin>>`, which then renders nothing")
                .give_default(read.whole),
        });
    }
    let name = read.name.as_deref().filter(|_| read.root == Root::Param)?;
    let param = match read.param()? {
        ParamRef::Pipeline(index) => &pipeline?.ast.params[index],
        ParamRef::Spec(index) => &model.spec.params[index],
    };
    if !param.kind.optional || param.default.is_some() {
        return None;
    }
    let plain = name.replace('-', "_");
    let diagnostic =
        Diagnostic::new(Code::OutputMayBeSkipped, format!("parameter `{}` may be left out", param.name.value))
            .label(read.span, "may be missing here")
            .label(param.name.span, "optional, and without a default");
    Some(match read.directive {
        true => diagnostic.help(propose_default(&format!("param.{plain}")) + ", or declare it with `default=`"),
        false => diagnostic
            .help(format!(
                "ask first: `param.{plain} is defined and …`, or write `param.{plain} | default(\"\")`, or declare it with `default=`"
            ))
            .give_default(read.whole),
    })
}

/// What to write in the place of a directive that is all of a value, and may be missing.
fn propose_default(path: &str) -> String {
    format!("a value is needed here: write `{{{{ {path} | default(…) }}}}`, with one of its type")
}

/// The directives of a step that are all of a value where none may be missing. They read as expressions do.
fn list_needed(model: &Model<'_>, step: &Step<'_>) -> Vec<Span> {
    let needed = list_values(model, step).into_iter().filter(|(_, nullable)| !nullable);
    needed.filter_map(|(text, _)| Some(text.passage.span(text.template.as_directive()?.range.clone()))).collect()
}

fn has_no_output(step: &Step<'_>) -> bool {
    step.kind().is_some_and(|kind| !kind.has_output())
}

/// The output of a step that has none, such as a loop.
fn no_output(pipeline: &Pipeline<'_>, read: &Read, target: usize) -> Diagnostic {
    let name = pipeline.steps[target].name();
    let kind = pipeline.steps[target].kind();
    let what = kind.map_or("a step", StepKind::noun);
    let message = format!("`{name}` is {what}, and has no output");
    if !kind.is_some_and(StepKind::is_container) {
        return Diagnostic::new(Code::OutputMayBeSkipped, message)
            .label(read.span, "never there")
            .label(pipeline.steps[target].ast.name.span, "puts nothing out")
            .help(format!("wait for it with `depends-on {name}`"));
    }
    let inside = pipeline.steps.iter().rfind(|step| step.within == Some(target) && !has_no_output(step));
    let inside = inside.map_or("STEP", |step| step.name());
    Diagnostic::new(Code::OutputMayBeSkipped, message)
        .label(read.span, "never there")
        .label(pipeline.steps[target].ast.name.span, "the steps inside have outputs of their own")
        .help(match (read.root, read.directive) {
            (Root::Input, _) => {
                format!("take one of them: `from={inside}` is its value in the last round")
            }
            (root, true) => {
                format!("read one of them: `<<{}:{inside}>>` is its value in the last round", Kind::Read(root).as_str())
            }
            (root, false) => {
                let plain = inside.replace('-', "_");
                format!("read one of them: `{}.{plain}` is its value in the last round", root.as_str())
            }
        })
}

/// Whether both steps have rounds in common where the read is made. An item has no rounds.
fn has_rounds(step: &Step<'_>, read: &Read, target: &Step<'_>) -> bool {
    let within = target.within == step.within || step.within.is_none();
    within && (read.in_when || step.list.is_none())
}

/// Whether a round certainly came before the one that the read is made in.
fn is_later(step: &Step<'_>, read: &Read) -> bool {
    let by_when = step.when.as_ref().filter(|_| !read.in_when).map(|when| when.expression.proves.as_slice());
    let mut facts = read.assumes.iter().chain(by_when.unwrap_or_default());
    facts.any(|fact| *fact == Fact::Repeated)
}

/// A value of the round before, where there may be none: in the first round, or where its step left none.
fn round_before(step: &Step<'_>, read: &Read, producer: &Step<'_>, later: bool) -> Option<Diagnostic> {
    let root = if read.root == Root::Log { Root::Log } else { Root::Previous };
    let word = Kind::Read(root).as_str();
    let asks =
        |fact: &Fact| matches!(fact, Fact::Defined { root: asked, .. } if *asked == root) && is_about(fact, read);
    if !read.in_when && step.when.as_ref().is_some_and(|when| when.expression.proves.iter().any(asks)) {
        return None;
    }
    let (written, name) = (producer.name(), producer.name().replace('-', "_"));
    let diagnostic = match later {
        true => Diagnostic::new(
            Code::OutputMayBeSkipped,
            format!("`{word}.{name}` is missing where `{written}` put out nothing in the round before"),
        )
        .label(read.span, "may be missing here")
        .label(producer.ast.name.span, "can be skipped, or fail, in a round before the last"),
        false => Diagnostic::new(Code::OutputMayBeSkipped, format!("`{word}.{name}` is missing in the first round"))
            .label(read.span, "there is no round before the first"),
    };
    let fields: String = read.fields.iter().map(|field| format!(".{}", field.value.replace('-', "_"))).collect();
    Some(match (read.in_when, read.directive) {
        (true, _) => diagnostic.help(format!("ask first: `{word}.{name} is defined and …`")),
        (false, true) => diagnostic.help(propose_default(&format!("{word}.{name}{fields}"))),
        (false, false) => {
            let help =
                format!("ask first: `{word}.{name} is defined`, or write `{word}.{name}{fields} | default(\"\")`");
            diagnostic.help(help).give_default(read.whole)
        }
    })
}
