//! The fields of the `loop` that a `{% for %}` declares.

use super::{judge, labels};

#[test]
fn a_loop_in_a_text_has_its_fields() {
    let of_loop = ["index", "index0", "first", "last", "length"];
    assert_eq!(labels(&judge("{% for point in output.plan.points %}{{ loop.$0")), of_loop);
    assert!(labels(&judge("{% for loop in output.plan.points %}{% endfor %}{% set loop = 1 %}{{ loop.$0")).is_empty());
}
