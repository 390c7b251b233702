//! Takes part in a cluster: admits the other brokers' connections, follows the controller or is it,
//! and carries out its orders.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;

use freshet_world::env::{Listener, Stream};

use crate::channel::{self, ChannelError, within};
use crate::controller::Controller;
use crate::election::Role;
use crate::member::{Follower, Member};
use crate::messages::{Adoption, HandOver, Opening, Order};

/// The most handshakes at a time: the address is open to whoever reaches it.
const HANDSHAKES_MAX: usize = 64;

impl Member {
    /// Takes part in the cluster. Ends where another incarnation has fenced this one.
    pub async fn run(self: Arc<Self>, listener: Box<dyn Listener>) {
        let (followers_in, mut followers) = mpsc::channel(HANDSHAKES_MAX);
        let (orders_in, orders) = mpsc::unbounded_channel();
        let take_part = async {
            let mut missed = None;
            while let Some(role) = self.find_role(&mut missed).await {
                match role {
                    Role::Follows(term) => missed = self.follow(&term, &orders_in).await,
                    Role::Leads { term, number, missed } => {
                        self.note_leads(Some(number));
                        self.duties.set_term(Some(term));
                        let term = Controller::new(&self, (term, number), missed, &orders_in);
                        term.run(&mut followers).await;
                        self.duties.set_term(None);
                        self.note_leads(None);
                        // Whoever came for this term must look for the next one.
                        while followers.try_recv().is_ok() {}
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = take_part => {}
            () = self.admit_all(listener, &followers_in) => {}
            () = self.carry_out_orders(orders) => {}
        }
    }

    async fn admit_all(
        self: &Arc<Self>,
        mut listener: Box<dyn Listener>,
        followers: &mpsc::Sender<Follower>,
    ) {
        let places = Arc::new(Semaphore::new(HANDSHAKES_MAX));
        let mut handshakes = JoinSet::new();
        loop {
            while handshakes.try_join_next().is_some() {}
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections of other brokers");
                    sleep(self.times.pulse).await;
                    continue;
                }
            };
            // Without a place the connection is closed: who belongs here tries again.
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            let (member, followers) = (Arc::clone(self), followers.clone());
            handshakes.spawn(async move {
                let admitted = member.admit(stream, &followers).await;
                if let Err(error) = admitted {
                    tracing::debug!(%error, "did not admit a connection");
                }
                drop(place);
            });
        }
    }

    async fn admit(
        &self,
        stream: Box<dyn Stream>,
        followers: &mpsc::Sender<Follower>,
    ) -> Result<(), ChannelError> {
        let opening = async {
            let mut channel = channel::accept(stream, &self.key).await?;
            let opening = channel.receiver.receive().await?;
            Ok::<_, ChannelError>((channel, opening))
        };
        let (mut channel, opening) = within(self.times.connect_max, opening).await?;
        match opening {
            Opening::Hears { term } => channel.sender.send(&self.hears(term)).await,
            Opening::Follow { incarnation, term } => {
                if self.leads() == Some(term) {
                    // The receiver is gone where the member ends.
                    let _ = followers.send(Follower { incarnation, channel }).await;
                }
                Ok(())
            }
        }
    }

    /// Carries out the controller's orders, one of each kind at a time.
    async fn carry_out_orders(&self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let (adoptions_in, adoptions) = mpsc::unbounded_channel();
        let (moves_in, moves) = mpsc::unbounded_channel();
        let sort = async {
            while let Some(order) = orders.recv().await {
                // The receivers end with this.
                match order {
                    Order::Adopt(adoption) => drop(adoptions_in.send(adoption)),
                    Order::HandOver(hand_over) => drop(moves_in.send(hand_over)),
                }
            }
        };
        tokio::join!(sort, self.take_over(adoptions), self.hand_over(moves));
    }

    async fn hand_over(&self, mut orders: mpsc::UnboundedReceiver<HandOver>) {
        while let Some(HandOver { partitions, successor }) = orders.recv().await {
            // The controller orders again what is not done.
            if let Err(error) = self.duties.hand_over(&partitions, successor).await {
                tracing::warn!(%error, %successor, "did not hand over");
            }
        }
    }

    async fn take_over(&self, mut orders: mpsc::UnboundedReceiver<Adoption>) {
        let mut due = Adoption::default();
        loop {
            if due.is_empty() {
                let Some(order) = orders.recv().await else { return };
                due = order;
            }
            while let Ok(order) = orders.try_recv() {
                due.add(order);
            }
            match self.duties.adopt(&due.dead, &due.partitions).await {
                Ok(()) => due = Adoption::default(),
                Err(error) => {
                    tracing::warn!(%error, dead = ?due.dead, "did not take over yet");
                    sleep(self.times.retry).await;
                }
            }
        }
    }
}
