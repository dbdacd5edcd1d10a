//! Layered layout of a flat graph: boxes in rows, so that links run downwards, and the lines of the links between them.
//!
//! In: sizes of boxes and links between them. Out: where each box stands, and for each link its line and its label. No
//! two boxes or labels overlap, and a line bends only between rows, so it never runs through a box. Links of one kind
//! that end (or begin) at one box and are long share their line, which keeps a step that waits for a hundred others
//! readable, and the work in bounds.
//!
//! We wrote our own, because the existing crates are too slow for large specs. A chain of 100 boxes whose first one
//! also leads to all others takes `dagre` 3 s and `dugong` 9 s, 300 boxes with five links each 17 s and 28 s: lines
//! that share nothing are quadratic, and more so in their crossings. `rust-sugiyama` panics on a link from a box to
//! itself, and does not say where long links run.

mod cross;
mod pack;
mod place;

use std::collections::BTreeMap;

/// What there may be at most of boxes and bends in one graph.
const MOST: usize = 400_000;
/// Between boxes of a row.
const BESIDE: f64 = 28.0;
/// What the line of a link to itself adds to the width of its box.
const LOOP: f64 = 20.0;
/// Between a line and its label.
const AIR: f64 = 6.0;

/// How large something is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    /// From left to right.
    pub width: f64,
    /// From top to bottom.
    pub height: f64,
}

/// A place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// From the left.
    pub x: f64,
    /// From the top.
    pub y: f64,
}

/// A place with a size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rect {
    /// Its upper left corner.
    pub at: Point,
    /// How large it is.
    pub size: Size,
}

/// A link between two boxes, which are indexes.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The size of its label; nothing when it has none.
    pub(super) label: Size,
    /// Links of the same kind may share a line; one without a kind has its own.
    pub(super) kind: Option<usize>,
}

/// Where everything is, from 0 to `size`.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) size: Size,
    /// In the order of the boxes: their upper left corners.
    pub(super) boxes: Vec<Point>,
    /// In the order of the links.
    pub(super) wires: Vec<Wire>,
}

/// The line of a link, from its beginning to its end.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// Lines and, where neither x nor y stays, curves that begin and end vertically. Two, when the label interrupts it.
    pub parts: Vec<Vec<Point>>,
    /// Where its label stands, if it has one.
    pub label: Option<Rect>,
}

/// There is too much to lay out.
#[derive(Debug, PartialEq)]
pub struct TooLarge;

/// Lays out boxes, in the order given where nothing else decides, in rows about as wide as this or as the whole is
/// high.
pub(super) fn layout_boxes(boxes: &[Size], links: &[Link], width: f64) -> Result<Layout, TooLarge> {
    let loops = collect_loops(links);
    let sizes: Vec<Size> = boxes
        .iter()
        .enumerate()
        .map(|(index, size)| match loops.get(&index) {
            Some(loops) => Size { width: size.width + loops.size.width, height: size.height.max(loops.size.height) },
            None => *size,
        })
        .collect();
    let parts = pack::find_components(boxes.len(), links);
    let area: f64 = sizes.iter().map(|size| (size.width + BESIDE) * (size.height + 60.0)).sum();
    let width = sizes.iter().map(|size| size.width).fold(width.max((area * 1.5).sqrt()), f64::max);
    let mut done = Vec::with_capacity(parts.len());
    for part in &parts {
        done.push(layout_component(part, &sizes, boxes, links, width)?);
    }
    let mut layout = Layout {
        size: Size::default(),
        boxes: vec![Point::default(); boxes.len()],
        wires: vec![Wire::default(); links.len()],
    };
    let corners = pack::pack_shelves(&done.iter().map(|part| part.size).collect::<Vec<_>>(), width, &mut layout.size);
    for ((part, laid), corner) in parts.iter().zip(done).zip(corners) {
        for (index, at) in part.boxes.iter().zip(laid.boxes) {
            layout.boxes[*index] = at + corner;
        }
        for (index, wire) in part.links.iter().zip(laid.wires) {
            layout.wires[*index] = wire.shift_by(corner);
        }
    }
    for (index, loops) in loops {
        loops.draw(layout.boxes[index], boxes[index], links, &mut layout.wires);
    }
    Ok(layout)
}

