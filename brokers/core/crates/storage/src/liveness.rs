//! Whether an incarnation may still act. Once it has stood down it never may again: only a new
//! incarnation can.

use freshet_world::watch;
use std::sync::Arc;

/// Shared by everything that acts for one incarnation.
#[derive(Debug, Clone)]
pub struct Liveness(Arc<watch::Sender<Option<Arc<str>>>>);

impl Default for Liveness {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Liveness {
    /// Stands down. The first reason is kept, and logged as an error.
    pub fn stand_down(&self, reason: &str) {
        if self.end(reason) {
            tracing::error!(reason, "the broker stands down and acknowledges nothing more");
        }
    }

    /// Ends the incarnation for a clean stop; does nothing where it has ended.
    pub fn stop(&self) {
        self.end("stopped");
    }

    fn end(&self, reason: &str) -> bool {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(reason.into());
            }
            first
        })
    }

    /// Why the incarnation ended, if it did.
    pub fn reason(&self) -> Option<Arc<str>> {
        self.0.borrow().clone()
    }

    /// Whether the incarnation ended.
    pub fn is_down(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the incarnation ends; returns the reason.
    pub async fn ended(&self) -> Arc<str> {
        let mut receiver = self.0.subscribe();
        let ended = receiver.wait_for(Option::is_some).await;
        ended.ok().and_then(|reason| reason.clone()).unwrap_or_else(|| "dropped".into())
    }
}
