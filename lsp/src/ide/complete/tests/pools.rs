//! Pools of workers.

use super::{labels, spec};

#[test]
fn pools_that_the_spec_names_are_offered_where_one_stands() {
    let spec = spec(
        "provider p { exec cat }\nagent a provider=p pool=gpu\npipeline main {\n pool builders\n task one agent=a pool=$0 { prompt \"x\" }\n}",
    );
    assert_eq!(labels(&spec), ["builders", "gpu", "default"]);
    assert_eq!(labels(&spec.replace("pool=$0", "pool=gpu").replace("builders", "$0")), ["gpu", "default"]);
}
