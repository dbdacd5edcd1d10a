//! Draws a graph without circles from left to right: what waits for nothing stands left, and lines lead to what waits for it.
//!
//! In: texts, and for each the texts that it waits for. Out: lines of characters. Each text stands in the column after the last
//! one that it waits for; a line that passes a column has a row of its own there. In the gap between two columns each text has a
//! place of its own for the part of its line that goes up or down, so that two lines only ever cross.

use unicode_width::UnicodeWidthStr;

/// The directions that the lines of a cell lead to.
const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;

/// What stands in a row of a column.
struct Place {
    /// The text, or none where a line passes.
    text: Option<usize>,
    row: usize,
    /// The places of the column before that lines lead here from.
    from: Vec<usize>,
}

/// The lines of the picture; none where it is wider than `width`, or cannot be drawn so.
pub(super) fn draw_layers(texts: &[String], needs: &[Vec<usize>], width: usize) -> Option<Vec<String>> {
    let depths = measure_depths(needs)?;
    let columns = place_texts(&depths, needs);
    let rows = columns.iter().flatten().map(|place| place.row + 1).max().unwrap_or(0);
    let mut lines = vec![String::new(); rows];
    let mut used = 0;
    for (at, column) in columns.iter().enumerate() {
        let text_width = |place: &Place| place.text.map_or(0, |text| texts[text].width());
        let wide = column.iter().map(text_width).max().unwrap_or(0) + 1;
        let gap = match at {
            0 => vec![String::new(); rows],
            _ => draw_gap(&columns[at - 1], column, rows)?,
        };
        used += wide + gap.first().map_or(0, |gap| gap.width());
        // Every column ends with a blank; that of the last one may fall off the screen.
        if used > width + 1 {
            return None;
        }
        let next = columns.get(at + 1).map_or(&[][..], Vec::as_slice);
        let mut cells = vec![" ".repeat(wide); rows];
        for (index, place) in column.iter().enumerate() {
            let text = place.text.map_or(String::new(), |text| format!("{} ", texts[text]));
            let goes_on = next.iter().any(|to| to.from.contains(&index));
            let rest = if goes_on { "─" } else { " " }.repeat(wide.saturating_sub(text.width()));
            cells[place.row] = text + &rest;
        }
        for ((line, gap), cell) in lines.iter_mut().zip(gap).zip(cells) {
            line.push_str(&gap);
            line.push_str(&cell);
        }
    }
    Some(lines.into_iter().map(|line| line.trim_end().to_owned()).collect())
}

/// How many texts stand before each on the longest way to it; none where there is a circle.
fn measure_depths(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut depths: Vec<Option<usize>> = vec![None; needs.len()];
    // Without a circle no way is longer than this, so what has no depth in the end stands on a circle or behind one.
    for _ in 0..needs.len() {
        for (text, needs) in needs.iter().enumerate() {
            let before: Option<Vec<usize>> = needs.iter().map(|need| depths[*need]).collect();
            depths[text] = before.map(|before| before.iter().max().map_or(0, |deepest| deepest + 1));
        }
    }
    depths.into_iter().collect()
}

/// The columns. A place stands about as high as what leads to it, so that lines are short.
fn place_texts(depths: &[usize], needs: &[Vec<usize>]) -> Vec<Vec<Place>> {
    let last = depths.iter().copied().max().unwrap_or(0);
    let mut columns: Vec<Vec<Place>> = Vec::new();
    // For each text, where its line is in the last column, as long as some text further right waits for it.
    let mut ends: Vec<Option<usize>> = vec![None; depths.len()];
    for depth in 0..=last {
        let is_needed = |text: usize| needs.iter().zip(depths).any(|(needs, at)| *at > depth && needs.contains(&text));
        let mut wanted: Vec<(usize, Option<usize>, usize)> = Vec::new();
        for text in 0..depths.len() {
            if depths[text] == depth {
                let before = columns.last().map_or(0, |column| {
                    let rows: Vec<usize> =
                        needs[text].iter().filter_map(|need| ends[*need]).map(|end| column[end].row).collect();
                    rows.iter().sum::<usize>() / rows.len().max(1)
                });
                wanted.push((before, Some(text), text));
            } else if depths[text] < depth && is_needed(text) {
                let row = columns.last().zip(ends[text]).map_or(0, |(column, end)| column[end].row);
                wanted.push((row, None, text));
            }
        }
        // At one height a line that passes comes before a text, so that the line stays straight.
        wanted.sort_by_key(|(row, text, of)| (*row, text.is_some(), *of));
        let mut next = 0;
        let mut column = Vec::new();
        let mut new_ends = vec![None; depths.len()];
        for (row, text, of) in wanted {
            let row = row.max(next);
            next = row + 1;
            let from = match text {
                Some(text) => needs[text].iter().filter_map(|need| ends[*need]).collect(),
                None => ends[of].into_iter().collect(),
            };
            new_ends[of] = Some(column.len());
            column.push(Place { text, row, from });
        }
        ends = new_ends;
        columns.push(column);
    }
    columns
}

