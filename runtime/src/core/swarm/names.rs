//! Names for agents that the plan does not name: Japanese railway stations, the same ones for the same run.

use sha2::{Digest, Sha256};
use swarmc_plan::STATIONS;

/// The name of the agent at `index` among those that `run` names, from 0: none that is `taken`. Every station is used
/// before one gets a number (`takao-2`).
pub(crate) fn pick_name(run: &str, index: u32, taken: impl Fn(&str) -> bool) -> String {
    let count = STATIONS.len();
    let (start, step) = walk_order(run);
    let mut turn = index as usize;
    loop {
        let station = STATIONS[(start + turn % count * step) % count];
        let name = match turn / count {
            0 => station.to_owned(),
            round => format!("{station}-{}", round + 1),
        };
        if !taken(&name) {
            return name;
        }
        turn += 1;
    }
}

/// Where a run begins in the list, and how far it steps: every station is met once before one is met again.
fn walk_order(run: &str) -> (usize, usize) {
    let count = STATIONS.len();
    let digest = Sha256::digest(run.as_bytes());
    let number = |at: usize| digest[at..at + 4].iter().fold(0, |number: usize, &byte| number * 256 + usize::from(byte));
    let mut step = 1 + number(4) % (count - 1);
    while common_divisor(step, count) > 1 {
        step = step % (count - 1) + 1;
    }
    (number(0) % count, step)
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_station_is_a_name_and_stands_once() {
        let unique: BTreeSet<&&str> = STATIONS.iter().collect();
        let twice: Vec<_> = STATIONS.iter().enumerate().filter(|(at, name)| STATIONS[..*at].contains(name)).collect();
        assert_eq!(twice, []);
        assert!(unique.len() > 300, "{}", unique.len());
        for name in STATIONS {
            assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
        }
        assert!(["takao", "mitaka", "kichijoji"].iter().all(|name| unique.contains(name)));
    }

    #[test]
    fn names_depend_on_the_run_and_the_index_alone() {
        let names = |run: &str| (0..5).map(|index| pick_name(run, index, |_| false)).collect::<Vec<_>>();
        assert_eq!(names("20261122-014233-k3f9"), names("20261122-014233-k3f9"));
        assert_ne!(names("20261122-014233-k3f9"), names("20261122-014233-k3fb"));
        assert_eq!(names("r1"), names("r1"));
    }

    #[test]
    fn every_station_comes_before_one_gets_a_number() {
        let count = u32::try_from(STATIONS.len()).unwrap();
        for run in ["r1", "", "20261122-014233-k3f9"] {
            let names: BTreeSet<String> = (0..2 * count).map(|index| pick_name(run, index, |_| false)).collect();
            assert_eq!(names.len(), STATIONS.len() * 2);
            assert!((0..count).all(|index| STATIONS.contains(&pick_name(run, index, |_| false).as_str())));
            assert!(pick_name(run, count, |_| false).ends_with("-2"));
        }
    }

    #[test]
    fn no_name_is_taken() {
        let mut taken = BTreeSet::new();
        // Always asked for the first one, and all stations are taken but one.
        for _ in 0..STATIONS.len() {
            let name = pick_name("r1", 0, |name| taken.contains(name));
            assert!(taken.insert(name));
        }
        assert_eq!(taken.len(), STATIONS.len());
        assert_eq!(pick_name("r1", 0, |name| taken.contains(name)), format!("{}-2", pick_name("r1", 0, |_| false)));
        assert_eq!(pick_name("r1", 0, |name| name != "mitaka-3"), "mitaka-3");
    }
}
