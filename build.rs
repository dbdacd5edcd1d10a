//! Links `swarmc-shim` for a fixed address where it is linked dynamically: there is one for each agent that runs, and what
//! has to be adapted to an address is a copy of its own in the memory of each.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    let is_static = env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|all| all.split(',').any(|one| one == "crt-static"));
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") && !is_static {
        println!("cargo:rustc-link-arg-bin=swarmc-shim=-no-pie");
    }
}
