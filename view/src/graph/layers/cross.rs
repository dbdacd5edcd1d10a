//! The order of cells in their rows, so that few lines cross: by the middle of their neighbours, sweeping down and up.

use super::Grid;

/// How much may be done: cells and lines looked at.
const WORK: usize = 6_000_000;
/// Sweeps without a gain before it is over.
const PATIENCE: usize = 4;

/// Orders the cells of each row.
pub(super) fn order_cells(grid: &mut Grid) {
    initial_order(grid);
    let size = grid.cells.len() + grid.down.iter().map(Vec::len).sum::<usize>();
    // At least one sweep in each direction, however large the graph is.
    let sweeps = (WORK / size.max(1)).clamp(2, 30);
    let mut places = vec![0; grid.cells.len()];
    let mut best = (count_crossings(grid, &mut places), grid.rows.clone());
    let mut idle = 0;
    for sweep in 0..sweeps {
        if best.0 == 0 || idle > PATIENCE {
            break;
        }
        let rows = grid.rows.len();
        let is_down = sweep % 2 == 0;
        for step in 1..rows {
            let row = if is_down { step } else { rows - 1 - step };
            sort_row(grid, row, is_down, &mut places, sweep % 4 > 1);
        }
        // `WORK` counts no pairs of lines, so a large graph does without.
        if size < 20_000 {
            swap_neighbours(grid, &mut places);
        }
        let now = count_crossings(grid, &mut places);
        idle = if now < best.0 { 0 } else { idle + 1 };
        if now < best.0 {
            best = (now, grid.rows.clone());
        }
    }
    grid.rows = best.1;
}

/// A first order: what is reached from a cell stands together.
fn initial_order(grid: &mut Grid) {
    let mut seen = vec![false; grid.cells.len()];
    let starts: Vec<usize> = grid.rows.iter().flatten().copied().collect();
    let mut rows = vec![Vec::new(); grid.rows.len()];
    for start in starts {
        let mut stack = vec![start];
        while let Some(cell) = stack.pop() {
            if !std::mem::replace(&mut seen[cell], true) {
                rows[grid.cells[cell].row].push(cell);
                // A stack and no recursion: a chain may have more cells than the stack of a thread has room for.
                stack.extend(grid.down[cell].iter().rev().filter(|below| !seen[**below]));
            }
        }
    }
    grid.rows = rows;
}

/// Sorts a row by the middle of each cell's neighbours in the row before; cells without any keep their places.
fn sort_row(grid: &mut Grid, row: usize, is_down: bool, places: &mut [usize], ties_turn: bool) {
    // A sweep down begins below the first row, and one up above the last: `before` is always a row.
    let (joined, before) = if is_down { (&grid.up, row.wrapping_sub(1)) } else { (&grid.down, row + 1) };
    for (place, cell) in grid.rows[before].iter().enumerate() {
        places[*cell] = place;
    }
    let mut sorted: Vec<(f64, usize)> = grid.rows[row]
        .iter()
        .filter(|cell| !joined[**cell].is_empty())
        .map(|cell| {
            let sum: usize = joined[*cell].iter().map(|other| places[*other]).sum();
            (sum as f64 / joined[*cell].len() as f64, *cell)
        })
        .collect();
    // The sort is stable, so this turns only those with the same middle.
    if ties_turn {
        sorted.reverse();
    }
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sorted = sorted.into_iter();
    for cell in &mut grid.rows[row] {
        if !joined[*cell].is_empty()
            && let Some((_, next)) = sorted.next()
        {
            *cell = next;
        }
    }
}

/// Exchanges neighbours as long as that takes crossings away.
fn swap_neighbours(grid: &mut Grid, places: &mut [usize]) {
    for row in 0..grid.rows.len() {
        for other in [row.checked_sub(1), Some(row + 1)].into_iter().flatten().filter(|other| *other < grid.rows.len())
        {
            for (place, cell) in grid.rows[other].iter().enumerate() {
                places[*cell] = place;
            }
        }
        let line: &mut Vec<usize> = &mut grid.rows[row];
        for at in 1..line.len() {
            let (a, b) = (line[at - 1], line[at]);
            let mut gain = 0_i64;
            for joined in [&grid.up, &grid.down] {
                // Where both have very many neighbours, counting all pairs would take too long.
                if joined[a].len() * joined[b].len() <= 4_096 {
                    for x in &joined[a] {
                        for y in &joined[b] {
                            gain += (places[*x] > places[*y]) as i64 - (places[*x] < places[*y]) as i64;
                        }
                    }
                }
            }
            if gain > 0 {
                line.swap(at - 1, at);
            }
        }
    }
}

/// How many lines cross.
fn count_crossings(grid: &Grid, places: &mut [usize]) -> usize {
    let mut total = 0;
    for pair in grid.rows.windows(2) {
        for (place, cell) in pair[1].iter().enumerate() {
            places[*cell] = place;
        }
        // Counts, for the lines from the left, those before them that end further right.
        let mut tree = vec![0_usize; pair[1].len() + 1];
        let mut before = 0;
        for cell in &pair[0] {
            let mut ends: Vec<usize> = grid.down[*cell].iter().map(|below| places[*below]).collect();
            ends.sort_unstable();
            for end in &ends {
                let mut at = end + 1;
                let mut left = 0;
                while at > 0 {
                    left += tree[at];
                    at &= at - 1;
                }
                total += before - left;
            }
            // Behind the count, as lines from one cell do not cross each other.
            for end in &ends {
                let mut at = end + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
                before += 1;
            }
        }
    }
    total
}
