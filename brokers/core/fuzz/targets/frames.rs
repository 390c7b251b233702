//! A connection's bytes: frames, and the header of each.
#![no_main]

use freshet_wire::protocol::frame::read_frame;
use freshet_wire::protocol::header::RequestHeader;
use futures::executor::block_on;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut stream = data;
    block_on(async {
        while let Ok(Some(frame)) = read_frame(&mut stream, 100 << 20).await {
            let length = frame.len();
            assert!(length <= data.len(), "a frame has no more bytes than arrived");
            if let Ok((_, body)) = RequestHeader::decode(frame) {
                assert!(body.len() <= length, "a body is a part of its frame");
            }
        }
    });
});
