//! Every workflow under `specs/`: checked, planned and run offline through the binary, in a copy of the project.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use swarmc_compiler::compile;
use swarmc_plan::Plan;
use tempfile::TempDir;

const QUICKSTART: &str = "specs/quickstart/quickstart.kdl";
const FEATURE: &str = "specs/feature/feature.kdl";

/// A copy of the examples and of some source for them to read, and a home for runs of their own.
pub(crate) struct Project {
    folder: TempDir,
}

impl Project {
    pub(crate) fn new() -> Project {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for part in ["specs", "plan/src"] {
            copy(&root.join(part), &folder.path().join("project").join(part));
        }
        // Marks the workspace; there is no history in it, so what asks git is told that there is none.
        fs::create_dir(folder.path().join("project/.git")).expect("a folder can be made");
        Project { folder }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// swarmc with these arguments, in the project; nobody sits at a terminal, and no machine of a CI is meant.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = crate::patience::swarmc();
        command.args(arguments).current_dir(self.root()).stdin(Stdio::null()).env_remove("CI");
        command.env("SWARM_HOME", self.home()).env("HOME", self.folder.path());
        command
    }

    pub(crate) fn swarmc(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().expect("swarmc starts");
        crate::schema::assert_documented(arguments, &String::from_utf8_lossy(&output.stdout));
        output
    }

    /// Runs swarmc, which must end well, and gives its stdout.
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let output = self.swarmc(arguments);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "swarmc {arguments:?}\n{out}\n{err}");
        out.into_owned()
    }

    /// What the last task called `name` printed, as it was captured.
    pub(crate) fn output(&self, name: &str) -> String {
        let path = only(&self.home().join("outputs")).join(format!("{name}.txt"));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("failed to read {}: {error}", path.display()))
    }

    /// Every prompt of the run, in no order that matters; what an agent is told before each is apart.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let run = only(&self.home().join("runs"));
        let prompts = run.join("prompts");
        let prompts = if prompts.exists() { texts(&prompts) } else { BTreeMap::new() }.into_iter();
        let apart = |path: &str| [".system.txt", ".full.txt", ".blocks.json"].iter().any(|end| path.ends_with(end));
        prompts.filter(|(path, _)| !apart(path)).map(|(_, prompt)| prompt).collect()
    }

    /// The one prompt that holds this text.
    pub(crate) fn prompt(&self, marker: &str) -> String {
        let mut prompts = self.prompts();
        prompts.retain(|prompt| prompt.contains(marker));
        assert_eq!(prompts.len(), 1, "prompts that hold `{marker}`: {prompts:#?}");
        prompts.remove(0)
    }
}

pub(crate) fn copy(from: &Path, to: &Path) {
    for (path, text) in texts(from) {
        let path = to.join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder can be made");
        fs::write(path, text).expect("a file can be written");
    }
}

/// The only entry of a folder.
pub(crate) fn only(folder: &Path) -> PathBuf {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.remove(0)
}

/// The texts beneath a folder, by path.
pub(crate) fn texts(folder: &Path) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display())) {
            let path = entry.expect("an entry can be read").path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    let name = path.strip_prefix(folder).expect("it lies in the folder").to_string_lossy().into_owned();
                    texts.insert(name, fs::read_to_string(&path).expect("it is a text"));
                }
            }
        }
    }
    texts
}

/// The specs of the project, relative to its root.
pub(crate) fn specs(project: &Project) -> Vec<String> {
    let files = texts(&project.root().join("specs"));
    files.into_keys().filter(|path| path.ends_with(".kdl")).map(|path| format!("specs/{path}")).collect()
}

/// The text of a task's output as a prompt shows it.
pub(crate) fn wrapped(task: &str, output: &str) -> String {
    let output = output.strip_suffix('\n').unwrap_or(output);
    format!("--- Output from task \"{task}\" ---\n{output}\n--- End output from task \"{task}\" ---")
}

