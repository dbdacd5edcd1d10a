//! With the real server of Restate, which `tests/install-engine` puts into a cache outside the checkout.

mod cluster;
mod conformance;
mod feature;
mod kills;
mod messages;
mod networks;
mod nodes;
mod object_store;
mod people;
mod places;
mod proxy;
mod random;
mod rounds;
mod runs;
