//! The state of a partition's log up to some offset: which leader epoch started where, and
//! what each producer wrote last. Manifests store it, and the partition that is led continues it.

pub mod epochs;
pub mod producers;
