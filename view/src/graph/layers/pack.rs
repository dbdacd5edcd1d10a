//! What is not linked: found, and put next to each other on shelves.

use super::{BESIDE, Link, Part, Point, Size};

/// The parts of a graph that no link joins, in the order of their first boxes.
pub(super) fn find_components(count: usize, links: &[Link]) -> Vec<Part> {
    let mut parents: Vec<usize> = (0..count).collect();
    for link in links {
        let (a, b) = (find_root(&mut parents, link.from), find_root(&mut parents, link.to));
        parents[a.max(b)] = a.min(b);
    }
    let mut parts: Vec<Part> = Vec::new();
    let mut part_of = vec![usize::MAX; count];
    for index in 0..count {
        let root = find_root(&mut parents, index);
        if part_of[root] == usize::MAX {
            part_of[root] = parts.len();
            parts.push(Part::default());
        }
        parts[part_of[root]].boxes.push(index);
    }
    for (index, link) in links.iter().enumerate().filter(|(_, link)| link.from != link.to) {
        let root = find_root(&mut parents, link.from);
        parts[part_of[root]].links.push(index);
    }
    parts
}

fn find_root(parents: &mut [usize], mut index: usize) -> usize {
    while parents[index] != index {
        parents[index] = parents[parents[index]];
        index = parents[index];
    }
    index
}

/// The upper left corners of things put in lines as wide as this, and how large all of it is.
pub(super) fn pack_shelves(sizes: &[Size], width: f64, whole: &mut Size) -> Vec<Point> {
    let (mut at, mut height) = (Point::default(), 0.0_f64);
    let mut corners = Vec::with_capacity(sizes.len());
    for size in sizes {
        // What is wider than a shelf has one for itself.
        if at.x > 0.0 && at.x + size.width > width {
            at = Point { x: 0.0, y: at.y + height + BESIDE };
            height = 0.0;
        }
        corners.push(at);
        *whole = Size { width: whole.width.max(at.x + size.width), height: whole.height.max(at.y + size.height) };
        at.x += size.width + BESIDE;
        height = height.max(size.height);
    }
    corners
}
