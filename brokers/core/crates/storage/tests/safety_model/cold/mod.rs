//! Split, install, delete and sweep, with a zombie's jobs and a successor's.

mod jobs;
mod model;
mod recover;
mod state;
#[cfg(test)]
mod tests;
