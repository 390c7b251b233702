//! Acks, fences, seals and reads of a lane, with successors that race.

mod model;
mod state;
mod takeover;
#[cfg(test)]
mod tests;
mod write;
