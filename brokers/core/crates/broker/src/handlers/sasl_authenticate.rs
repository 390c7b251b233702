//! SaslAuthenticate: carrying the mechanism's messages.

use bytes::Bytes;

use crate::context::Broker;
use freshet_access::principal::Principal;
use freshet_access::sasl::{SaslFailure, SaslSession, Step, Verification, Verified};

/// What one token led to.
pub enum Exchanged {
    /// The next token of the exchange goes to the client.
    Continue(Bytes),
    /// The client is this one; the last token goes to it.
    Authenticated(Principal, Bytes),
}

/// Takes a token, wherever it came in.
///
/// # Errors
/// The client is told, and the connection closed.
pub async fn exchange(
    broker: &Broker,
    session: &mut SaslSession,
    token: &[u8],
) -> Result<Exchanged, SaslFailure> {
    let mut step = session.authenticate(token)?;
    loop {
        match step {
            Step::Continue(bytes) => return Ok(Exchanged::Continue(bytes.into())),
            Step::Authenticated(principal, bytes) => {
                return Ok(Exchanged::Authenticated(principal, bytes.into()));
            }
            Step::Verify(verification) => {
                step = session.verified(broker.verify(verification).await)?;
            }
        }
    }
}

impl Broker {
    /// Checks a password without holding up whoever is served by the same thread.
    async fn verify(&self, verification: Verification) -> Verified {
        let _turn = self.verifications.acquire().await.expect("the semaphore is never closed");
        if self.settings.inline_crypto {
            return verification.run();
        }
        #[allow(clippy::disallowed_methods, reason = "simulations run it inline")]
        let checking = tokio::task::spawn_blocking(move || verification.run());
        checking.await.expect("checking a password does not panic")
    }
}
