//! Incarnations, epochs and extents when the metadata store is restored from an old backup.

mod model;
mod scan;
mod state;
mod steps;
#[cfg(test)]
mod tests;