/// The links from a box to itself: out at its right side and in again above, the first innermost, then their labels.
#[derive(Default)]
struct Loops {
    links: Vec<usize>,
    /// What they add to the width of the box, and the height of the highest label.
    size: Size,
}

fn collect_loops(links: &[Link]) -> BTreeMap<usize, Loops> {
    let mut loops: BTreeMap<usize, Loops> = BTreeMap::new();
    for (index, link) in links.iter().enumerate().filter(|(_, link)| link.from == link.to) {
        let own = loops.entry(link.from).or_default();
        own.links.push(index);
        own.size.width += LOOP + if link.label.width > 0.0 { link.label.width + AIR } else { 0.0 };
        own.size.height = own.size.height.max(link.label.height);
    }
    loops
}

impl Loops {
    fn draw(&self, at: Point, size: Size, links: &[Link], wires: &mut [Wire]) {
        let (right, middle) = (at.x + size.width, at.y + size.height / 2.0);
        let mut beside = right + LOOP * self.links.len() as f64;
        for (nth, index) in self.links.iter().enumerate() {
            let far = right + LOOP * (nth + 1) as f64 - AIR;
            let away = size.height / 2.0 * (nth + 1) as f64 / (self.links.len() + 1) as f64;
            let (top, bottom) = (middle - away, middle + away);
            let line = [(right, bottom), (far, bottom), (far, top), (right, top)];
            let label = links[*index].label;
            wires[*index].parts = vec![line.map(|(x, y)| Point { x, y }).to_vec()];
            if label.width > 0.0 {
                let at = Point { x: beside, y: middle - label.height / 2.0 };
                wires[*index].label = Some(Rect { at, size: label });
                beside += label.width + AIR;
            }
        }
    }
}

/// What is linked, however far.
#[derive(Debug, Default)]
struct Part {
    boxes: Vec<usize>,
    /// Without those from a box to itself.
    links: Vec<usize>,
}

/// One thing in one row.
#[derive(Clone, Debug)]
struct Cell {
    size: Size,
    /// How far its line is from its middle.
    axis: f64,
    row: usize,
    kind: CellKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum CellKind {
    Box,
    Label,
    /// A line passes.
    Bend,
}

/// The cells in their rows, and which of them are joined.
#[derive(Debug, Default)]
struct Grid {
    cells: Vec<Cell>,
    /// From the left.
    rows: Vec<Vec<usize>>,
    /// To cells in the row above, and below.
    up: Vec<Vec<usize>>,
    down: Vec<Vec<usize>>,
}

impl Grid {
    fn add(&mut self, cell: Cell) -> usize {
        let index = self.cells.len();
        self.rows[cell.row].push(index);
        self.cells.push(cell);
        self.up.push(Vec::new());
        self.down.push(Vec::new());
        index
    }

