//! Specs of many tasks whose conditions hang together in every way that we could think of.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The files of a workspace; the spec is `flow.kdl`.
pub(crate) type Workspace = BTreeMap<String, String>;

/// What each shape is called, and the spec of it with so many tasks.
pub(crate) fn shapes(tasks: usize) -> Vec<(&'static str, Workspace)> {
    vec![
        ("chains", chains(tasks)),
        ("chains, reviews first", chains_of_reviews(tasks)),
        ("chains from one task", chains_of_one(tasks)),
        ("one long chain", long_chain(tasks)),
        ("chains side by side", ladder(tasks)),
        ("tree that opens", opening_tree(tasks)),
        ("tree that closes", closing_tree(tasks)),
        ("grid", grid(tasks)),
        ("cliques", cliques(tasks, false)),
        ("cliques that ask first", cliques(tasks, true)),
        ("one for all", hub(tasks)),
        ("any order", random(tasks)),
        ("loops", loops(tasks)),
        ("lists", lists(tasks)),
        ("routes", routes(tasks)),
        ("parameters", parameters(tasks)),
        ("ends", ends(tasks)),
        ("writers", writers(tasks)),
        ("rounds", rounds(tasks)),
        ("edges", edges(tasks)),
        ("files", files(tasks)),
        ("calls", calls(tasks)),
        ("all wrong", wrong(tasks)),
    ]
}

const HEAD: &str = "workflow flow\ntype Verdict { approved bool; kind enum bug feature question }\n\
                    provider local { exec cat }\nagent coder provider=local\n";

fn spec(tasks: impl IntoIterator<Item = String>) -> Workspace {
    whole(&format!("pipeline build {{\n    budget calls=100000\n{}}}\n", tasks.into_iter().collect::<String>()))
}

fn whole(pipelines: &str) -> Workspace {
    BTreeMap::from([("flow.kdl".to_owned(), format!("{HEAD}{pipelines}"))])
}

/// A task that says whether something is approved.
fn judge(name: &str, when: &str) -> String {
    let when = if when.is_empty() { String::new() } else { format!("; when \"{when}\"") };
    format!("    task {name} {{ prompt \"Do {name}.\"; output Verdict{when} }}\n")
}

/// Each task of a chain goes on when the one before it, or its own review, is fine: 25 in a chain.
pub(crate) fn chains(tasks: usize) -> Workspace {
    spec((0..tasks / 2).map(|task| judge(&format!("r{task}"), "") + &reviewed(task)))
}

/// The same, where every chain begins with one task that all read.
pub(crate) fn chains_of_one(tasks: usize) -> Workspace {
    let task = |task: usize| match task % 25 {
        0 => judge(&format!("t{task}"), "output.start.approved"),
        _ => {
            let when = format!("output.t{}.approved or output.r{task}.approved or output.start.approved", task - 1);
            judge(&format!("t{task}"), &when)
        }
    };
    spec(std::iter::once(judge("start", "")).chain((0..tasks / 2).map(|at| judge(&format!("r{at}"), "") + &task(at))))
}

/// The same, all reviews before all tasks.
pub(crate) fn chains_of_reviews(tasks: usize) -> Workspace {
    let reviews = (0..tasks / 2).map(|task| judge(&format!("r{task}"), ""));
    spec(reviews.chain((0..tasks / 2).map(reviewed)))
}

fn reviewed(task: usize) -> String {
    let when = match task % 25 {
        0 => String::new(),
        _ => format!("output.t{}.approved or output.r{task}.approved", task - 1),
    };
    judge(&format!("t{task}"), &when)
}

fn long_chain(tasks: usize) -> Workspace {
    let when = |task: usize| match task {
        0 => String::new(),
        1 => "output.t0.approved".to_owned(),
        _ => format!("output.t{}.approved or not output.t{}.approved", task - 1, task - 2),
    };
    spec((0..tasks).map(|task| judge(&format!("t{task}"), &when(task))))
}

/// Six chains, each of which looks at the next one.
fn ladder(tasks: usize) -> Workspace {
    let when = |task: usize| match task < 6 {
        true => String::new(),
        false => format!(
            "output.t{}.approved and (output.t{}.kind == 'bug' or not output.t{}.approved)",
            task - 6,
            task / 6 * 6 - 6 + (task + 1) % 6,
            task / 6 * 6 - 6 + (task + 2) % 6
        ),
    };
    spec((0..tasks).map(|task| judge(&format!("t{task}"), &when(task))))
}

