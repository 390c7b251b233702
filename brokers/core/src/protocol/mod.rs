//! The Kafka protocol: frames, headers, versions, and the codecs of Produce and Fetch.
