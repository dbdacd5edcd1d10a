//! Runs on several machines: Restate, `swarmc-engine` and workers, each with a home and a clone of its own.

mod real;
