//! Imports on disk: what cannot be imported says so, whatever it is, and what can ends up in the plan under one name.

use std::collections::BTreeMap;
use std::fs;

use crate::cli::Place;

const PIPELINE: &str = "pipeline main { task t { run echo hi } }\n";

/// What `check` says of a spec whose other files are written first.
fn check(spec: &str, files: &[(&str, &str)]) -> (Option<i32>, String) {
    let place = Place::new(&format!("{spec}\n{PIPELINE}"));
    files.iter().for_each(|(name, text)| place.write(name, text));
    let ended = place.swarmc(&["check", "flow.kdl"]);
    (ended.code, ended.err + &ended.out)
}

#[test]
fn imports_that_leave_the_workspace_are_refused() {
    let place = Place::new(&format!("import \"link.kdl\" as=link\nimport \"up/secret.kdl\" as=up\n{PIPELINE}"));
    fs::write(place.work().join("../secret.kdl"), "agent a").expect("a file can be written");
    std::os::unix::fs::symlink("../secret.kdl", place.work().join("link.kdl")).expect("a link can be made");
    std::os::unix::fs::symlink("..", place.work().join("up")).expect("a link can be made");
    let ended = place.swarmc(&["check", "flow.kdl"]);
    let said = ended.err + &ended.out;
    assert_eq!(ended.code, Some(1), "{said}");
    for path in ["link.kdl", "up/secret.kdl"] {
        assert!(said.contains(&format!("`{path}` lies outside the workspace")), "{said}");
    }
}

#[test]
fn a_binary_is_no_spec() {
    let place = Place::new(&format!("import \"lib.kdl\" as=lib\n{PIPELINE}"));
    fs::write(place.work().join("lib.kdl"), b"\x7fELF\x02\x01\x01\x00\xff\xfe").expect("a file can be written");
    let ended = place.swarmc(&["check", "flow.kdl"]);
    let said = ended.err + &ended.out;
    assert_eq!(ended.code, Some(1), "{said}");
    assert!(said.contains("`lib.kdl` is not UTF-8 text"), "{said}");
}

#[test]
fn imports_nest_sixty_four_deep_and_no_deeper() {
    let chain = |length: usize| {
        let text = |number: usize| match number {
            last if last == length => "agent last\n".to_owned(),
            number => format!("import \"m{}.kdl\" as=n\nprompt p{number} \"x\"\n", number + 1),
        };
        let files: Vec<(String, String)> =
            (1..=length).map(|number| (format!("m{number}.kdl"), text(number))).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        check("import \"m1.kdl\" as=n\nworkflow w { allow SW103 reason=\"a test\" }", &files)
    };
    let (code, said) = chain(100);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(said.matches("imports nest deeper than 64").count(), 1, "{said}");
    assert!(said.contains("m64.kdl"), "the import that is too deep is shown: {said}");
    let (_, said) = chain(40);
    assert!(!said.contains("deeper"), "{said}");
}

#[test]
fn a_spec_of_too_many_files_is_refused() {
    let imports: String = (0..1100).map(|number| format!("import \"m{number}.kdl\" as=m{number}\n")).collect();
    let files: Vec<String> = (0..1100).map(|number| format!("m{number}.kdl")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|name| (name.as_str(), "agent a\n")).collect();
    let (code, said) = check(&imports, &files);
    assert_eq!(code, Some(1));
    assert_eq!(said.matches("more than 1000 files").count(), 1, "{said}");
}

#[test]
fn imported_things_run_under_the_names_of_their_imports() {
    let spec = "import \"team.kdl\" as=team\n\
         workflow demo { default team.greet }\n\
         pipeline own { task t { value \"{{ param.team.who | upper }} and <<param:team.who>>\" } }\n";
    let team = "param who type=string default=\"world\"\n\
         param never type=string\n\
         provider local { exec cat }\n\
         agent host provider=local\n\
         pipeline greet { task hello agent=host { prompt \"Hello, <<param:who>>{{ '!' if param['who'] == 'world' }}\" } }\n\
         agent spare { tools git }\n\
         tool-server git { exec git-server }\n\
         pipeline spare { task s agent=spare { prompt \"<<param:never>>\" } }\n";
    let place = Place::new(spec);
    place.write("team.kdl", team);
    let files: BTreeMap<String, String> =
        [("flow.kdl", spec), ("team.kdl", team)].map(|(name, text)| (name.into(), text.into())).into();
    let plan = swarmc_compiler::compile("flow.kdl", &files).plan.expect("the spec is right");
    let names = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(names(plan.params.iter().map(|param| &param.name).collect()), "team.who");
    assert_eq!(names(plan.agents.iter().map(|agent| &agent.name).collect()), "team.host");
    assert_eq!(names(plan.providers.iter().map(|provider| &provider.name).collect()), "team.local");
    assert_eq!(names(plan.pipelines.iter().map(|pipeline| &pipeline.name).collect()), "own team.greet");
    let ended = place.swarmc(&["run", "flow.kdl"]);
    assert_eq!((ended.code, ended.out.lines().last()), (Some(0), Some("Hello, world!")), "{}", ended.err);
    let ended = place.swarmc(&["run", "flow.kdl", "--pipeline", "own", "--param", "team.who=you"]);
    assert_eq!((ended.code, ended.out.lines().last()), (Some(0), Some("YOU and you")), "{}", ended.err);
}
