//! A deterministic world for the real engine: clock, randomness, shared disk and network, all
//! driven by one seed. Nothing here is compiled into a release.
//!
//! Each host has a runtime of its own on a paused clock. The world steps the hosts millisecond by
//! millisecond; a host that is not stepped is paused, one whose runtime is dropped has crashed.

pub mod conformance;
pub mod disk;
pub mod faults;
pub mod network;
pub mod random;
pub mod world;
