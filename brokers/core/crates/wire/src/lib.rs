//! What all other crates use: identifiers, record batches, and Kafka's frames and codecs.
//!
//! Nothing here does any I/O, and no bytes from outside can make it panic.

pub mod budget;
pub mod codec;
pub mod ids;
pub mod protocol;
pub mod records;
pub mod text;
