//! A broker: one incarnation from its claim to its end ([`engine`]), one file for each API of Kafka
//! ([`handlers`]), and connections ([`server`]).

pub mod engine;
pub mod handlers;
pub mod server;