fn opening_tree(tasks: usize) -> Workspace {
    let when = |task: usize| match task {
        0 => String::new(),
        _ if task.is_multiple_of(2) => format!("output.t{}.approved", (task - 1) / 2),
        _ => format!("not output.t{}.approved", (task - 1) / 2),
    };
    spec((0..tasks).map(|task| judge(&format!("t{task}"), &when(task))))
}

fn closing_tree(tasks: usize) -> Workspace {
    let when = |task: usize| match 2 * task + 2 < tasks {
        true => {
            let (left, right) = (2 * task + 1, 2 * task + 2);
            format!("status.t{left} == 'succeeded' or (status.t{right} == 'failed' and exit.t{right} == 2)")
        }
        false => String::new(),
    };
    let task = |task: usize| {
        let (when, needs) = match when(task) {
            when if when.is_empty() => (when, String::new()),
            when => (
                format!("; when \"{when}\""),
                format!("; depends-on t{} t{} when=any; join any", 2 * task + 1, 2 * task + 2),
            ),
        };
        format!("    task t{task} {{ run make t{task}{needs}{when} }}\n")
    };
    spec((0..tasks).map(task))
}

/// Each task looks at the one above it and the one to its left.
pub(crate) fn grid(tasks: usize) -> Workspace {
    let width = (1..).take_while(|width| width * width <= tasks).last().unwrap_or(1);
    let when = |task: usize| match (task / width, task % width) {
        (0, 0) => String::new(),
        (0, _) => format!("output.t{}.approved", task - 1),
        (_, 0) => format!("output.t{}.approved", task - width),
        _ => format!("output.t{}.approved or output.t{}.kind == 'bug'", task - 1, task - width),
    };
    spec((0..width * width).map(|task| judge(&format!("t{task}"), &when(task))))
}

/// Twenty tasks of which each looks at all before it; `asks` whether they are there at all.
pub(crate) fn cliques(tasks: usize, asks: bool) -> Workspace {
    let term = |task: usize, other: usize| match (asks, (task * 7 + other * 3) % 4) {
        (true, 0) => format!("(output.t{other} is defined and output.t{other}.approved)"),
        (true, 1) => format!("(output.t{other} is defined and not output.t{other}.approved)"),
        (true, _) => format!("(output.t{other} is defined and output.t{other}.kind == 'bug')"),
        (false, 0) => format!("output.t{other}.approved"),
        (false, 1) => format!("not output.t{other}.approved"),
        (false, _) => format!("output.t{other}.kind == 'bug'"),
    };
    let when = |task: usize| {
        let first = task / 20 * 20;
        (first..task).fold(String::new(), |all, other| match (all.is_empty(), (task + other) % 3) {
            (true, _) => term(task, other),
            (_, 0) => format!("({all}) and {}", term(task, other)),
            _ => format!("{all} or {}", term(task, other)),
        })
    };
    spec((0..tasks).map(|task| judge(&format!("t{task}"), &when(task))))
}

/// All look at one, and one at all.
fn hub(tasks: usize) -> Workspace {
    let kinds = ["bug", "feature", "question"];
    let each =
        (0..tasks).map(|task| judge(&format!("t{task}"), &format!("output.first.kind == '{}'", kinds[task % 3])));
    let all =
        (0..tasks).map(|task| format!("output.t{task}.approved | default(false)")).collect::<Vec<_>>().join(" or ");
    let names = (0..tasks).map(|task| format!(" t{task}")).collect::<String>();
    let last = format!("    task last {{ depends-on{names} when=always; when \"{all}\"; run make last }}\n");
    spec(std::iter::once(judge("first", "")).chain(each).chain([last]))
}

/// Each looks at three before it, whichever they are.
pub(crate) fn random(tasks: usize) -> Workspace {
    let mut state = 1_u64;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below as u64) as usize
    };
    let when = move |task: usize| {
        if task < 3 {
            return String::new();
        }
        let near = |task: usize, back: usize| task - 1 - back.min(task - 1);
        let (a, b, c) = (near(task, next(20)), near(task, next(60)), near(task, next(task)));
        match next(3) {
            0 => format!("output.t{a}.approved and (output.t{b}.approved or not output.t{c}.approved)"),
            1 => format!("output.t{a}.kind == 'bug' or output.t{b}.kind in ['feature', 'question']"),
            _ => format!("not (output.t{a}.approved and output.t{c}.kind != 'bug')"),
        }
    };
    let mut when = when;
    spec((0..tasks).map(move |task| judge(&format!("t{task}"), &when(task))))
}

