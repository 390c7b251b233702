//! Fetch requests.
#![no_main]

use freshet_fuzz::choose_version;
use freshet_wire::protocol::fetch::FetchRequest;
use kafka_protocol::messages::ApiKey;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((_, version, body)) = choose_version(data, |api| api == ApiKey::Fetch) {
        let _ = FetchRequest::decode(body, version);
    }
});
