//! What every picture keeps to: of the examples, of graphs made up, and of the worst that can be made up.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::prelude::*;

use swarmc_view::graph::{Arrow, Drawn, Group, Node, Picture, Point, Rect, Shape, layout_picture};

use super::*;

const SPEC: &str = r#"
workflow w { default p }
provider local { script { answer "x" } }
agent a provider=local
pipeline p {
    budget calls=200
    task plan { prompt "Plan \"it\"." }
    loop rounds max=3 { task work { run ls }; task judge { prompt "<<output:work>> <<output:plan>>" }; until "output.judge == \"ok\"" }
    gate go { message "Go?"; options yes no; headless no; depends-on rounds }
    task each { for-each "range(3)"; call other; when "output.go.choice == 'yes'" }
    task last { depends-on each when=always; value "x" }
    edges { plan -> judge }
}
pipeline other { task x { run ls } }
swarm s { goal "x"; supervisor lead agent=a; member one agent=a "y"; member two agent=a "z"; edges { one <-> two } }
"#;

fn drawn() -> Graph {
    let files = BTreeMap::from([("a.kdl".to_owned(), SPEC.to_owned())]);
    let compilation = swarmc_compiler::compile("a.kdl", &files);
    let plan = compilation.plan.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    Graph::build(&plan, None).expect("a plan has a picture")
}

