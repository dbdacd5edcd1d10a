//! An order in which the steps of a pipeline can run: by their data, and as they are declared where that leaves it open.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::Pipeline;

/// The position of each step from 1, by index. Steps in a circle come last, as they are declared.
pub(super) fn step_positions(pipeline: &Pipeline<'_>) -> Vec<usize> {
    let count = pipeline.steps.len();
    let before = |step: usize| {
        let step = &pipeline.steps[step];
        // A step in a loop cannot begin before the loop.
        step.needs.iter().map(|need| need.step).chain(step.within)
    };
    let mut waiting = vec![0_usize; count];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (step, waiting) in waiting.iter_mut().enumerate() {
        for earlier in before(step) {
            *waiting += 1;
            after[earlier].push(step);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..count).filter(|&step| waiting[step] == 0).map(Reverse).collect();
    let (mut positions, mut next) = (vec![0; count], 1);
    while let Some(Reverse(step)) = ready.pop() {
        positions[step] = next;
        next += 1;
        for &later in &after[step] {
            waiting[later] -= 1;
            if waiting[later] == 0 {
                ready.push(Reverse(later));
            }
        }
    }
    for position in positions.iter_mut().filter(|position| **position == 0) {
        *position = next;
        next += 1;
    }
    positions
}
