//! A simulator of runs, for tests: plans from a few words, worlds in which every attempt's fate is known beforehand,
//! and runs of the core in them, interrupted anywhere.

mod handoffs;
mod journals;
mod model;
mod properties;
mod random;
mod run;
mod slots;
mod stalls;
mod tables;
mod timeouts;
mod world;
