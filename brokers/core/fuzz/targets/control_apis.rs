//! Requests of every API that kafka-protocol decodes: what the guard accepts, the decoder reads
//! without a panic, and in memory that the guard has bounded.
#![no_main]

use freshet_fuzz::{choose_version, is_control};
use freshet_wire::protocol::guard;
use kafka_protocol::messages::RequestKind;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((api, version, body)) = choose_version(data, is_control) else { return };
    if guard::check(api, version, &body).is_ok() {
        let mut rest = body;
        let _ = RequestKind::decode(api, &mut rest, version);
    }
});
