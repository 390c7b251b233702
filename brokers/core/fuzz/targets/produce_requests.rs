//! Produce requests, and the batches in them.
#![no_main]

use freshet_fuzz::{choose_version, limits};
use freshet_wire::protocol::produce::ProduceRequest;
use freshet_wire::records::validate_produced;
use kafka_protocol::messages::ApiKey;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let produce = |api| api == ApiKey::Produce;
    let Some((_, version, body)) = choose_version(data, produce) else { return };
    let Ok(request) = ProduceRequest::decode(body, version) else { return };
    for partition in request.topics.into_iter().flat_map(|topic| topic.partitions) {
        if let Some(records) = partition.records {
            let _ = validate_produced(records, &limits(false));
        }
    }
});
