//! Links the programs for a fixed address where they are linked dynamically. The vtables of `swarmc` are 250,000 addresses:
//! adapting them to an address that the system chooses took a third of a run of one short step, and each start has a copy of
//! its own in memory, as has each `swarmc-shim`, of which there is one for every agent that runs.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    let is_static = env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|all| all.split(',').any(|one| one == "crt-static"));
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
