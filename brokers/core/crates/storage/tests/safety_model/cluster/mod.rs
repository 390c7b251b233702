//! Several brokers that lead partitions, take them over, move them, and share objects.

mod jobs;
mod model;
mod recover;
mod state;
mod sweep;
#[cfg(test)]
mod tests;
