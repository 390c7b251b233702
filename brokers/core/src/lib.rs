//! A Kafka broker over shared storage.
