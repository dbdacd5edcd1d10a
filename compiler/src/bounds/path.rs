//! The longest chain of time limits through steps that wait for each other.
//!
//! In: the steps of one round with the time of each. Out: the time of the round when nothing waits for a slot.

use std::collections::HashMap;

use swarmc_plan::Step;

use super::amount::Amount;

/// The time of a round; `times` are those of the steps.
pub(crate) fn critical_path_time<'p>(steps: &'p [Step], times: &[Amount<'p>]) -> Amount<'p> {
    let index = index_steps(steps);
    let mut ends = vec![Amount::ZERO; steps.len()];
    let mut longest = Amount::ZERO;
    for position in order_steps(steps) {
        let needs = steps[position].needs.iter().filter_map(|need| index.get(need.step.as_str()));
        let start = needs.fold(Amount::ZERO, |latest, &need| latest.maximum(ends[need]));
        ends[position] = start.plus(times[position]);
        longest = longest.maximum(ends[position]);
    }
    longest
}

/// The places of the steps by name.
pub(super) fn index_steps(steps: &[Step]) -> HashMap<&str, usize> {
    steps.iter().enumerate().map(|(position, step)| (step.name.as_str(), position)).collect()
}

/// The steps, each behind those that it needs. Steps of a cycle, and those that need them, are left out.
pub(super) fn order_steps(steps: &[Step]) -> Vec<usize> {
    let index = index_steps(steps);
    let mut dependants = vec![Vec::new(); steps.len()];
    let mut waits = vec![0_usize; steps.len()];
    for (position, step) in steps.iter().enumerate() {
        for need in step.needs.iter().filter_map(|need| index.get(need.step.as_str())) {
            dependants[*need].push(position);
            waits[position] += 1;
        }
    }
    let mut order: Vec<usize> = (0..steps.len()).filter(|&position| waits[position] == 0).collect();
    let mut next = 0;
    while let Some(&position) = order.get(next) {
        next += 1;
        for &dependant in &dependants[position] {
            waits[dependant] -= 1;
            if waits[dependant] == 0 {
                order.push(dependant);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use swarmc_plan::Need;

    use super::*;

    fn step(name: &str, needs: &[&str]) -> Step {
        let need = |name: &&str| Need {
            step: (*name).to_owned(),
            when: Default::default(),
            declared: true,
            effect: Default::default(),
            origin: Default::default(),
        };
        Step { name: name.to_owned(), needs: needs.iter().map(need).collect(), ..Step::default() }
    }

    #[test]
    fn branches_run_at_once_and_joins_wait_for_the_longer() {
        let steps = [step("end", &["a", "b"]), step("a", &["start"]), step("b", &["start"]), step("start", &[])];
        let times = [1, 10, 20, 5].map(Amount::at_most);
        assert_eq!(critical_path_time(&steps, &times).known, 26);
    }

    #[test]
    fn steps_that_wait_for_each_other_do_not_hang() {
        let steps = [step("a", &["b"]), step("b", &["a"]), step("c", &[])];
        assert_eq!(critical_path_time(&steps, &[Amount::at_most(1); 3]).known, 1);
    }
}
