//! A connection's bytes: frames, and the header of each.
#![no_main]

use bytes::Bytes;
use freshet_wire::budget::ArrivalBudget;
use freshet_wire::protocol::arriving::{Piece, read_piece};
use freshet_wire::protocol::frame::announced_length;
use freshet_wire::protocol::header::RequestHeader;
use futures::executor::block_on;
use libfuzzer_sys::fuzz_target;
use tokio::io::AsyncReadExt;

/// Reads a frame as brokers do; `None` where there is none, or only a part of one.
async fn read_frame(stream: &mut &[u8]) -> Option<Bytes> {
    let budget = ArrivalBudget::new(256 << 20, 100 << 20);
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).await.ok()?;
    let length = announced_length(prefix, 100 << 20).ok()?;
    let (mut frame, mut memory) = (Vec::new(), budget.start());
    while frame.len() < length {
        match read_piece(stream, &mut frame, length, &mut memory).await.ok()? {
            Piece::Read(0) => return None,
            Piece::Read(_) => {}
            Piece::NeedsMemory(bytes) => memory.hold(bytes).await,
        }
    }
    Some(frame.into())
}

fuzz_target!(|data: &[u8]| {
    let mut stream = data;
    block_on(async {
        while let Some(frame) = read_frame(&mut stream).await {
            let length = frame.len();
            assert!(length <= data.len(), "a frame has no more bytes than arrived");
            if let Ok((_, body)) = RequestHeader::decode(frame) {
                assert!(body.len() <= length, "a body is a part of its frame");
            }
        }
    });
});