/// The places of a column whose lines go up or down to the next one, in the order of their lanes from the left; none where two
/// lines would lie on each other in any order.
fn order_bent(before: &[Place], column: &[Place]) -> Option<Vec<usize>> {
    let bends = |from: &usize| column.iter().any(|place| place.from.contains(from) && place.row != before[*from].row);
    let mut left: Vec<usize> = (0..before.len()).filter(bends).collect();
    // A line goes up or down before another one comes to its row, where that leads to something else.
    let is_before = |one: usize, other: usize| {
        let mut there = column.iter().filter(|place| place.row == before[one].row);
        one != other && there.any(|place| place.from.contains(&other) && !place.from.contains(&one))
    };
    let mut lanes = Vec::new();
    while !left.is_empty() {
        let next = left.iter().position(|place| !left.iter().any(|other| is_before(*other, *place)))?;
        lanes.push(left.remove(next));
    }
    Some(lanes)
}

/// The lines between two columns, in so many rows; none where they cannot be told apart.
fn draw_gap(before: &[Place], column: &[Place], rows: usize) -> Option<Vec<String>> {
    let lanes = order_bent(before, column)?;
    // A lane for each, and the place before the next column.
    let last = lanes.len().max(1);
    let mut cells = vec![vec![0_u8; last + 1]; rows];
    for (from, start) in before.iter().enumerate() {
        let ends = column.iter().filter(|place| place.from.contains(&from));
        let Some(lane) = lanes.iter().position(|bent| *bent == from) else {
            ends.for_each(|end| cells[end.row][..last].iter_mut().for_each(|cell| *cell |= LEFT | RIGHT));
            continue;
        };
        cells[start.row][..lane].iter_mut().for_each(|cell| *cell |= LEFT | RIGHT);
        cells[start.row][lane] |= LEFT;
        for end in ends {
            let (top, bottom) = (start.row.min(end.row), start.row.max(end.row));
            for (row, line) in cells.iter_mut().enumerate().take(bottom + 1).skip(top) {
                line[lane] |= if row > top { UP } else { 0 } | if row < bottom { DOWN } else { 0 };
            }
            cells[end.row][lane] |= RIGHT;
            cells[end.row][lane + 1..last].iter_mut().for_each(|cell| *cell |= LEFT | RIGHT);
        }
    }
    // Beside a line that passes the column, the line goes on.
    for place in column.iter().filter(|place| place.text.is_none()) {
        cells[place.row][last] |= LEFT | RIGHT;
    }
    Some(cells.into_iter().map(|line| line.into_iter().map(draw_cell).collect()).collect())
}

