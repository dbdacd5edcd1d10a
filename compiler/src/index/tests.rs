//! Where names stand, in specs that use each kind of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Index, Role, SymbolKind};
use crate::settings::Settings;
use crate::source::Sources;

fn analyze(files: &[(&str, &str)]) -> (Sources, Index) {
    let texts: BTreeMap<String, String> =
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let (mut trees, cache, cancel) = Default::default();
    let settings = Settings::default();
    let analysis = crate::analyze(&mut trees, files[0].0, &texts, &settings, &cache, &cancel);
    let analysis = analysis.expect("it is not cancelled");
    let (index, told) = (analysis.build_index(), analysis.diagnostics.clone());
    let compilation = analysis.finish().expect("it is not cancelled");
    assert_eq!(told, compilation.diagnostics);
    (compilation.sources, index)
}

/// Every name with the places where it stands: `kind name: definition, references`, places as `line:column`.
fn listed(sources: &Sources, index: &Index) -> String {
    let mut list = String::new();
    for (id, symbol) in index.list_symbols() {
        let _ = write!(list, "{} {}:", symbol.kind.as_str(), symbol.name);
        for place in index.occurrences_of(id) {
            let at = sources.position(place.span.file, place.span.start);
            let mark = match place.role {
                Role::Definition => "=",
                Role::Reference => "",
                Role::Directive => "<",
                Role::Expression => "{",
            };
            let file = match sources.name(place.span.file) {
                "a.kdl" => "",
                name => &format!("{name} "),
            };
            assert!(
                matches!(symbol.kind, SymbolKind::Port | SymbolKind::Alias)
                    || sources.slice(place.span).replace('_', "-").ends_with(&symbol.name.replace('_', "-")),
                "{} at {:?}",
                symbol.name,
                sources.slice(place.span)
            );
            let _ = write!(list, " {mark}{file}{}:{}", at.line, at.column);
        }
        list.push('\n');
    }
    list
}

#[test]
fn names_are_found_wherever_they_stand() {
    let spec = r#"
import "lib.kdl" as=lib
workflow w { default main }
param goal type=string
secret key env=KEY
type Verdict { ok bool; points list<Point> }
type Point { text string }
provider p { exec cat; env key }
tiers { small p }
agent a provider=p { fallback b }
agent b tier=small
prompt shared file="shared.md"
task plan agent=a { prompt ref=shared; output Verdict }
pipeline main {
    use plan
    param depth type=int default=1
    task build agent=b {
        input design from=plan
        prompt "<<input:design>> <<param:goal>> {{ output.plan.points[0].text }} <<output:plan.ok>>"
    }
    gate ask-it { message "<<output:build>>"; options yes no; headless no }
    loop again max=2 {
        task try-it agent=lib.helper { prompt "{{ previous.try_it }}"; when "output.ask_it.choice == 'yes'" }
        until "status.try_it == 'succeeded'"
    }
    task out { depends-on again when=always; call inner text="<<output:build>>" }
    result out
}
pipeline inner { param text; task t { value "<<param:text>>" }; edges { t -> t } }
swarm s {
    goal "g"
    supervisor lead agent=a
    member one agent=b "do"
    item first "x" owner=one
    item second "y" { depends-on first }
    edges { one -> lead }
}
"#;
    let (sources, index) = analyze(&[
        ("a.kdl", spec),
        ("shared.md", "Say <<param:goal>>."),
        ("lib.kdl", "provider q { exec cat }\nagent helper provider=q\n"),
    ]);
    insta::assert_snapshot!(listed(&sources, &index), @"
    parameter goal: =4:7 <19:42 <shared.md 1:13
    secret key: =5:8 8:28
    type Verdict: =6:6 13:47
    type Point: 6:37 =7:6
    provider p: =8:10 9:15 10:18
    provider q: =lib.kdl 1:10 lib.kdl 2:23
    tier small: =9:9 11:14
    agent a: =10:7 13:17 32:27
    agent b: 10:31 =11:7 17:22 33:22
    agent helper: 23:31 =lib.kdl 2:7
    prompt shared: =12:8 13:32
    task plan: =13:6 15:9 18:27 {19:59 <19:91
    pipeline main: 3:22 =14:10
    pipeline inner: 26:51 =29:10
    swarm s: =30:7
    field ok: =6:16 <19:96
    field text: =7:14
    field points: =6:25 {19:64
    parameter depth: =16:11
    task build: =17:10 <21:37 <26:72
    input design: =18:15 <19:25
    gate ask-it: =21:10 {23:85
    option yes: =21:55
    option no: =21:59 21:72
    loop again: =22:10 26:27
    task try-it: =23:14 {23:60 {24:23
    task out: =26:10 27:12
    field choice: {23:92
    parameter text: 26:57 =29:24 <29:54
    task t: =29:35 29:73 29:78
    member lead: =32:16 36:20
    member one: =33:12 34:26 36:13
    plan item first: =34:10 35:34
    plan item second: =35:10
    import lib: =2:21 23:27
    ");
}

#[test]
fn steps_stand_in_the_order_of_their_data_and_then_of_declaration() {
    let spec = r#"
workflow w
pipeline main {
    task late { run echo; depends-on first }
    task first { run echo }
    loop again max=2 {
        task inner { value "<<output:first>>" }
        until "output.inner == 'x'"
    }
    task free { run echo }
    task round { run echo; depends-on trip }
    task trip { run echo; depends-on round }
}
"#;
    let (_, index) = analyze(&[("a.kdl", spec)]);
    let mut steps: Vec<(usize, &str)> =
        index.steps.iter().map(|step| (step.position, index.symbol(step.symbol).name.as_str())).collect();
    steps.sort_unstable();
    let names: Vec<&str> = steps.iter().map(|(_, name)| *name).collect();
    assert_eq!(names, ["first", "late", "again", "inner", "free", "round", "trip"]);
    assert_eq!(steps.iter().map(|(position, _)| *position).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn tests_name_steps_parameters_and_options() {
    let spec = r#"param goal
pipeline main {
    param depth type=int
    task plan { run echo; env GOAL="<<param:goal>>" DEPTH="<<param:depth>>" }
    gate go { depends-on plan; message "Go?"; options yes no; headless no }
    task after { when "output.go.choice == 'yes'"; run echo }
}
test one {
    pipeline main
    param goal="x" depth=1
    fake plan
    fake go choice=no
    expect { step after skipped; order plan go }
}
"#;
    let (sources, index) = analyze(&[("a.kdl", spec)]);
    let listed = listed(&sources, &index);
    let of = |line: &str| listed.lines().find(|found| found.starts_with(line)).unwrap_or_default().to_owned();
    assert_eq!(of("parameter goal"), "parameter goal: =1:7 <4:45 10:11");
    assert_eq!(of("parameter depth"), "parameter depth: =3:11 <4:68 10:20");
    assert_eq!(of("task plan"), "task plan: =4:10 5:26 11:10 13:40");
    assert_eq!(of("gate go"), "gate go: =5:10 {6:31 12:10 13:45");
    assert_eq!(of("option no"), "option no: =5:59 5:72 12:20");
    assert_eq!(of("pipeline main"), "pipeline main: =2:10 9:14");
    assert_eq!(of("task after"), "task after: =6:10 13:19");
}
