//! Lanes on real folders: what is written, sealed, damaged and read again; the stored formats with
//! their samples.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "real files are what is tested, and a test may fail by a panic"
)]

mod damage;
#[allow(dead_code, reason = "tests of the engine use the rest")]
mod fixture;
mod formats;
mod full_disk;
mod lane;
mod producers;
mod recovery;
mod samples;
mod seal;
mod watched;
