//! `docs/cookbook.md`: each recipe is checked without a problem, is formatted, and holds in a rehearsal on fakes.
//!
//! The tests of a recipe lie beside this file, under the name that its listing has on the page: they are not on the page,
//! which stays short.

use std::collections::BTreeSet;
use std::fs;

use super::listings::{Listing, list_listings};
use crate::cli::Place;
use crate::tidy::{root, text};

fn recipes() -> Vec<Listing> {
    let listings = list_listings("docs/cookbook.md", &text("docs/cookbook.md"));
    listings.into_iter().filter(|listing| listing.kind() == "kdl").collect()
}

/// A recipe with its tests.
fn place(recipe: &Listing) -> Place {
    let tests = text(&format!("tests/docs/cookbook/{}", recipe.rest()));
    let place = Place::new("");
    fs::remove_file(place.work().join("flow.kdl")).expect("it was just written");
    place.write(recipe.rest(), &format!("{}\n{tests}", recipe.text));
    place
}

#[test]
fn there_are_twenty_recipes_each_with_tests() {
    let recipes = recipes();
    let names: BTreeSet<String> = recipes.iter().map(|recipe| recipe.rest().to_owned()).collect();
    let tests = fs::read_dir(root().join("tests/docs/cookbook")).expect("the folder can be read");
    let tests: BTreeSet<String> =
        tests.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(names, tests);
    assert_eq!(recipes.len(), 20);
}

#[test]
fn recipes_are_checked_formatted_and_tested() {
    for recipe in recipes() {
        let name = recipe.rest();
        let place = place(&recipe);
        place.swarmc(&["check", name]).expect(0, &["no problems in 1 spec"], &[]);
        place.swarmc(&["fmt", "--check", name]).expect(0, &[], &[]);
        place.swarmc(&["plan", name]).expect(0, &["pipeline"], &[]);
        place.swarmc(&["test", name]).expect(0, &["passed"], &[]);
    }
}

/// Each is followed by the command that runs it, under its own name.
#[test]
fn recipes_say_how_they_run() {
    let page = list_listings("docs/cookbook.md", &text("docs/cookbook.md"));
    let pairs: Vec<&[Listing]> = page.chunks(2).collect();
    assert_eq!(pairs.len(), 20);
    for pair in pairs {
        let [recipe, commands] = pair else { panic!("a recipe without its command: {pair:?}") };
        assert_eq!((recipe.kind(), commands.kind()), ("kdl", "sh"));
        assert!(commands.text.contains(&format!("swarmc run {}", recipe.rest())), "{commands:?}");
    }
}
