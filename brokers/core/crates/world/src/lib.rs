//! The outside world as traits, the real one, and a deterministic one for tests (`sim`).

pub mod env;
pub mod invariants;
pub mod kinds;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
pub mod watch;