    fn join(&mut self, above: usize, below: usize) {
        // Lines that are shared are joined again and again, one after the other.
        if self.down[above].last() != Some(&below) && !self.up[below].contains(&above) {
            self.down[above].push(below);
            self.up[below].push(above);
        }
    }
}

/// A link within a part: its upper and lower box in the part.
#[derive(Clone, Copy, Debug)]
struct Down {
    upper: usize,
    lower: usize,
    /// The link runs upwards.
    is_back: bool,
}

/// Lays out what is linked.
fn layout_component(
    part: &Part,
    sizes: &[Size],
    inner: &[Size],
    links: &[Link],
    width: f64,
) -> Result<Layout, TooLarge> {
    let within: BTreeMap<usize, usize> =
        part.boxes.iter().enumerate().map(|(inside, index)| (*index, inside)).collect();
    let here: Vec<&Link> = part.links.iter().map(|index| &links[*index]).collect();
    let boxes: Vec<Size> = part.boxes.iter().map(|index| sizes[*index]).collect();
    let order =
        order_boxes(boxes.len(), here.iter().map(|link| (within[&link.from], within[&link.to], link.kind.is_some())));
    let downs: Vec<Down> = here
        .iter()
        .map(|link| {
            let (from, to) = (within[&link.from], within[&link.to]);
            let is_back = order[from] > order[to];
            let (upper, lower) = if is_back { (to, from) } else { (from, to) };
            Down { upper, lower, is_back }
        })
        .collect();
    let ranks = rank_boxes(&boxes, &order, &downs, width);
    let shared = classify_sharing(&downs, &here);
    let insides: Vec<Size> = part.boxes.iter().map(|index| inner[*index]).collect();
    let (mut grid, routes) = build_grid(&boxes, &insides, &ranks, &downs, &here, &shared)?;
    cross::order_cells(&mut grid);
    let x = place::compute_columns(&grid);
    Ok(place::build_layout(&grid, &x, &insides, &here, &downs, &routes))
}

/// The place of each box in an order that links follow, as far as they do not run in a circle: those with a kind come
/// first, then declaration.
fn order_boxes(count: usize, links: impl Iterator<Item = (usize, usize, bool)>) -> Vec<usize> {
    let mut after = vec![Vec::new(); count];
    let (mut strong, mut all) = (vec![0_usize; count], vec![0_usize; count]);
    for (from, to, is_strong) in links {
        after[from].push((to, is_strong));
        all[to] += 1;
        strong[to] += usize::from(is_strong);
    }
    // Three heaps of one: what waits for nothing, what waits for links without a kind only, and the rest.
    let class = |strong: usize, all: usize| match (strong, all) {
        (0, 0) => 0,
        (0, _) => 1,
        _ => 2,
    };
    let mut waiting: std::collections::BTreeSet<(usize, usize)> =
        (0..count).map(|index| (class(strong[index], all[index]), index)).collect();
    let mut order = vec![0; count];
    let mut next = 0;
    while let Some((_, index)) = waiting.pop_first() {
        order[index] = next;
        next += 1;
        for &(to, is_strong) in &after[index] {
            let removed = waiting.remove(&(class(strong[to], all[to]), to));
            all[to] -= 1;
            strong[to] -= usize::from(is_strong);
            // In a circle the box may have its place already: it is not put back.
            if removed {
                waiting.insert((class(strong[to], all[to]), to));
            }
        }
    }
    order
}

/// The rank of each box: below all that leads to it, and no row wider than this.
fn rank_boxes(boxes: &[Size], order: &[usize], downs: &[Down], width: f64) -> Vec<usize> {
    let mut by_order: Vec<usize> = (0..boxes.len()).collect();
    by_order.sort_by_key(|index| order[*index]);
    let (mut ups, mut lowers) = (vec![Vec::new(); boxes.len()], vec![Vec::new(); boxes.len()]);
    for down in downs {
        ups[down.lower].push(down.upper);
        lowers[down.upper].push(down.lower);
    }
    let mut rows: Vec<f64> = Vec::new();
    let mut ranks = vec![0; boxes.len()];
    for &index in &by_order {
        // What stands above comes earlier in the order, so its rank is known.
        let mut rank = ups[index].iter().map(|upper| ranks[*upper] + 1).max().unwrap_or(0);
        let wide = boxes[index].width + BESIDE;
        // An empty row takes a box of any width, so the search ends.
        while rows.get(rank).is_some_and(|used| *used > 0.0 && used + wide > width) {
            rank += 1;
        }
        rows.resize(rows.len().max(rank + 1), 0.0);
        rows[rank] += wide;
        ranks[index] = rank;
    }
    // What has more below it than above goes down to it, so that its links are short.
    for &index in by_order.iter().rev().filter(|index| lowers[**index].len() > ups[**index].len()) {
        let Some(lowest) = lowers[index].iter().map(|lower| ranks[*lower]).min() else { continue };
        let wide = boxes[index].width + BESIDE;
        let found = (ranks[index] + 1..lowest).rev().find(|rank| rows[*rank] + wide <= width);
        if let Some(rank) = found {
            rows[ranks[index]] -= wide;
            rows[rank] += wide;
            ranks[index] = rank;
        }
    }
    // Rows that everything left are gone.
    let mut used: Vec<usize> = ranks.clone();
    used.sort_unstable();
    used.dedup();
    ranks.iter().map(|rank| used.partition_point(|other| other < rank)).collect()
}

/// Which line a link takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shared {
    /// Its own.
    No(usize),
    /// That of a kind which leads to a box.
    Into(usize, usize, bool),
    /// That of a kind which comes from a box.
    OutOf(usize, usize, bool),
}

