//! `swarmc graph`, through the binary: what is drawn, where it goes, and what is refused.

use std::fmt::Write;

use crate::cli::Place;

const SPEC: &str = "workflow w { default build }\nprovider p { script { answer x } }\nagent a provider=p\n\
    pipeline build {\n    task plan { prompt \"Plan <<param:goal>>\" }\n    loop rounds max=3 {\n        task work { run ls }\n        \
    task judge { depends-on work when=any; prompt \"<<output:plan>>\" }\n        until \"output.judge == 'done'\"\n    }\n    \
    task last { depends-on rounds when=always; run ls }\n    edges { plan -> judge carries=Plan }\n}\n\
    param goal type=string default=\"x\"\n\
    swarm team { goal \"x\"; supervisor lead agent=a; member one agent=a \"y\"; }\n\
    type Plan { steps list<string> }\n";

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.work().join(name)).expect("the file was written")
}

#[test]
fn the_ending_of_the_file_says_what_is_written() {
    let place = Place::new(SPEC);
    for (file, begins) in
        [("a.svg", "<svg "), ("a.dot", "digraph "), ("a.txt", "pipeline build"), ("a.mmd", "%%{init: ")]
    {
        place.swarmc(&["graph", "flow.kdl", "-o", file]).expect(0, &[], &[&format!("wrote `{file}`")]);
        assert!(read(&place, file).starts_with(begins), "{file}");
    }
    place.swarmc(&["graph", "flow.kdl", "-o", "b.txt", "--format", "svg"]).expect(0, &[], &[]);
    assert_eq!(read(&place, "b.txt"), read(&place, "a.svg"));
    let shown = place.swarmc(&["graph", "flow.kdl", "-o", "-", "--format", "text"]);
    assert_eq!((shown.code, shown.out), (Some(0), read(&place, "a.txt")));
    place.swarmc(&["graph", "flow.kdl", "-o", "none/a.svg"]).expect(2, &[], &["cannot write `none/a.svg`"]);
}

#[test]
fn a_listing_shows_what_waits_for_what() {
    let place = Place::new(SPEC);
    insta::assert_snapshot!(place.swarmc(&["graph", "flow.kdl", "--format", "text"]).out, @r"
    pipeline build
      ●     plan    agent a
      ↻     rounds  at most 3 rounds, until output.judge == 'done'  ← plan
      │  ■  work
      │  ●  judge   agent a  ← work (ran)
      ■     last    ← rounds (ended)
      plan → judge  handoff Plan

    swarm team
      anyone may write to anyone
      ●  lead  supervisor, agent a
      ●  one   agent a
    ");
}

#[test]
fn one_pipeline_or_swarm_is_drawn_and_a_name_that_is_neither_is_told() {
    let place = Place::new(SPEC);
    let drawn = place.swarmc(&["graph", "flow.kdl", "--format", "svg", "--pipeline", "team"]);
    assert!(drawn.out.contains("swarm team") && !drawn.out.contains("pipeline build"), "{drawn:?}");
    place.swarmc(&["graph", "flow.kdl", "--pipeline", "taem"]).expect(
        2,
        &[],
        &["there is no pipeline or swarm `taem`", "did you mean `team`?"],
    );
}

#[test]
fn a_picture_is_well_formed_and_says_its_labels() {
    let place = Place::new(SPEC);
    let svg = place.swarmc(&["graph", "flow.kdl", "--format", "svg"]).out;
    for text in
        [">at most 3 rounds<", ">until output.judge == 'done'<", ">ran<", ">ended<", ">handoff Plan<", ">judge<"]
    {
        assert_eq!(svg.matches(text).count(), 1, "{text} in {svg}");
    }
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let name = tag.split([' ', '>', '/']).find(|part| !part.is_empty()).expect("a tag has a name");
        match tag.split_once('>').expect("a tag ends").0 {
            inside if inside.starts_with('/') => assert_eq!(open.pop(), Some(name), "{svg}"),
            inside if inside.ends_with('/') => {}
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn what_is_too_large_for_a_picture_is_refused_in_words() {
    let mut spec = String::from("pipeline p {\n    task t0 { run ls }\n    task t1 { depends-on t0; run ls }\n");
    for index in 2..6_000 {
        let _ = writeln!(spec, "    task t{index} {{ depends-on t0 t{}; run ls }}", index - 1);
    }
    let place = Place::new(&format!("{spec}}}\n"));
    place.swarmc(&["graph", "flow.kdl", "--format", "svg"]).expect(
        2,
        &[],
        &["11997 arrows are too many to draw", "--pipeline NAME", "--format dot"],
    );
}
