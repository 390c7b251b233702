//! A broker: [`context`] is what requests are answered from, [`handlers`] has one file for each of
//! Kafka's APIs, and [`server`] serves connections.

pub mod context;
pub mod handlers;
pub mod server;
