//! Coordinates: cells of a row next to each other, near to what they are joined with, and the lines between them.

use std::collections::BTreeMap;

use super::{BESIDE, Cell, CellKind, Down, Grid, Layout, Link, Point, Rect, Size, Wire};

/// Sweeps down and up.
const SWEEPS: usize = 8;
/// How far a cell is moved so that a line is straight.
const NUDGE: f64 = 16.0;
/// From row to row.
const BELOW: f64 = 26.0;
/// From row to row where one of them is labels.
const NEAR: f64 = 14.0;
/// What is left free at the corners of a box.
const CORNER: f64 = 14.0;
/// Between the ends of lines at one side of a box.
const PORT: f64 = 18.0;

/// The middle of each cell.
pub(super) fn compute_columns(grid: &Grid) -> Vec<f64> {
    let mut x = vec![0.0; grid.cells.len()];
    // Offsets in each row when everything is as near as it may be.
    let packed: Vec<Vec<f64>> = grid.rows.iter().map(|row| pack_row(grid, row)).collect();
    for (row, packed) in grid.rows.iter().zip(&packed) {
        let middle = packed.last().copied().unwrap_or(0.0) / 2.0;
        for (cell, offset) in row.iter().zip(packed) {
            x[*cell] = offset - middle;
        }
    }
    let last = grid.rows.len();
    for sweep in 0..SWEEPS {
        for (row, packed) in packed.iter().enumerate().skip(1) {
            settle_row(grid, row, packed, &mut x, (true, sweep + 1 >= SWEEPS));
        }
        for (row, packed) in packed.iter().enumerate().take(last.saturating_sub(1)).rev() {
            settle_row(grid, row, packed, &mut x, (sweep + 1 >= SWEEPS, true));
        }
    }
    for (row, packed) in packed.iter().enumerate() {
        settle_row(grid, row, packed, &mut x, (true, true));
    }
    align_cells(grid, &mut x);
    let left = x.iter().zip(&grid.cells).map(|(x, cell)| x - cell.size.width / 2.0).fold(f64::INFINITY, f64::min);
    x.iter_mut().for_each(|x| *x -= left);
    x
}

/// Puts cells right below what they are joined with above, where that is near and nothing is in the way: most lines are
/// then straight.
fn align_cells(grid: &Grid, x: &mut [f64]) {
    for row in grid.rows.iter().skip(1) {
        for (place, &cell) in row.iter().enumerate() {
            let here = &grid.cells[cell];
            let near = if here.kind == CellKind::Box { NUDGE } else { 3.0 * NUDGE };
            let wishes = grid.up[cell].iter().map(|up| x[*up] + grid.cells[*up].axis - here.axis);
            let Some(wish) = wishes.min_by(|a, b| (a - x[cell]).abs().total_cmp(&(b - x[cell]).abs())) else {
                continue;
            };
            let room = |other: usize| min_distance(&grid.cells[other], here);
            let from = place.checked_sub(1).map_or(f64::MIN, |left| x[row[left]] + room(row[left]));
            let to = row.get(place + 1).map_or(f64::MAX, |right| x[*right] - room(*right));
            if (wish - x[cell]).abs() <= near && (from..=to).contains(&wish) {
                x[cell] = wish;
            }
        }
    }
}

/// How far the middles of neighbours are apart at least.
fn min_distance(a: &Cell, b: &Cell) -> f64 {
    let gap = match (a.kind, b.kind) {
        (CellKind::Box, CellKind::Box) => BESIDE,
        (CellKind::Bend, CellKind::Bend) => 12.0,
        _ => 16.0,
    };
    (a.size.width + b.size.width) / 2.0 + gap
}

fn pack_row(grid: &Grid, row: &[usize]) -> Vec<f64> {
    let mut at = 0.0;
    let mut before: Option<&Cell> = None;
    let mut offsets = Vec::with_capacity(row.len());
    for cell in row.iter().map(|cell| &grid.cells[*cell]) {
        at += before.map_or(0.0, |before| min_distance(before, cell));
        offsets.push(at);
        before = Some(cell);
    }
    offsets
}

