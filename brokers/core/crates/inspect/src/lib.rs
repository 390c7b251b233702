//! Reading storage without a broker: [`inspect`] makes a report for people, [`usage_reader`] reads
//! for the meter what clusters used.

pub mod inspect;
mod kinds;
pub mod usage_reader;