/// Loops of five, each of which looks at the one before it.
fn loops(tasks: usize) -> Workspace {
    let rounds = (0..tasks / 6).map(|number| {
        let when = match number {
            0 => String::new(),
            _ => format!("        when \"output.l{0}t4.approved or output.l{0}t3.approved\"\n", number - 1),
        };
        let inside: String = (0..5)
            .map(|task| {
                let when = match task {
                    0 => String::new(),
                    _ => format!("status.l{number}t{} == 'succeeded' or output.l{number}t0.approved", task - 1),
                };
                let needs = if task == 0 { String::new() } else { format!("; depends-on l{number}t{} when=any", task - 1) };
                let when = if when.is_empty() { when } else { format!("; when \"{when}\"") };
                format!("        task l{number}t{task} {{ prompt \"Do.\"; output Verdict{needs}{when} }}\n")
            })
            .collect();
        format!(
            "    loop l{number} max=3 exhausted=success {{\n{when}{inside}        until \"output.l{number}t4.approved\"\n    }}\n"
        )
    });
    spec(rounds)
}

/// Each goes over what the one before it found.
fn lists(tasks: usize) -> Workspace {
    let task = |task: usize| match task % 50 {
        0 => format!("    task t{task} {{ prompt \"List.\"; output \"list<string>\" }}\n"),
        place => {
            let (before, join) = (task - 1, ["any", "settled", "all"][task % 3]);
            let when = if place == 1 {
                String::new()
            } else {
                format!("; when \"output.t{before} | length > 0 or output.t{} | length > 2\"", task - 2)
            };
            format!(
                "    task t{task} {{ for-each \"output.t{before}\" join={join}; prompt \"Do <<item>>.\"; output max=\"1KB\"{when} }}\n"
            )
        }
    };
    spec((0..tasks).map(task))
}

/// Gates, and what is done for each answer.
fn routes(tasks: usize) -> Workspace {
    let group = |number: usize| {
        let needs = if number == 0 {
            String::new()
        } else {
            format!("; depends-on yes{0} no{0} more{0}; join any", number - 1)
        };
        format!(
            "    task judge{number} {{ prompt \"Judge.\"; output Verdict{needs} }}\n    \
             gate ask{number} {{ message \"How?\"; options yes no more; headless yes; when \"output.judge{number}.approved\" }}\n    \
             task yes{number} {{ when \"output.ask{number}.choice == 'yes' and output.judge{number}.kind == 'bug'\"; run make yes }}\n    \
             task no{number} {{ when \"output.ask{number}.choice == 'no' or output.judge{number}.kind != 'bug'\"; run make no }}\n    \
             task more{number} {{ when \"output.ask{number}.choice == 'more'\"; run make more }}\n"
        )
    };
    spec((0..tasks / 5).map(group))
}

/// A parameter for each, and for each pair of them.
fn parameters(tasks: usize) -> Workspace {
    let params: String = (0..tasks).map(|task| format!("param p{task} type=bool default=#false\n")).collect();
    let task = |task: usize| {
        let needs = if task == 0 { String::new() } else { format!("; depends-on t{} when=any", task - 1) };
        format!(
            "    task t{task} {{ run make t{task}{needs}; when \"param.p{task} or not param.p{}\" }}\n",
            (task * 37 + 11) % tasks
        )
    };
    let tasks: String = (0..tasks).map(task).collect();
    whole(&format!("{params}pipeline build {{\n{tasks}}}\n"))
}

/// Each asks how the two before it ended, and reads what may not be there.
fn ends(tasks: usize) -> Workspace {
    let task = |task: usize| match task {
        0 | 1 => format!("    task t{task} {{ run make t{task}; output max=\"1KB\" }}\n"),
        _ => {
            let (one, two) = (task - 1, task - 2);
            format!(
                "    task t{task} {{ depends-on t{one} t{two} when=always; \
                 when \"status.t{one} == 'failed' or status.t{two} == 'succeeded'\"; run cat; output max=\"1KB\"; \
                 stdin #\"{{% if status.t{one} == 'failed' %}}{{{{ exit.t{one} }}}}{{% else %}}<<output:t{two}>>{{% endif %}}\"# }}\n"
            )
        }
    };
    spec((0..tasks).map(task))
}

/// All write one file, in cases that exclude each other and in others.
fn writers(tasks: usize) -> Workspace {
    let kinds = ["bug", "feature", "question"];
    let task = |task: usize| {
        let when = match task % 10 {
            0 => format!("output.first.kind == '{}'", kinds[task % 3]),
            _ => format!("output.t{}.approved", task - 1),
        };
        format!(
            "    task t{task} {{ prompt \"Do.\"; output Verdict; writes \"out/{}.md\" \"src/**\"; when \"{when}\" }}\n",
            task % 100
        )
    };
    spec(std::iter::once(judge("first", "")).chain((0..tasks).map(task)))
}

