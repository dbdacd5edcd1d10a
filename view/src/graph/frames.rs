//! From a graph with frames to a picture: each frame is laid out by itself, and is then one box of what is around it.
//!
//! In: a graph. Out: rectangles, lines and labels, from 0 to the picture's size. An arrow between boxes of different frames
//! ends at the frames that stand next to each other; its label then says which boxes it means.

use std::collections::BTreeMap;

use unicode_width::UnicodeWidthStr;

use super::layers::{Layout, Link, Point, Rect, Size, TooLarge, Wire, layout_boxes};
use super::{Arrow, Graph, Group, Node, Shape};

/// The width of a character of the name of a box, in any fixed-width font; wide ones take two.
const NAME: f64 = 8.1;
/// The width of a character of everything else.
const SMALL: f64 = 6.9;
/// The height of the line with the name of a box.
pub const NAME_LINE: f64 = 17.0;
/// The height of any other line.
pub const LINE: f64 = 15.0;
/// Between a frame and what is in it.
const INSIDE: f64 = 18.0;
/// Between a box and its text.
const PADDING: f64 = 9.0;
/// Rows of boxes are this wide, or as wide as all of them together are high.
const WIDTH: f64 = 900.0;
/// Around everything.
const MARGIN: f64 = 12.0;
/// What the sides of hexagons and the like take.
pub const SLANT: f64 = 12.0;

/// A graph with the place of each of its parts.
#[derive(Debug, Default)]
pub struct Picture<'g> {
    /// Of the whole picture.
    pub size: Size,
    /// The outer ones first.
    pub frames: Vec<(Rect, &'g Group)>,
    /// Those of all frames.
    pub boxes: Vec<(Rect, &'g Node)>,
    /// The lines of the arrows.
    pub wires: Vec<Drawn<'g>>,
}

/// An arrow with its line.
#[derive(Debug)]
pub struct Drawn<'g> {
    /// The line.
    pub wire: Wire,
    /// The lines of its label.
    pub label: Vec<String>,
    /// Nothing for the line from a frame to itself: it repeats.
    pub arrow: Option<&'g Arrow>,
}

/// Places all parts of a graph.
///
/// # Errors
/// There is too much to lay out.
pub fn layout_picture(graph: &Graph) -> Result<Picture<'_>, TooLarge> {
    let mut arrows = lift_arrows(graph);
    let mut picture =
        layout_group(&[], &graph.groups, &mut Vec::new(), &mut arrows)?.shift_by(Point { x: MARGIN, y: MARGIN });
    picture.size = Size { width: picture.size.width + 2.0 * MARGIN, height: picture.size.height + 2.0 * MARGIN };
    Ok(picture)
}

/// An arrow between two things in one frame.
struct Lifted<'g> {
    from: usize,
    to: usize,
    label: Vec<String>,
    arrow: Option<&'g Arrow>,
}

/// The arrows of each frame, by the frame's path: the index of its child at each level, boxes first, then frames.
fn lift_arrows(graph: &Graph) -> BTreeMap<Vec<usize>, Vec<Lifted<'_>>> {
    let (mut paths, mut lifted) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
    for (index, group) in graph.groups.iter().enumerate() {
        visit_groups(group, &mut vec![index], &mut |id, name, path| _ = paths.insert(id, (name, path.to_vec())));
        walk_repeats(group, &mut vec![index], &mut lifted);
    }
    for arrow in &graph.arrows {
        let ends = (paths.get(arrow.from.as_str()), paths.get(arrow.to.as_str()));
        let (Some((from_name, from)), Some((to_name, to))) = ends else { continue };
        // Paths of a frame and of a part of it share all of the shorter one: that arrow leads from the frame to itself.
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count().min(from.len().min(to.len()) - 1);
        let mut label: Vec<String> = Some(arrow.label.clone()).filter(|label| !label.is_empty()).into_iter().collect();
        if from.len().max(to.len()) > shared + 1 {
            label.push(format!("{from_name} {} {to_name}", if arrow.both { "↔" } else { "→" }));
        }
        let one = Lifted { from: from[shared], to: to[shared], label, arrow: Some(arrow) };
        lifted.entry(from[..shared].to_vec()).or_default().push(one);
    }
    lifted
}

/// Tells of each box and frame its id, name and path.
fn visit_groups<'g>(group: &'g Group, path: &mut Vec<usize>, tell: &mut impl FnMut(&'g str, &'g str, &[usize])) {
    tell(&group.id, &group.name, path);
    for (index, node) in group.nodes.iter().enumerate() {
        path.push(index);
        tell(&node.id, node.lines.first().map_or("", String::as_str), path);
        path.pop();
    }
    for (index, inner) in group.groups.iter().enumerate() {
        path.push(group.nodes.len() + index);
        visit_groups(inner, path, tell);
        path.pop();
    }
}