#[test]
fn specs_are_right_to_the_last_warning() {
    let project = Project::new();
    let specs = specs(&project);
    assert!([QUICKSTART, FEATURE].iter().all(|known| specs.iter().any(|spec| spec == known)), "{specs:?}");
    let files = texts(&project.root());
    for spec in &specs {
        let found = compile(spec, &files).diagnostics;
        assert!(found.is_empty(), "{spec}: {found:#?}");
        project.done(&["check", spec]);
    }
}

#[test]
fn the_readme_shows_specs_that_compile() {
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("there is a readme");
    let blocks: Vec<&str> = readme.split("```kdl\n").skip(1).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let (spec, _) = block.split_once("```").expect("the block ends");
        let prompt = "Carry this plan out:\n\n<<output:planner>>\n";
        let files = [("spec.kdl", spec), ("prompts/implement.md", prompt)];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let compilation = compile("spec.kdl", &BTreeMap::from(files));
        assert!(compilation.diagnostics.is_empty(), "{:#?}", compilation.diagnostics);
    }
}

#[test]
fn specs_have_plans_that_satisfy_the_schema() {
    let project = Project::new();
    let schema = serde_json::from_str(&project.done(&["schema", "plan"])).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    for spec in specs(&project) {
        let text = project.done(&["plan", &spec, "-o", "-"]);
        let json: serde_json::Value = serde_json::from_str(&text).expect("a plan is JSON");
        let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{spec}: {errors:#?}");
        let plan = swarmc_plan::read_plan(&text).unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert_eq!(swarmc_plan::write_plan(&plan), text, "{spec}: a plan is written as it was read");
        assert_eq!(project.done(&["plan", &spec, "-o", "-"]), text, "{spec}: the same spec, the same bytes");
        let summary = project.done(&["plan", &spec]);
        for step in &plan.pipelines[0].steps {
            assert!(summary.contains(&step.name), "{spec}: the summary names `{}`\n{summary}", step.name);
        }
    }
}

#[test]
fn the_schema_refuses_what_is_no_plan() {
    let project = Project::new();
    let schema = serde_json::from_str(&project.done(&["schema", "plan"])).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let mut json: serde_json::Value =
        serde_json::from_str(&project.done(&["plan", QUICKSTART, "-o", "-"])).expect("a plan is JSON");
    assert!(validator.is_valid(&json));
    json["pipelines"][0]["steps"][0]["retry"]["times"] = "often".into();
    assert!(!validator.is_valid(&json));
}

#[test]
fn the_quickstart_measures_describes_and_reports() {
    let project = Project::new();
    let printed = project.done(&["run", QUICKSTART]);
    let report = fs::read_to_string(project.root().join("target/quickstart/report.md")).expect("there is a report");
    assert!(printed.ends_with(&project.output("portrait")), "the result comes last\n{printed}");
    // It measures the twenty largest.
    let mut files: Vec<String> = texts(&project.root().join("plan/src")).into_values().collect();
    files.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let lines: usize = files.iter().take(20).map(|text| text.lines().count()).sum();
    assert!(report.contains(&format!("These files have {lines} lines")), "{report}");
    assert!(report.contains("(no history here)"), "a failure with a default is handled\n{report}");

    let prompt = project.prompt("# Task");
    for task in ["sizes", "words", "habits"] {
        assert!(prompt.contains(&wrapped(task, &project.output(task))), "{prompt}");
    }
    assert!(prompt.starts_with("You are an analyst."), "the included text comes first\n{prompt}");
    assert!(report.contains(project.output("portrait").trim_end()), "an answer reaches the report unwrapped");
}

/// What the plan of a spec has as its bound, as far as there is one.
fn most(bound: &swarmc_plan::Bound) -> usize {
    match bound {
        swarmc_plan::Bound::Most(most) => usize::try_from(*most).unwrap_or(usize::MAX),
        swarmc_plan::Bound::Unbounded { .. } => usize::MAX,
    }
}

#[test]
fn runs_keep_to_the_bounds_of_their_plans() {
    let files = texts(&Project::new().root());
    for spec in specs(&Project::new()) {
        let project = Project::new();
        let plan = compile(&spec, &files).plan.expect("an example is right");
        let bounds = &plan.bounds[&plan.default];
        project.done(&["run", &spec, "--headless"]);
        let journal = only(&project.home().join("runs")).join("journal.jsonl");
        let journal = fs::read(journal).expect("a run has a journal");
        let started = String::from_utf8_lossy(&journal).matches("process_started").count();
        let turns = project.prompts().len();
        assert!(String::from_utf8_lossy(&journal).contains("attempt_started"), "{spec}: something ran");
        assert!(turns <= most(&bounds.turns), "{spec}: {turns} turns, and a bound of {:?}", bounds.turns);
        assert!(started <= most(&bounds.launches), "{spec}: {started} processes, and a bound of {:?}", bounds.launches);
    }
}

#[test]
fn a_plan_runs_like_its_spec() {
    let project = Project::new();
    project.done(&["plan", QUICKSTART, "-o", "plan.json"]);
    project.done(&["run", "plan.json"]);
    assert!(project.output("portrait").starts_with("These files have"));
}

#[test]
fn the_feature_goes_round_until_the_evaluator_approves() {
    let project = Project::new();
    let printed = project.done(&["run", FEATURE, "--param", "goal=Greet everybody"]);
    assert!(printed.contains("PASS: both tests ran"), "the result is printed\n{printed}");

    // Two rounds of four agents.
    assert_eq!(project.prompts().len(), 8, "{:#?}", project.prompts());
    let coder = project.prompt("What the round before left open");
    assert!(coder.contains(&wrapped("planner", &project.output("planner"))), "this round's plan\n{coder}");
    assert!(
        coder.contains(&wrapped("evaluator", "REVISE: step 2 of the plan is missing, only English is greeted.")),
        "{coder}"
    );
    let again = project.prompt("This is round 2");
    assert!(
        again.contains("Greet everybody") && again.contains("Read the user's locale."),
        "the plan of the round before\n{again}"
    );
    for tester in project.prompts().iter().filter(|prompt| prompt.contains("# Judge the test run")) {
        assert!(tester.contains(&wrapped("unit-tests", "2 passed, 0 failed")), "{tester}");
        assert!(tester.contains("ended as `succeeded`, with exit\ncode 0."), "{tester}");
    }
    assert!(project.output("evaluator").starts_with("APPROVED"), "outputs are overwritten round by round");
}

#[test]
fn a_red_test_run_is_judged_and_not_the_end() {
    let project = Project::new();
    project.done(&["run", FEATURE, "--param", "tests=echo 1 failed; exit 3"]);
    let prompts = project.prompts();
    let tester = prompts.iter().find(|prompt| prompt.contains("# Judge the test run")).expect("the tester was asked");
    assert!(tester.contains("ended as `failed`, with exit\ncode 3.") && tester.contains("1 failed"), "{tester}");
}

#[test]
fn the_feature_compiles_for_real_agents_too() {
    let project = Project::new();
    let mut files = texts(&project.root());
    let offline = files.remove(FEATURE).expect("the spec is there");
    // The `/-` moves from one provider to the other, as the spec's own comment says.
    let real = offline.replace("\nprovider team", "\n@provider team").replace("\n/-provider", "\nprovider");
    let real = real.replace("\n@provider", "\n/-provider");
    assert_ne!(real, offline);
    files.insert(FEATURE.to_owned(), real);
    let compilation = compile(FEATURE, &files);
    assert!(compilation.diagnostics.is_empty(), "{:#?}", compilation.diagnostics);
    let plan = compilation.plan.expect("there is a plan");
    let provider = plan.provider("team").expect("it has the provider");
    let swarmc_plan::Connection::Exec { argv, .. } = &provider.connection else { panic!("{provider:?}") };
    assert_eq!(argv[0], "claude");
}

/// What a plan says, without places, digests and words for people.
pub(crate) fn meaning(plan: &Plan) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                ["origin", "digest", "description", "sources"].iter().for_each(|name| _ = fields.remove(*name));
                fields.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut json = serde_json::to_value(plan).expect("a plan is JSON");
    strip(&mut json);
    json
}