/// Moves the cells of a row to the mean of what they are joined with, as far as their order and distances allow: the
/// least sum of squares, found by pooling neighbours that would overtake each other.
fn settle_row(grid: &Grid, row: usize, packed: &[f64], x: &mut [f64], (up, down): (bool, bool)) {
    // A pool: its weight, the weighted sum of what it wishes, and its cells.
    let mut pools: Vec<(f64, f64, usize)> = Vec::with_capacity(packed.len());
    for (&cell, offset) in grid.rows[row].iter().zip(packed) {
        let (mut weight, mut sum) = (0.0, 0.0);
        let sides = [(up, &grid.up[cell]), (down, &grid.down[cell])];
        for other in sides.into_iter().filter(|(on, _)| *on).flat_map(|(_, joined)| joined) {
            // Lines that pass are kept straight before all else.
            let straight = match (grid.cells[cell].kind, grid.cells[*other].kind) {
                (CellKind::Box, CellKind::Box) => 2.0,
                (CellKind::Box, _) | (_, CellKind::Box) => 1.0,
                _ => 16.0,
            };
            weight += straight;
            sum += straight * (x[*other] + grid.cells[*other].axis - grid.cells[cell].axis);
        }
        // What is joined with nothing stays, as a weight that gives way to all others; none would divide by 0.
        if weight == 0.0 {
            (weight, sum) = (0.05, 0.05 * x[cell]);
        }
        let mut pool = (weight, sum - weight * offset, 1);
        while let Some(last) = pools.last()
            && last.1 / last.0 > pool.1 / pool.0
        {
            pool = (pool.0 + last.0, pool.1 + last.1, pool.2 + last.2);
            pools.pop();
        }
        pools.push(pool);
    }
    let mut cells = grid.rows[row].iter().zip(packed);
    for (weight, sum, count) in pools {
        for (cell, offset) in cells.by_ref().take(count) {
            x[*cell] = sum / weight + offset;
        }
    }
}

/// The layout of a grid whose cells have these middles. `boxes` are the boxes themselves, which may be narrower than
/// their cells.
pub(super) fn build_layout(
    grid: &Grid,
    x: &[f64],
    boxes: &[Size],
    links: &[&Link],
    downs: &[Down],
    routes: &[Vec<usize>],
) -> Layout {
    let rows = row_extents(grid, x);
    let corners: Vec<Point> = boxes
        .iter()
        .enumerate()
        .map(|(index, size)| {
            let cell = &grid.cells[index];
            let (top, bottom) = rows[cell.row];
            Point { x: x[index] - cell.size.width / 2.0, y: (top + bottom - size.height) / 2.0 }
        })
        .collect();
    let ports = Ports::new(x, &corners, boxes, links, routes);
    let wires = routes.iter().enumerate().map(|(index, route)| {
        let mut wire = Wire::default();
        let mut part = Vec::with_capacity(2 * route.len());
        let (upper, lower) = (downs[index].upper, downs[index].lower);
        let (start, end) = (ports.port_x(false, upper, index), ports.port_x(true, lower, index));
        part.push(Point { x: start, y: corners[upper].y + boxes[upper].height });
        part.push(Point { x: start, y: rows[grid.cells[upper].row].1 });
        // A route has at least the two boxes.
        for cell in &route[1..route.len() - 1] {
            let (top, bottom) = rows[grid.cells[*cell].row];
            if grid.cells[*cell].kind == CellKind::Label {
                let size = grid.cells[*cell].size;
                let at = Point { x: x[*cell] - size.width / 2.0, y: (top + bottom - size.height) / 2.0 };
                wire.label = Some(Rect { at, size });
                part.extend([top, at.y].map(|y| Point { x: x[*cell], y }));
                wire.parts.push(std::mem::take(&mut part));
                part.push(Point { x: x[*cell], y: at.y + size.height });
            } else {
                part.push(Point { x: x[*cell], y: top });
            }
            part.push(Point { x: x[*cell], y: bottom });
        }
        part.push(Point { x: end, y: rows[grid.cells[lower].row].0 });
        part.push(Point { x: end, y: corners[lower].y });
        wire.parts.push(part);
        // The route runs downwards, but the head of this link belongs to the upper box.
        if downs[index].is_back {
            wire.parts.reverse();
            wire.parts.iter_mut().for_each(|part| part.reverse());
        }
        wire.parts.iter_mut().for_each(simplify_points);
        wire
    });
    let wires: Vec<Wire> = wires.collect();
    let width = x.iter().zip(&grid.cells).map(|(x, cell)| x + cell.size.width / 2.0).fold(0.0, f64::max);
    Layout { size: Size { width, height: rows.last().map_or(0.0, |row| row.1) }, boxes: corners, wires }
}

