//! A broker. [`engine`] is one incarnation from its claim to its end, [`context`] is what requests
//! are answered from, [`handlers`] has one file for each of Kafka's APIs, and [`server`] serves
//! connections.

pub mod context;
pub mod engine;
pub mod handlers;
pub mod server;
