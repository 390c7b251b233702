//! What an invariant is here, and what becomes of one that does not hold.
//!
//! Invariants are named functions that look at one value, or at a value before and after a change.
//! They run on every change, in every build: each is linear in what is written anyway. A change
//! that would break one is refused, so what counts stays as it was; in a build with debug
//! assertions it panics, so that a test or the simulator shows where the change was made.

use std::fmt;

/// An invariant that a change would have broken. It is a fault of this program and not of its
/// input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} does not hold: {what}; nothing was changed, please report this line")]
pub struct BrokenInvariant {
    /// The name of the function that found it.
    pub invariant: &'static str,
    /// The values that show it.
    pub what: String,
}

impl BrokenInvariant {
    /// What a function of this name found.
    pub fn new(invariant: &'static str, what: impl fmt::Display) -> Self {
        Self { invariant, what: what.to_string() }
    }
}

/// Passes a result on; panics where an invariant is broken and debug assertions are on.
///
/// # Errors
/// The broken invariant, in a release build.
pub fn expect_held(checked: Result<(), BrokenInvariant>) -> Result<(), BrokenInvariant> {
    if cfg!(debug_assertions)
        && let Err(broken) = &checked
    {
        panic!("{broken}");
    }
    checked
}