/// Rounds in which each looks at the round before.
fn rounds(tasks: usize) -> Workspace {
    let task = |task: usize| {
        let when = match task {
            0 => String::new(),
            _ => format!("; when \"output.t{}.approved or iteration > 1\"", task - 1),
        };
        format!(
            "    task t{task} {{ prompt \"{{% if iteration > 1 %}}{{{{ previous.t{}.kind }}}}{{% endif %}}\"; output Verdict{when} }}\n",
            (task * 7 + 3) % tasks
        )
    };
    let tasks: String = (0..tasks).map(task).collect();
    whole(&format!("pipeline build {{\n    iterations 3 exhausted=success\n{tasks}}}\n"))
}

/// Tasks that hand over to each other.
fn edges(tasks: usize) -> Workspace {
    let task = |task: usize| {
        let when = if task < 2 { String::new() } else { format!("output.t{}.approved", task - 2) };
        judge(&format!("t{task}"), &when)
    };
    let edge = |task: usize| format!("        t{task} -> t{}\n", (task * 13 + 7) % tasks);
    let all: String = (0..tasks).map(task).collect();
    let edges: String = (0..tasks).filter(|task| (task * 13 + 7) % tasks != *task).map(edge).collect();
    spec([format!("{all}    edges {{\n{edges}    }}\n")])
}

/// Each writes a folder, and reads what one long before it wrote.
fn files(tasks: usize) -> Workspace {
    let task = |task: usize| {
        let when = if task == 0 { String::new() } else { format!("; when \"output.t{}.approved\"", task - 1) };
        let read = if task == 0 { String::new() } else { format!(" <<file:out/{}/notes.md>>", task / 2) };
        format!(
            "    task t{task} {{ prompt \"Do.{read}\"; output Verdict; writes \"out/{task}/**\" \"log/*/{task}.md\"{when} }}\n"
        )
    };
    spec((0..tasks).map(task))
}

/// Each pipeline calls the next one twice.
fn calls(tasks: usize) -> Workspace {
    let count = (tasks / 4).max(2);
    let pipeline = |number: usize| {
        let inside = match number + 1 < count {
            true => format!(
                "    task a {{ call p{0} }}\n    task b {{ when \"output.c.approved\"; call p{0} }}\n",
                number + 1
            ),
            false => "    task a { run make a; output max=\"1KB\" }\n    task b { run make b; output max=\"1KB\" }\n"
                .to_owned(),
        };
        format!(
            "pipeline p{number} {{\n    result a b\n{}{inside}    task d {{ value \"<<output:a>>\" }}\n}}\n",
            judge("c", "")
        )
    };
    whole(&(0..count).map(pipeline).collect::<String>())
}

/// Nothing is right: names, types, conditions, values that are missing.
fn wrong(tasks: usize) -> Workspace {
    let task = |task: usize| match task % 5 {
        0 => judge(&format!("t{task}"), &format!("output.t{}.aproved", task.saturating_sub(1))),
        1 => format!(
            "    task t{task} {{ prompt \"<<output:t{}x>> <<output:t{}.kinds>>\"; when \"status.t{0} == 'failed' and output.t{0}.approved\" }}\n",
            task - 1,
            task - 1
        ),
        2 => format!(
            "    task t{task} {{ depends-on t{} when=always; prompt \"<<output:t{}>> {{{{ output.t{1}.approved }}}}\" }}\n",
            task - 1,
            task - 2
        ),
        3 => format!("    task t{task} {{ depends-on t{} whn=always; promt \"x\"; timeout \"many\" }}\n", task - 1),
        _ => {
            judge(&format!("t{task}"), &format!("output.t{0}.kind == 'none' and output.t{0}.kind != 'none'", task - 4))
        }
    };
    spec((0..tasks).map(task))
}

/// A workspace of as many tasks as prompts, each of which reads the first and one before it.
pub(crate) fn prompts(tasks: usize) -> Workspace {
    let mut files = Workspace::new();
    let mut all = judge("start", "");
    for task in 0..tasks {
        let before = if task == 0 { "start".to_owned() } else { format!("t{}", task - 1) };
        let prose = "Say what you find, and where it stands.\n".repeat(20);
        let prompt = format!("# Task {task}\n\nGo on from <<output:start>> and <<output:{before}>>\n\n{prose}");
        files.insert(format!("prompts/p{task}.md"), prompt);
        let _ = writeln!(
            all,
            "    task t{task} {{ prompt file=\"prompts/p{task}.md\"; output Verdict; when \"output.start.approved or output.{before}.approved\" }}"
        );
    }
    files.extend(spec([all]));
    files
}
