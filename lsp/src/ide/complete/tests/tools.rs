//! The tools of an agent.

use super::{detailed, labels, spec};

#[test]
fn the_tools_of_the_runner_and_of_programs_are_offered() {
    let spec = spec(
        "tool-server web url=\"http://x\"\nprovider big { llm { endpoint \"http://x\"; model m } }\nagent a provider=p { tools web.fetch $0 }",
    );
    let built_in = ["shell", "file_read", "file_write", "file_list", "file_search"];
    let all = labels(&spec);
    assert_eq!(all[..6], [&["web"], &built_in[..]].concat());
    assert!(all.contains(&"WebFetch".to_owned()) && all.contains(&"apply_patch".to_owned()), "{all:?}");
    assert!(detailed(&spec).contains("file_write: built-in tool"), "{}", detailed(&spec));
    // A model has none of its own, and what is listed is not offered again.
    let of_model = spec.replace("provider=p { tools web.fetch", "provider=big { tools file_list web");
    assert_eq!(labels(&of_model), ["shell", "file_read", "file_write", "file_search"]);
}
