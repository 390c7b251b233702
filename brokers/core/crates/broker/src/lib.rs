//! A broker: one incarnation from its claim to its end ([`engine`]), what a request is answered
//! from ([`context`]), one file for each API of Kafka ([`handlers`]), and connections ([`server`]).

pub mod context;
pub mod engine;
pub mod handlers;
pub mod server;
