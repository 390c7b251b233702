//! How many threads a process serves with.

use serde::{Deserialize, Serialize};

use crate::parse::Problem;

/// Threads beyond this are a mistake.
const THREADS_MAX: usize = 256;

/// `[threads]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadSettings {
    /// Threads that serve; 0: as many as there are cores, at most 4.
    pub runtime: usize,
}

impl ThreadSettings {
    /// What is wrong with the settings: more than [`THREADS_MAX`] threads.
    pub fn problem(&self) -> Option<Problem> {
        (self.runtime > THREADS_MAX).then(|| Problem {
            key: "threads.runtime",
            message: format!("must be at most {THREADS_MAX}"),
        })
    }

    /// How many threads serve on a machine with so many cores.
    pub fn on(&self, cores: usize) -> usize {
        match self.runtime {
            0 => cores.clamp(1, 4),
            threads => threads,
        }
    }
}