#[test]
fn mermaid_has_every_step_and_every_arrow() {
    insta::assert_snapshot!(write::render_mermaid(&drawn()), @r##"
    %%{init: {"flowchart": {"subGraphTitleMargin": {"bottom": 24}}}}%%
    flowchart TB
        subgraph n_pipeline__p ["pipeline p"]
            direction TB
            n_p__plan("plan<br>agent a")
            n_p__go{{"go<br>yes / no"}}
            n_p__each[["each<br>call other<br>for each of range(3)<br>when output.go.choice == 'yes'"]]
            n_p__last[/"last"/]
            subgraph n_p__rounds ["loop rounds, at most 3 rounds<br>until output.judge == #34;ok#34;"]
                direction TB
                n_p__work["work"]
                n_p__judge("judge<br>agent a")
            end
        end
        subgraph n_pipeline__other ["pipeline other"]
            direction TB
            n_other__x["x"]
        end
        subgraph n_swarm__s ["swarm s"]
            direction TB
            n_s__lead("lead<br>supervisor, agent a")
            n_s__one("one<br>agent a")
            n_s__two("two<br>agent a")
        end
        n_p__plan --> n_p__rounds
        n_p__work --> n_p__judge
        n_p__rounds --> n_p__go
        n_p__go --> n_p__each
        n_p__each -->|"ended"| n_p__last
        n_p__plan -.->|"handoff"| n_p__judge
        n_s__one <-.->|"handoff"| n_s__two
    "##);
}

#[test]
fn dot_has_every_step_and_every_arrow() {
    insta::assert_snapshot!(write::render_dot(&drawn()), @r##"
    digraph workflow {
        compound=true;
        fontname="sans-serif";
        node [fontname="sans-serif"];
        edge [fontname="sans-serif"];
        subgraph "cluster_n_pipeline__p" {
            label="pipeline p";
            n_p__plan [shape=box, style=rounded, label="plan\nagent a"];
            n_p__go [shape=hexagon, label="go\nyes / no"];
            n_p__each [shape=box, peripheries=2, label="each\ncall other\nfor each of range(3)\nwhen output.go.choice == 'yes'"];
            n_p__last [shape=parallelogram, label="last"];
            subgraph "cluster_n_p__rounds" {
                label="loop rounds, at most 3 rounds\nuntil output.judge == \"ok\"";
                n_p__work [shape=box, label="work"];
                n_p__judge [shape=box, style=rounded, label="judge\nagent a"];
            }
        }
        subgraph "cluster_n_pipeline__other" {
            label="pipeline other";
            n_other__x [shape=box, label="x"];
        }
        subgraph "cluster_n_swarm__s" {
            label="swarm s";
            n_s__lead [shape=box, style=rounded, label="lead\nsupervisor, agent a"];
            n_s__one [shape=box, style=rounded, label="one\nagent a"];
            n_s__two [shape=box, style=rounded, label="two\nagent a"];
        }
        n_p__plan -> n_p__work [lhead="cluster_n_p__rounds"];
        n_p__work -> n_p__judge;
        n_p__judge -> n_p__go [ltail="cluster_n_p__rounds"];
        n_p__go -> n_p__each;
        n_p__each -> n_p__last [label="ended"];
        n_p__plan -> n_p__judge [label="handoff", style=dashed];
        n_s__one -> n_s__two [label="handoff", style=dashed, dir=both];
    }
    "##);
}

/// A picture as a reader sees it: nothing on top of anything else, and lines that end where they should.
fn assert_readable(picture: &Picture<'_>, graph: &Graph) {
    let whole = Rect { at: Point::default(), size: picture.size };
    let frames: Vec<Rect> = picture.frames.iter().map(|frame| frame.0).collect();
    let boxes: Vec<Rect> = picture.boxes.iter().map(|node| node.0).collect();
    for (index, a) in boxes.iter().enumerate() {
        assert!(is_inside(*a, whole), "a box is outside");
        assert!(boxes[..index].iter().all(|b| !overlap(*a, *b)), "boxes overlap: {:?}", picture.boxes[index].1);
        assert!(frames.iter().all(|frame| !overlap(*a, *frame) || is_inside(*a, *frame)), "a box is on a frame");
    }
    for (index, a) in frames.iter().enumerate() {
        assert!(is_inside(*a, whole), "a frame is outside");
        let apart = |b: &Rect| !overlap(*a, *b) || is_inside(*a, *b) || is_inside(*b, *a);
        assert!(frames[..index].iter().all(apart), "frames overlap");
    }
    let mut labels: Vec<Rect> = picture.wires.iter().filter_map(|drawn| drawn.wire.label).collect();
    labels.sort_by(|a, b| a.at.x.total_cmp(&b.at.x).then(a.at.y.total_cmp(&b.at.y)));
    labels.dedup();
    for (index, a) in labels.iter().enumerate() {
        assert!(is_inside(*a, whole), "a label is outside");
        assert!(labels[..index].iter().chain(&boxes).all(|b| !overlap(*a, *b)), "a label is on something");
        assert!(frames.iter().all(|frame| !overlap(*a, *frame) || is_inside(*a, *frame)), "a label is on a frame");
    }
    let rects: HashMap<&str, Rect> = picture
        .boxes
        .iter()
        .map(|(rect, node)| (node.id.as_str(), *rect))
        .chain(picture.frames.iter().map(|(rect, group)| (group.id.as_str(), *rect)))
        .collect();
    let arrows = picture.wires.iter().filter(|drawn| drawn.arrow.is_some()).count();
    assert_eq!(arrows, graph.arrows.len(), "every arrow is drawn");
    for Drawn { wire, label, arrow } in &picture.wires {
        assert_eq!(label.is_empty(), wire.label.is_none());
        let points: Vec<Point> = wire.parts.iter().flat_map(|part| along(part)).collect();
        let (first, last) = (points[0], points[points.len() - 1]);
        let ends = arrow.map(|arrow| (rects[arrow.from.as_str()], rects[arrow.to.as_str()]));
        if let Some((from, to)) = ends {
            for (end, rect) in [(first, from), (last, to)] {
                let outer = frames.iter().filter(|frame| is_inside(rect, **frame));
                assert!(outer.chain([&rect]).any(|rect| is_border(end, *rect)), "a line ends in the air: {arrow:?}");
            }
        } else {
            assert!(frames.iter().any(|rect| is_border(first, *rect) && is_border(last, *rect)));
        }
        for point in points {
            assert!(is_inside(Rect { at: point, ..Rect::default() }, whole), "a line is outside");
            assert!(
                boxes.iter().chain(&labels).all(|rect| !is_within(point, *rect)),
                "a line runs through a box: {arrow:?}"
            );
            let Some((from, to)) = ends else { continue };
            let through =
                |frame: &&Rect| is_within(point, **frame) && !(is_inside(from, **frame) && is_inside(to, **frame));
            assert!(!frames.iter().any(|frame| through(&frame)), "a line runs through a frame: {arrow:?}");
        }
    }
}

/// Points of a line, as it is drawn.
fn along(part: &[Point]) -> Vec<Point> {
    let curve = |a: Point, b: Point, t: f64| {
        let middle = (a.y + b.y) / 2.0;
        let (w0, w1, w2, w3) = ((1.0 - t).powi(3), 3.0 * t * (1.0 - t).powi(2), 3.0 * t * t * (1.0 - t), t.powi(3));
        Point { x: a.x * (w0 + w1) + b.x * (w2 + w3), y: a.y * w0 + middle * (w1 + w2) + b.y * w3 }
    };
    let straight = |a: Point, b: Point, t: f64| Point { x: a.x + (b.x - a.x) * t, y: a.y + (b.y - a.y) * t };
    part.windows(2)
        .flat_map(|pair| {
            let is_straight = pair[0].x == pair[1].x || pair[0].y == pair[1].y;
            (0..=6).map(move |step| {
                let t = f64::from(step) / 6.0;
                if is_straight { straight(pair[0], pair[1], t) } else { curve(pair[0], pair[1], t) }
            })
        })
        .collect()
}

/// What rounding may do.
const NEAR: f64 = 0.01;

fn far(rect: Rect) -> (f64, f64) {
    (rect.at.x + rect.size.width, rect.at.y + rect.size.height)
}

fn overlap(a: Rect, b: Rect) -> bool {
    let (a_far, b_far) = (far(a), far(b));
    a.at.x + NEAR < b_far.0 && b.at.x + NEAR < a_far.0 && a.at.y + NEAR < b_far.1 && b.at.y + NEAR < a_far.1
}

fn is_inside(a: Rect, b: Rect) -> bool {
    let (a_far, b_far) = (far(a), far(b));
    a.at.x >= b.at.x - NEAR && a.at.y >= b.at.y - NEAR && a_far.0 <= b_far.0 + NEAR && a_far.1 <= b_far.1 + NEAR
}

fn is_within(point: Point, rect: Rect) -> bool {
    let (right, bottom) = far(rect);
    point.x > rect.at.x + NEAR && point.x < right - NEAR && point.y > rect.at.y + NEAR && point.y < bottom - NEAR
}

fn is_border(point: Point, rect: Rect) -> bool {
    is_inside(Rect { at: point, ..Rect::default() }, rect) && !is_within(point, rect)
}

/// Boxes in frames in frames, and arrows between any of them, in circles, to themselves and again.
fn made_up(nodes: usize, arrows: usize) -> impl Strategy<Value = Graph> {
    let parents = prop::collection::vec(any::<prop::sample::Index>(), 0..8);
    let places = prop::collection::vec((any::<prop::sample::Index>(), 0..5_usize, "[a-z本]{1,14}"), 1..=nodes);
    let ends = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let arrows = prop::collection::vec((ends, 0..6_usize, any::<bool>(), any::<bool>()), 0..=arrows);
    (parents, places, arrows).prop_map(|(parents, places, arrows)| {
        let mut groups: Vec<Group> = (0..=parents.len())
            .map(|index| Group {
                id: format!("g{index}"),
                name: format!("g{index}"),
                title: format!("frame {index}"),
                repeat: if index % 3 == 1 { vec!["at most 3 rounds".to_owned()] } else { Vec::new() },
                ..Group::default()
            })
            .collect();
        let mut ids: Vec<String> = Vec::new();
        for (index, (place, shape, name)) in places.iter().enumerate() {
            let shape = [Shape::Agent, Shape::Command, Shape::Gate, Shape::Value, Shape::Call][*shape];
            let lines = vec![name.clone(); 1 + index % 3];
            let node = Node { id: format!("n{index}"), lines, about: Vec::new(), shape, is_many: false };
            ids.push(node.id.clone());
            let at = place.index(groups.len());
            groups[at].nodes.push(node);
        }
        ids.extend(groups.iter().map(|group| group.id.clone()));
        let arrows = arrows
            .iter()
            .map(|((from, to), label, is_message, both)| Arrow {
                from: from.get(&ids).clone(),
                to: to.get(&ids).clone(),
                label: ["", "", "", "ran", "ended", "failed"][*label].to_owned(),
                about: String::new(),
                is_message: *is_message,
                both: *both && *is_message,
            })
            .collect();
        for (index, parent) in parents.iter().enumerate().rev() {
            if let Some(group) = groups.pop() {
                groups[parent.index(index + 1)].groups.push(group);
            }
        }
        Graph { groups, arrows }
    })
}

/// One frame of boxes, with these arrows.
fn flat(count: usize, arrows: impl Iterator<Item = (usize, usize)>) -> Graph {
    let node = |index: usize| Node {
        id: format!("n{index}"),
        lines: vec![format!("step-{index}"), "agent coder".to_owned()],
        about: Vec::new(),
        shape: Shape::Agent,
        is_many: false,
    };
    let arrow = |(from, to): (usize, usize)| Arrow {
        from: format!("n{from}"),
        to: format!("n{to}"),
        label: if (from + to) % 7 == 0 { "ran".to_owned() } else { String::new() },
        about: String::new(),
        is_message: false,
        both: false,
    };
    let group = Group { id: "g".to_owned(), nodes: (0..count).map(node).collect(), ..Group::default() };
    Graph { groups: vec![group], arrows: arrows.map(arrow).collect() }
}

fn laid_out(graph: &Graph) -> Picture<'_> {
    let picture = layout_picture(graph).unwrap_or_else(|TooLarge| panic!("it is not too large"));
    assert_readable(&picture, graph);
    picture
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_picture_of_a_hundred_boxes_is_readable(graph in made_up(100, 160)) {
        laid_out(&graph);
    }

    #[test]
    fn a_listing_says_everything(graph in made_up(40, 60)) {
        let text = text::render_text(&graph, 100, crate::terminal::Paint::NONE);
        fn names<'g>(group: &'g Group, all: &mut Vec<&'g str>) {
            all.extend(group.nodes.iter().map(|node| node.lines[0].as_str()));
            group.groups.iter().for_each(|inner| names(inner, all));
        }
        let mut all = Vec::new();
        graph.groups.iter().for_each(|group| names(group, &mut all));
        let lines: Vec<BTreeSet<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        prop_assert!(all.iter().all(|name| lines.iter().any(|line| line.contains(name))), "{}", text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_picture_of_three_hundred_boxes_is_readable(graph in made_up(300, 500)) {
        laid_out(&graph);
    }
}

#[test]
fn every_example_is_readable() {
    let specs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("specs");
    let mut count = 0;
    for folder in std::fs::read_dir(specs).expect("the examples are there") {
        let folder = folder.expect("a folder").path();
        let spec = folder.join(folder.file_name().expect("a name")).with_extension("kdl");
        let loaded = load_workflow(&spec).expect("it is read").expect("it compiles");
        laid_out(&build_graph(&loaded.plan, None).expect("it is drawn"));
        count += 1;
    }
    assert!(count >= 6);
}

#[test]
fn what_is_made_to_be_hard_is_readable_too() {
    laid_out(&flat(0, std::iter::empty()));
    laid_out(&flat(300, std::iter::empty()));
    laid_out(&flat(100, (1..100).map(|index| (index - 1, index)).chain((2..100).map(|index| (0, index)))));
    laid_out(&flat(100, (1..99).flat_map(|index| [(0, index), (index, 99)])));
    laid_out(&flat(60, (0..60).flat_map(|from| (from + 1..60).map(move |to| (from, to)))));
    laid_out(&flat(3, (0..30).map(|index| (index % 3, index / 3 % 3))));
}

#[test]
fn a_deep_chain_is_drawn_and_what_is_too_large_is_refused() {
    let chain = flat(3_000, (1..3_000).map(|index| (index - 1, index)));
    let svg = svg::render_svg(&chain).expect("it is drawn");
    assert_eq!(svg.matches("<g class=\"wire\">").count(), 2_999);
    let huge = flat(20_000, (1..20_000).flat_map(|index| [(index - 1, index), (0, index)]));
    assert_eq!(super::svg::render_svg(&huge), Err(TooLarge));
}

#[test]
fn names_are_text_and_never_markup() {
    let mut graph = flat(1, std::iter::empty());
    graph.groups[0].nodes[0].lines = vec!["</text><script>alert(1)</script>\u{1b}\u{0}&\"".to_owned()];
    graph.groups[0].title = "]]><svg onload='x'>".to_owned();
    let svg = svg::render_svg(&graph).expect("it is drawn");
    assert!(!svg.contains("<script") && !svg.contains("<svg onload"), "{svg}");
    assert!(!svg.chars().any(|sign| sign.is_control() && sign != '\n'), "{svg}");
}

#[test]
fn the_plan_of_a_team_is_a_frame_with_its_items() {
    let spec = r#"
        provider p { exec p; prompt stdin }
        agent a provider=p
        swarm s {
            goal "x"
            coordinator lead agent=a
            member one agent=a
            item api "Define it" owner=one
            item docs "Write of it" { depends-on api }
        }
        pipeline main { task t { swarm s }; result t }
    "#;
    let files = BTreeMap::from([("a.kdl".to_owned(), spec.to_owned())]);
    let plan = swarmc_compiler::compile("a.kdl", &files).plan.expect("it is right");
    let graph = Graph::build(&plan, Some("s")).expect("there is a swarm");
    let mermaid = write::render_mermaid(&graph);
    for part in [r#"["plan"]"#, "api<br>owner one", "docs<br>no owner", "n_s_2e_plan__api --> n_s_2e_plan__docs"] {
        assert!(mermaid.contains(part), "no `{part}` in {mermaid}");
    }
    let text = text::render_text(&graph, 80, crate::terminal::Paint::NONE);
    assert!(text.contains("docs") && text.contains("← api") && text.contains('▤'), "{text}");
}