fn classify_sharing(downs: &[Down], links: &[&Link]) -> Vec<Shared> {
    let mut counts: BTreeMap<Shared, usize> = BTreeMap::new();
    let ends = |index: usize| {
        let down = downs[index];
        links[index]
            .kind
            .map(|kind| (Shared::Into(down.lower, kind, down.is_back), Shared::OutOf(down.upper, kind, down.is_back)))
    };
    for (into, out_of) in (0..downs.len()).filter_map(ends) {
        *counts.entry(into).or_default() += 1;
        *counts.entry(out_of).or_default() += 1;
    }
    // A few lines are clearer alone; a label is said once.
    let few = |index: usize, count: usize| links[index].label.width == 0.0 && count < 4;
    (0..downs.len())
        .map(|index| match ends(index) {
            Some((into, out_of)) if few(index, counts[&into].max(counts[&out_of])) => Shared::No(index),
            Some((into, out_of)) if counts[&out_of] > counts[&into] => out_of,
            Some((into, _)) => into,
            None => Shared::No(index),
        })
        .collect()
}

/// The grid, and for each link the cells it passes, from the upper box to the lower one.
fn build_grid(
    boxes: &[Size],
    inner: &[Size],
    ranks: &[usize],
    downs: &[Down],
    links: &[&Link],
    shared: &[Shared],
) -> Result<(Grid, Vec<Vec<usize>>), TooLarge> {
    let count = ranks.iter().max().map_or(0, |last| last + 1);
    // A label has a row of its own: next to the box that its line is shared at, else above the lower one.
    let above = |index: usize| match shared[index] {
        Shared::OutOf(..) => ranks[downs[index].upper],
        _ => ranks[downs[index].lower].saturating_sub(1),
    };
    let mut labelled = vec![false; count];
    for index in (0..downs.len()).filter(|index| links[*index].label.width > 0.0) {
        labelled[above(index)] = true;
    }
    let mut row_of = vec![0; count];
    for rank in 1..count {
        row_of[rank] = row_of[rank - 1] + 1 + usize::from(labelled[rank - 1]);
    }
    let rows = row_of.last().map_or(0, |last| last + 1);
    let mut grid = Grid { rows: vec![Vec::new(); rows], ..Grid::default() };
    for (index, size) in boxes.iter().enumerate() {
        let axis = (inner[index].width - size.width) / 2.0;
        grid.add(Cell { size: *size, axis, row: row_of[ranks[index]], kind: CellKind::Box });
    }
    let mut bends: BTreeMap<(Shared, usize), usize> = BTreeMap::new();
    let mut routes = Vec::with_capacity(downs.len());
    let mut cost = 0;
    for (index, down) in downs.iter().enumerate() {
        let label = (links[index].label.width > 0.0).then(|| row_of[above(index)] + 1);
        let (first, last) = (grid.cells[down.upper].row, grid.cells[down.lower].row);
        // A shared cell is made once, but every link that passes it has a place in its route for it.
        cost += last - first;
        if grid.cells.len() + cost / 8 > MOST {
            return Err(TooLarge);
        }
        let mut route = vec![down.upper];
        for row in first + 1..last {
            let is_label = label == Some(row);
            let cell = *bends.entry((shared[index], row)).or_insert_with(|| {
                let kind = if is_label { CellKind::Label } else { CellKind::Bend };
                let size = if is_label { links[index].label } else { Size::default() };
                grid.add(Cell { size, axis: 0.0, row, kind })
            });
            route.push(cell);
        }
        route.push(down.lower);
        route.windows(2).for_each(|pair| grid.join(pair[0], pair[1]));
        routes.push(route);
    }
    Ok((grid, routes))
}

impl std::ops::Add for Point {
    type Output = Point;

    fn add(self, other: Point) -> Point {
        Point { x: self.x + other.x, y: self.y + other.y }
    }
}

impl Wire {
    pub(super) fn shift_by(mut self, by: Point) -> Wire {
        self.parts.iter_mut().flatten().for_each(|point| *point = *point + by);
        if let Some(label) = &mut self.label {
            label.at = label.at + by;
        }
        self
    }
}