/// Takes out points that change nothing.
fn simplify_points(part: &mut Vec<Point>) {
    let mut kept: Vec<Point> = Vec::with_capacity(part.len());
    for &point in part.iter() {
        if kept.last() == Some(&point) {
            continue;
        }
        if let [.., a, b] = kept[..]
            // Equal to the bit: the points of a vertical line have copies of one number.
            && a.x == b.x
            && b.x == point.x
        {
            kept.pop();
        }
        kept.push(point);
    }
    *part = kept;
}

/// The top and bottom of each row. Where lines go far to the side, there is more between two of them.
fn row_extents(grid: &Grid, x: &[f64]) -> Vec<(f64, f64)> {
    let mut rows: Vec<(f64, f64)> = Vec::with_capacity(grid.rows.len());
    let mut before: Option<&Vec<usize>> = None;
    for row in &grid.rows {
        let is_label = |row: &Vec<usize>| {
            row.iter().all(|cell| grid.cells[*cell].kind != CellKind::Box)
                && row.iter().any(|cell| grid.cells[*cell].kind == CellKind::Label)
        };
        let top = before.map_or(0.0, |before| {
            let joined = row.iter().flat_map(|cell| grid.up[*cell].iter().map(|up| (x[*up] - x[*cell]).abs()));
            let far = joined.fold(0.0, f64::max);
            let base = if is_label(before) || is_label(row) { NEAR } else { BELOW };
            rows.last().map_or(0.0, |last| last.1) + base + (far / 12.0).min(44.0)
        });
        let height = row.iter().map(|cell| grid.cells[*cell].size.height).fold(0.0, f64::max);
        rows.push((top, top + height));
        before = Some(row);
    }
    rows
}

/// Where lines end at boxes: those of one kind at one place, others beside it, in the order of where they go.
struct Ports {
    /// By side (true: the top), box and line.
    x: BTreeMap<(bool, usize, Option<usize>), f64>,
    with_kind: Vec<bool>,
}

/// The lines at one side of a box, with the sum and the count of where they go.
type Lines = BTreeMap<Option<usize>, (f64, f64)>;

impl Ports {
    fn new(x: &[f64], corners: &[Point], boxes: &[Size], links: &[&Link], routes: &[Vec<usize>]) -> Ports {
        let with_kind: Vec<bool> = links.iter().map(|link| link.kind.is_some()).collect();
        let mut sides: BTreeMap<(bool, usize), Lines> = BTreeMap::new();
        for (index, route) in routes.iter().enumerate() {
            let key = (!with_kind[index]).then_some(index);
            for (is_top, end, next) in
                [(false, route[0], route[1]), (true, route[route.len() - 1], route[route.len() - 2])]
            {
                let sum = sides.entry((is_top, end)).or_default().entry(key).or_default();
                *sum = (sum.0 + x[next], sum.1 + 1.0);
            }
        }
        let mut places = BTreeMap::new();
        for ((is_top, index), lines) in sides {
            let mut lines: Vec<(f64, Option<usize>)> =
                lines.into_iter().map(|(key, (sum, count))| (sum / count, key)).collect();
            lines.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let width = boxes[index].width;
            // A side is only noted for a line, so there is at least one.
            let step = PORT.min((width - 2.0 * CORNER).max(0.0) / lines.len() as f64);
            let first = corners[index].x + (width - step * (lines.len() - 1) as f64) / 2.0;
            for (nth, (_, key)) in lines.into_iter().enumerate() {
                places.insert((is_top, index, key), first + step * nth as f64);
            }
        }
        Ports { x: places, with_kind }
    }

    fn port_x(&self, is_top: bool, index: usize, line: usize) -> f64 {
        let key = (!self.with_kind[line]).then_some(line);
        self.x.get(&(is_top, index, key)).copied().unwrap_or_default()
    }
}
