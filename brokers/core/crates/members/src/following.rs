//! Follows a controller: sends pulses to it, and takes its orders.

use std::io::ErrorKind;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use freshet_metadata::schema::ControllerTerm;

use crate::channel::{ChannelError, within};
use crate::member::Member;
use crate::messages::{FromController, Opening, Order, Pulse};
use crate::suspicion::Suspicion;

/// Why a controller is not followed any more.
#[derive(Debug)]
enum Ended {
    /// Nothing listens at its address.
    Refused,
    /// It was not heard for too long.
    Silent,
    /// It was fenced: by itself, where its storage hangs.
    Fenced,
    /// Another one was elected.
    Succeeded,
}

impl Member {
    /// Follows the controller of a term until that is over. Returns the term where its controller
    /// is missed, `None` where another one was elected.
    pub(crate) async fn follow(
        &self,
        term: &ControllerTerm,
        orders: &mpsc::UnboundedSender<Order>,
    ) -> Option<u64> {
        let now = Instant::now();
        let suspicion = Mutex::new(Suspicion::new(self.times, now));
        suspicion.lock().hear(term.incarnation, now);
        let ended = tokio::select! {
            biased;
            ended = self.watch_term(term, &suspicion) => ended,
            ended = self.keep_channel(term, &suspicion, orders) => ended,
        };
        tracing::info!(controller = %term.incarnation, term = term.term, ?ended, "follows no more");
        match ended {
            Ended::Refused | Ended::Silent | Ended::Fenced => Some(term.term),
            Ended::Succeeded => None,
        }
    }

    /// Waits until another one is controller, or this one is fenced or silent for too long.
    async fn watch_term(&self, term: &ControllerTerm, suspicion: &Mutex<Suspicion>) -> Ended {
        let mut looks = interval(self.times.pulse / 2);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let snapshot = self.view.snapshot();
            if snapshot.controller.as_ref().is_some_and(|stored| stored.record.term > term.term) {
                return Ended::Succeeded;
            }
            if self.has_ended(term.incarnation) {
                return Ended::Fenced;
            }
            if !suspicion.lock().look(Instant::now()).is_empty() {
                return Ended::Silent;
            }
        }
    }

    /// Keeps a channel to the controller open for as long as something listens at its address.
    async fn keep_channel(
        &self,
        term: &ControllerTerm,
        suspicion: &Mutex<Suspicion>,
        orders: &mpsc::UnboundedSender<Order>,
    ) -> Ended {
        loop {
            let Err(error) = self.follow_by_channel(term, suspicion, orders).await;
            self.note_unheard();
            match error {
                ChannelError::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    return Ended::Refused;
                }
                error => tracing::debug!(%error, "the channel to the controller ended"),
            }
            sleep(self.times.retry).await;
        }
    }

    async fn follow_by_channel(
        &self,
        term: &ControllerTerm,
        suspicion: &Mutex<Suspicion>,
        orders: &mpsc::UnboundedSender<Order>,
    ) -> Result<std::convert::Infallible, ChannelError> {
        let mut channel = self.reach(term.incarnation).await?;
        let opening = Opening::Follow { incarnation: self.incarnation(), term: term.term };
        channel.sender.send(&opening).await?;
        let mut pulses = interval(self.times.pulse);
        pulses.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reported_at = Instant::now();
        loop {
            tokio::select! {
                biased;
                message = channel.receiver.receive() => match message? {
                    FromController::Heard => {
                        suspicion.lock().hear(term.incarnation, Instant::now());
                        self.note_heard(term.term);
                    }
                    // The receiver ends with this member only.
                    FromController::Do(order) => drop(orders.send(order)),
                    FromController::Shares(shares) => self.duties.set_shares(shares),
                    FromController::Released => self.note_released(),
                    FromController::Prove => self.duties.prove_storage(),
                },
                _ = pulses.tick() => {
                    let is_due = reported_at.elapsed() >= self.times.deal;
                    let used = is_due.then(|| self.duties.report_use());
                    if is_due {
                        reported_at = Instant::now();
                    }
                    let storage = Some(self.duties.storage());
                    let pulse = Pulse { leaves: self.leaves(), storage, used };
                    within(self.times.silence_max, channel.sender.send(&pulse)).await?;
                }
            }
        }
    }
}
