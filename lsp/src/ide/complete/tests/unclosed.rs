//! Completion below a block that lacks its `}`.

use super::{first, labels};

#[test]
fn a_block_that_lacks_its_end_ends_where_the_parser_ends_it() {
    let task = |above: &str| {
        format!(
            "//- flow.kdl\nprovider p {{ exec cat }}\nagent a provider=p\ntype Verdict {{ ok bool; note string }}\npipeline main {{\n{above}    task make agent=a {{\n        prompt \"Do <<output:$0>>\"\n    }}\n}}\n"
        )
    };
    let plan = "    task plan agent=a {\n        prompt \"Plan\"\n        output Verdict\n";
    assert_eq!(labels(&task(plan)), ["plan"]);
    assert_eq!(labels(&task(plan).replace("<<output:", "<<output:plan.")), ["ok", "note"]);
    assert_eq!(labels(&task("    task plan agent=a { prompt \"Plan\"\n")), ["plan"]);
    // A loop may hold tasks: only its indentation says that it has ended.
    let around = "    loop again max=2 {\n        task plan agent=a { prompt \"x\" }\n";
    let again = labels(&task(around).replace("<<output:", "<<status:"));
    assert_eq!(again, ["again", "plan"]);
    // The same of the properties of what comes next.
    let agent = task(plan).replace("agent=a {\n        prompt \"Do <<output:$0>>\"", "agent=$0 {\n");
    assert_eq!(first(&agent, 1), ["a"]);
}
