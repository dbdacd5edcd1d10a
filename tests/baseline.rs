//! Baselines and `swarmc.kdl` through the binary: what is known stays quiet, what is new does not, and what is wrong in
//! these files is told at its place.

use std::fs;

use crate::cli::Place;

const FLOW: &str = "pipeline p {\n    task a { run echo }\n    task b { depends-on c; run echo }\n}\n";

fn place() -> Place {
    let place = Place::new(FLOW);
    for folder in [".git", "sub", "ci"] {
        fs::create_dir(place.work().join(folder)).expect("a folder can be made");
    }
    place.write("sub/other.kdl", FLOW);
    place
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.work().join(name)).expect("a file can be read")
}

#[test]
fn what_is_known_is_hidden_wherever_it_moves() {
    let place = place();
    let help = ["there is no baseline `ci/known.kdl`", "--update-baseline"];
    place.swarmc(&["check", "--baseline", "ci/known.kdl"]).expect(2, &[], &help);
    let update = ["check", "--baseline", "ci/known.kdl", "--update-baseline"];
    place.swarmc(&update).expect(0, &["no problems in 2 specs (2 known problems hidden)"], &["2 entries"]);
    place.swarmc(&update).expect(0, &[], &["ci/known.kdl is current: 2 entries"]);
    let known = read(&place, "ci/known.kdl");
    let entry = "known SW101 \"there is no step `c` in pipeline `p`\"";
    assert!(known.contains(&format!("file \"../flow.kdl\" {{\n    {entry}\n}}")), "{known}");
    // Moved, and seen from another folder.
    place.write("flow.kdl", &format!("// Moved.\n\n{FLOW}"));
    let mut elsewhere = place.command(&["check", "../flow.kdl", "--baseline", "../ci/known.kdl"]);
    let ended = elsewhere.current_dir(place.work().join("sub")).output().expect("swarmc starts");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    // A second one of the same kind is new, and so is another.
    place.write("flow.kdl", &FLOW.replace("run echo }\n}", "run echo }\n    task d { depends-on c; run echo }\n}"));
    let check = ["check", "--baseline", "ci/known.kdl", "--format", "short"];
    place.swarmc(&check).expect(1, &["error[SW101]"], &["1 error in 2 specs (2 known problems hidden)"]);
    let json = place.swarmc(&["check", "--baseline", "ci/known.kdl", "--format", "json"]);
    let document = crate::schema::fits("check", &json.out);
    assert_eq!((&document["known"], &document["errors"]), (&2.into(), &1.into()));
    // What was mended is gone; what was not looked at is not.
    place.write("flow.kdl", &FLOW.replace("depends-on c; ", ""));
    let one = ["check", "flow.kdl", "--baseline", "ci/known.kdl"];
    place.swarmc(&one).expect(0, &["(1 entry of the baseline is gone: `--update-baseline` removes them)"], &[]);
    place.swarmc(&[&one[..], &["--update-baseline"]].concat()).expect(0, &[], &["wrote ci/known.kdl: 1 entry"]);
    let known = read(&place, "ci/known.kdl");
    assert!(known.contains("sub/other.kdl") && !known.contains("flow.kdl"), "{known}");
    fs::remove_file(place.work().join("sub/other.kdl")).expect("it is there");
    place.swarmc(&one).expect(0, &["1 entry of the baseline is gone"], &[]);
}

#[test]
fn a_baseline_that_is_wrong_is_told_and_never_overwritten() {
    let place = place();
    let wrong = "file a {\n    known SW1O1 x\n}\n";
    place.write("known.kdl", wrong);
    for more in [&[][..], &["--update-baseline"]] {
        let arguments = [&["check", "flow.kdl", "--baseline", "known.kdl"], more].concat();
        let said = ["known.kdl:2:11: error[SW101]: there is no problem called `SW1O1`", "did you mean `SW101`?"];
        place.swarmc(&arguments).expect(2, &[], &said);
    }
    assert_eq!(read(&place, "known.kdl"), wrong);
    place.swarmc(&["check", "--update-baseline"]).expect(2, &[], &["there is no baseline to update"]);
}

#[test]
fn a_workspace_says_what_is_shown_and_flags_win() {
    let place = place();
    place.write("flow.kdl", "param unused\npipeline p { task a { run echo } }\n");
    place.swarmc(&["check", "flow.kdl"]).expect(0, &["1 warning"], &[]);
    place.write("swarmc.kdl", "deny unused-definition\n");
    place.swarmc(&["check", "flow.kdl"]).expect(1, &["error[SW103]"], &[]);
    place.swarmc(&["check", "flow.kdl", "--warn", "SW103"]).expect(0, &["1 warning"], &[]);
    place.write("swarmc.kdl", "allow SW103 SW101\nprofile strict\n");
    // It holds for every folder beneath, and is no spec itself.
    place.swarmc(&["check"]).expect(0, &["no problems in 2 specs"], &[]);
    place.write("swarmc.kdl", "pipeline p { task a { run echo } }\nprofil strict\n");
    let said = ["swarmc.kdl:1:1: error[SW003]: there is no `pipeline`", "swarmc.kdl:2:1", "did you mean `profile`?"];
    place.swarmc(&["check"]).expect(2, &[], &said);
    place.write("swarmc.kdl", "baseline \"ci/known.kdl\"\n");
    place.swarmc(&["check", "--update-baseline"]).expect(0, &[], &["wrote ci/known.kdl: 2 entries"]);
    place.swarmc(&["check"]).expect(0, &["2 known problems hidden"], &[]);
}
