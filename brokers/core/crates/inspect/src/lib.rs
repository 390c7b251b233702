//! Reading storage without a broker: [`inspect`] looks into it for people, [`usage_reader`] reads
//! what clusters used for the meter.

pub mod inspect;
pub mod usage_reader;
