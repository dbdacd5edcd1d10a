//! A simulator of runs, for tests: plans from a few words, worlds in which every attempt's fate is known beforehand,
//! and runs of the core in them, interrupted anywhere.
//!
//! It matches the commands of the core itself, and shares no code with the driver: it holds the core to its rules in any
//! order of events and at any kill, with nothing rendered, prepared or stored. A run of a property test takes a fraction
//! of a millisecond that way, and a mistake of the driver cannot hide one of the core.

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
