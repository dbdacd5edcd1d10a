//! `docs/directives.md`: each example of a directive, a filter and a test has in a run the value that the page prints.

use std::fs;

use swarmc_compiler::interpolation::{self, EXAMPLE_SPEC, Term};

use crate::cli::Place;

/// The workflow of the page, with `text` in the prompt of `show`.
fn place(text: &str) -> Place {
    let place = Place::new(&EXAMPLE_SPEC.replace("EXAMPLE", &text.replace('\\', "\\\\").replace('"', "\\\"")));
    place.write("style.md", "Write plainly.\n");
    place.write("notes.txt", "Friday: release.\n");
    place.write("piped", "piped\n");
    place
}

/// What an example becomes in the run that the page describes.
fn value(example: &str) -> String {
    // The inbox stands in a pipeline of its own.
    let inbox = example == "<<inbox>>";
    let place = place(if inbox { "<<item>>" } else { example });
    let mut command = place.command(&["run", "flow.kdl", "-q", "--pipeline", if inbox { "talk" } else { "main" }]);
    command.stdin(fs::File::open(place.work().join("piped")).expect("it was just written"));
    let output = command.output().expect("swarmc starts");
    let out = String::from_utf8(output.stdout).expect("the output is UTF-8");
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    match inbox {
        true => out.trim_end().to_owned(),
        false => {
            let items: Vec<String> = serde_json::from_str(&out).expect("a list of texts");
            items.last().expect("two items").clone()
        }
    }
}

/// Whether a text is as shown, where `…` is any text.
fn fits(shown: &str, found: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = found.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut open = false;
    for part in parts {
        open = true;
        match rest.find(part) {
            Some(at) if !part.is_empty() => rest = &rest[at + part.len()..],
            Some(_) => return true,
            None => return false,
        }
    }
    rest.is_empty() || (open && shown.ends_with('…'))
}

fn check(terms: impl IntoIterator<Item = Term>) {
    let wrong: Vec<String> = terms
        .into_iter()
        .filter(|term| !term.result.starts_with("SW"))
        .map(|term| (value(term.example), term))
        .filter(|(found, term)| !fits(term.result, found))
        .map(|(found, term)| format!("{}: {} becomes\n{found}\nand not\n{}", term.word, term.example, term.result))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn examples_of_directives_have_their_values_in_a_run() {
    check(interpolation::directive_terms().chain(interpolation::directive_filters("output")));
}

/// All of them in one run: each is the value of a task.
#[test]
fn examples_of_filters_and_tests_have_their_values_in_a_run() {
    let terms: Vec<Term> = interpolation::expression_filters().chain(interpolation::expression_tests()).collect();
    let values: String = terms
        .iter()
        .enumerate()
        .map(|(index, term)| format!("    task value-{index} {{ value #\"{{{{ {} }}}}\"# }}\n", term.example))
        .collect();
    let spec =
        EXAMPLE_SPEC.replace("    task notes", &format!("{values}    task notes")).replace("EXAMPLE", "<<item>>");
    let place = Place::new(&spec);
    place.swarmc(&["run", "flow.kdl", "-q", "--pipeline", "main"]).expect(0, &[], &[]);
    let outputs = crate::specs::only(&place.home().join("outputs"));
    for (index, term) in terms.iter().enumerate() {
        let found = fs::read_to_string(outputs.join(format!("value-{index}.txt"))).expect("the task has an output");
        assert!(fits(term.result, &found), "{}: `{}` gives `{found}`, not `{}`", term.word, term.example, term.result);
    }
}

#[test]
fn what_this_version_cannot_run_is_said() {
    for term in interpolation::directive_terms().filter(|term| term.result.starts_with("SW")) {
        let place = Place::new(&format!(
            "provider local {{ exec cat }}\nagent one provider=local\n\
             swarm team {{ goal \"Build\"; supervisor lead; member first \"{}\" }}\n",
            term.example
        ));
        place.swarmc(&["check"]).expect(1, &[&format!("[{}]", term.result), term.word], &[]);
    }
}

#[test]
fn an_example_that_gives_something_else_is_found() {
    assert!(fits("one…three", "one two three") && fits("20…-…-…", "20261122-090000-ab1x4t") && fits("a", "a"));
    assert!(!fits("one…three", "one two") && !fits("a", "ab") && !fits("…b", "a") && !fits("a…b", "a b c"));
    assert_eq!(value("<<iteration>>-<<index>>"), "2-1");
}