fn draw_cell(leads: u8) -> char {
    const SIGNS: [char; 16] = [' ', '│', '│', '│', '─', '┘', '┐', '┤', '─', '└', '┌', '├', '─', '┴', '┬', '┼'];
    SIGNS[usize::from(leads)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(graph: &[(&str, &[&str])], width: usize) -> Option<String> {
        let place = |name: &str| graph.iter().position(|(known, _)| *known == name).expect("it is there");
        let texts: Vec<String> = graph.iter().map(|(name, _)| (*name).to_owned()).collect();
        let needs: Vec<Vec<usize>> =
            graph.iter().map(|(_, needs)| needs.iter().map(|need| place(need)).collect()).collect();
        draw_layers(&texts, &needs, width).map(|lines| lines.join("\n"))
    }

    #[test]
    fn lines_lead_from_left_to_right() {
        let chain = draw(&[("a", &[]), ("bb", &["a"]), ("c", &["bb"])], 80);
        assert_eq!(chain.as_deref(), Some("a ─ bb ─ c"));
        let diamond = [("api", &[][..]), ("parser", &["api"]), ("tests", &["api"]), ("merge", &["parser", "tests"])];
        assert_eq!(draw(&diamond, 80).as_deref(), Some("api ┬ parser ┬ merge\n    └ tests ─┘"));
        assert_eq!(draw(&diamond, 20).map(|text| text.lines().count()), Some(2));
        assert_eq!(draw(&diamond, 19), None, "it is too wide");
    }

    #[test]
    fn a_line_passes_columns_in_between() {
        let drawn = draw(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &["a", "c"])], 80);
        assert_eq!(drawn.as_deref(), Some("a ┬───────┬ d\n  └ b ─ c ┘"));
        assert_eq!(draw(&[("alone", &[]), ("other", &[])], 80).as_deref(), Some("alone\nother"));
        assert_eq!(draw(&[], 80).as_deref(), Some(""));
        assert_eq!(draw(&[("a", &["b"]), ("b", &["a"])], 80), None, "a circle");
    }

    /// Follows the lines of a picture from a text to all that they lead to.
    fn follow(lines: &[Vec<char>], row: usize, end: usize) -> Vec<(usize, usize)> {
        let leads = |sign: char| (1..16_u8).rev().find(|leads| draw_cell(*leads) == sign).unwrap_or(0);
        let at = |row: usize, x: usize| lines.get(row).and_then(|line| line.get(x)).copied().unwrap_or(' ');
        let (mut open, mut seen, mut found) = (vec![(row, end + 1, RIGHT)], Vec::new(), Vec::new());
        while let Some(step @ (row, x, going)) = open.pop() {
            if seen.contains(&step) {
                continue;
            }
            seen.push(step);
            let sign = at(row, x);
            if sign.is_alphanumeric() {
                found.push((row, x));
                continue;
            }
            // A blank stands between a line and a text.
            if sign == ' ' && going == RIGHT && at(row, x + 1).is_alphanumeric() {
                found.push((row, x + 1));
            }
            let leads = leads(sign);
            // At a crossing a line goes straight on or turns to the right, never back.
            if leads & RIGHT != 0 {
                open.push((row, x + 1, RIGHT));
            }
            if leads & UP != 0 && going != DOWN && row > 0 {
                open.push((row - 1, x, UP));
            }
            if leads & DOWN != 0 && going != UP {
                open.push((row + 1, x, DOWN));
            }
        }
        found
    }

    #[test]
    fn each_line_leads_to_what_waits_and_texts_never_touch() {
        // Some hundred graphs, the same ones in each run.
        let mut seed = 7_u64;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let mut drawn = 0;
        for _ in 0..300 {
            let count = 2 + next(9);
            let texts: Vec<String> = (0..count).map(|text| format!("t{text}")).collect();
            let needs: Vec<Vec<usize>> = (0..count).map(|text| (0..text).filter(|_| next(4) == 0).collect()).collect();
            let Some(lines) = draw_layers(&texts, &needs, 500) else { continue };
            drawn += 1;
            let lines: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
            for text in 0..count {
                let name: Vec<char> = texts[text].chars().collect();
                let place = lines.iter().enumerate().find_map(|(row, line)| {
                    let is_here = |x: &usize| {
                        line[*x..].starts_with(&name)
                            && line.get(x + name.len()).is_none_or(|sign| !sign.is_alphanumeric())
                    };
                    (0..line.len()).find(is_here).map(|x| (row, x))
                });
                let (row, x) = place.unwrap_or_else(|| panic!("{text} is missing: {lines:?}"));
                let reached = follow(&lines, row, x + name.len());
                for (waiting, needs) in needs.iter().enumerate() {
                    let (row, _) = (0..lines.len())
                        .flat_map(|row| (0..lines[row].len()).map(move |x| (row, x)))
                        .find(|(row, x)| {
                            let name: Vec<char> = texts[waiting].chars().collect();
                            lines[*row][*x..].starts_with(&name)
                                && lines[*row].get(x + name.len()).is_none_or(|sign| !sign.is_alphanumeric())
                        })
                        .expect("it is there");
                    let leads = reached.iter().any(|(at, x)| {
                        let name: Vec<char> = texts[waiting].chars().collect();
                        *at == row && lines[*at][*x..].starts_with(&name)
                    });
                    assert!(!needs.contains(&text) || leads, "{text} does not lead to {waiting}: {lines:?}");
                }
            }
        }
        assert!(drawn > 200, "{drawn} of 300 can be drawn");
    }
}
