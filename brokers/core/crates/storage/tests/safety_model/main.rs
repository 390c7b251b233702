//! A model of the rules of safety, checked exhaustively; see the README beside this file.

// The checker hands models and states over by reference, however small they are.
#![allow(clippy::trivially_copy_pass_by_ref)]

#[cfg(test)]
mod check;
mod cluster;
mod cold;
mod lane;
mod restored;
mod rules;
