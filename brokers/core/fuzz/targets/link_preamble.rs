//! What a gateway says of a client, and what whoever answers as a broker says first.
#![no_main]

use std::pin::Pin;
use std::task::{Context, Poll};

use freshet_fuzz::NoRandomness;
use freshet_link::{LinkSecret, LinkedClient, accept};
use futures::executor::block_on;
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Gives these bytes and takes all that is written.
struct Stream<'a>(&'a [u8]);

impl AsyncRead for Stream<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fuzz_target!(|data: &[u8]| {
    let secret = LinkSecret::new(&[9; 64]).expect("long enough");
    let admitted = block_on(accept(&mut Stream(data), &secret, &NoRandomness, Ok));
    assert!(admitted.is_err(), "nobody is admitted who does not know the secret");
    // What only a gateway with the secret could send must not bring a broker down either.
    if let Ok((client, nonce)) = LinkedClient::decode(data) {
        let encoded = client.encode(nonce).expect("no longer than what was decoded");
        let again = LinkedClient::decode(&encoded).expect("as it was encoded");
        assert_eq!(again.1, nonce);
    }
});