/// An arrow from a frame to itself for each that repeats.
fn walk_repeats<'g>(group: &'g Group, path: &mut Vec<usize>, lifted: &mut BTreeMap<Vec<usize>, Vec<Lifted<'g>>>) {
    if let Some((index, outer)) = path.split_last().filter(|_| !group.repeat.is_empty()) {
        let one = Lifted { from: *index, to: *index, label: group.repeat.clone(), arrow: None };
        lifted.entry(outer.to_vec()).or_default().push(one);
    }
    for (index, inner) in group.groups.iter().enumerate() {
        path.push(group.nodes.len() + index);
        walk_repeats(inner, path, lifted);
        path.pop();
    }
}

/// Draws what is in a frame, from 0.
fn layout_group<'g>(
    nodes: &'g [Node],
    groups: &'g [Group],
    path: &mut Vec<usize>,
    arrows: &mut BTreeMap<Vec<usize>, Vec<Lifted<'g>>>,
) -> Result<Picture<'g>, TooLarge> {
    let mut sizes: Vec<Size> = nodes.iter().map(node_size).collect();
    let mut inner = Vec::with_capacity(groups.len());
    for (index, group) in groups.iter().enumerate() {
        path.push(nodes.len() + index);
        let drawn = layout_group(&group.nodes, &group.groups, path, arrows)?;
        path.pop();
        sizes.push(Size {
            width: drawn.size.width.max(title_width(group)) + 2.0 * INSIDE,
            height: drawn.size.height + 2.0 * INSIDE + heading_height(group),
        });
        inner.push(drawn);
    }
    let arrows = arrows.remove(path).unwrap_or_default();
    let mut kinds: BTreeMap<&[String], usize> = BTreeMap::new();
    let links: Vec<Link> = arrows
        .iter()
        .map(|Lifted { from, to, label, arrow }| {
            let next = kinds.len();
            let is_message = arrow.is_some_and(|arrow| arrow.is_message);
            let kind = (!is_message).then(|| *kinds.entry(label).or_insert(next));
            Link { from: *from, to: *to, label: label_size(label), kind }
        })
        .collect();
    let Layout { size, boxes, wires } = layout_boxes(&sizes, &links, WIDTH)?;
    let rect = |index: usize| Rect { at: boxes[index], size: sizes[index] };
    let mut picture = Picture { size, ..Picture::default() };
    picture.boxes.extend(nodes.iter().enumerate().map(|(index, node)| (rect(index), node)));
    picture.wires.extend(wires.into_iter().zip(arrows).map(|(wire, Lifted { label, arrow, .. })| Drawn {
        wire,
        label,
        arrow,
    }));
    for (index, (group, drawn)) in groups.iter().zip(inner).enumerate() {
        let rect = rect(nodes.len() + index);
        picture.frames.push((rect, group));
        // In the middle, where the title is wider.
        let aside = (rect.size.width - drawn.size.width) / 2.0;
        let drawn = drawn.shift_by(rect.at + Point { x: aside, y: INSIDE + heading_height(group) });
        picture.frames.extend(drawn.frames);
        picture.boxes.extend(drawn.boxes);
        picture.wires.extend(drawn.wires);
    }
    Ok(picture)
}

impl Drawn<'_> {
    /// What it is, in words.
    pub fn describe(&self) -> String {
        match self.arrow {
            Some(arrow) => arrow.about.clone(),
            None => self.label.join("\n"),
        }
    }
}

impl Picture<'_> {
    fn shift_by(mut self, by: Point) -> Self {
        let rects = self.frames.iter_mut().map(|frame| &mut frame.0);
        rects.chain(self.boxes.iter_mut().map(|node| &mut node.0)).for_each(|rect| rect.at = rect.at + by);
        self.wires.iter_mut().for_each(|drawn| drawn.wire = std::mem::take(&mut drawn.wire).shift_by(by));
        self
    }
}

/// How high the title of a frame is.
fn heading_height(group: &Group) -> f64 {
    NAME_LINE + group.notes.len() as f64 * LINE
}

fn title_width(group: &Group) -> f64 {
    group.notes.iter().map(|line| count_cells(line) * SMALL).fold(count_cells(&group.title) * NAME, f64::max)
}

fn count_cells(text: &str) -> f64 {
    text.width() as f64
}

fn node_size(node: &Node) -> Size {
    let widths =
        node.lines.iter().enumerate().map(|(index, line)| count_cells(line) * if index == 0 { NAME } else { SMALL });
    // The slanted and pointed sides of some shapes.
    let sides = match node.shape {
        Shape::Gate | Shape::Value | Shape::Stop => 2.0 * SLANT,
        _ => 0.0,
    };
    let lines = node.lines.len().saturating_sub(1) as f64;
    Size {
        width: (widths.fold(0.0, f64::max) + 2.0 * PADDING + sides).max(60.0),
        height: NAME_LINE + lines * LINE + 2.0 * PADDING,
    }
}

fn label_size(lines: &[String]) -> Size {
    let width = lines.iter().map(|line| count_cells(line) * SMALL).fold(0.0, f64::max);
    Size { width, height: lines.len() as f64 * LINE }
}
