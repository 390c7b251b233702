//! SaslAuthenticate: carries the messages of the SASL mechanism.

use bytes::Bytes;

use crate::context::Broker;
use freshet_access::principal::Principal;
use freshet_access::sasl::{SaslFailure, SaslSession, Step, Verification, Verified};

/// The outcome of one SASL token.
pub enum Exchanged {
    /// The exchange goes on: this token is for the client.
    Continue(Bytes),
    /// The client has authenticated as this principal; the token is the last one for it.
    Authenticated(Principal, Bytes),
}

/// Processes a token, which came in a SaslAuthenticate request or without a header.
///
/// # Errors
/// [`SaslFailure`] where the client is refused. The caller answers it, then closes the connection.
pub async fn exchange_token(
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
    /// Checks a password on a thread for blocking work, so that the clients of this thread need not
    /// wait for it.
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
