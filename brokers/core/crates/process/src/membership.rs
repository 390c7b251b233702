//! The broker as a member of a cluster that has several: it takes part on a thread of its own, so
//! that its pulses do not wait for clients.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use crate::{ProcessError, system_error};
use freshet_broker::context::Broker;
use freshet_engine::Engine;
use freshet_members::channel::ChannelKey;
use freshet_members::{Duties, Member, MemberState, StorageReport, Times};
use freshet_metadata::cluster::Term;
use freshet_quota::QuotaManager;
use freshet_quota::dealing::{LimitShare, LimitUse};
use freshet_storage::lane::queue::LaneProgress;
use freshet_wire::ids::{Incarnation, PartitionId};
use freshet_world::env::Network;
use freshet_world::env::priority::serve_promptly;

/// A listener for the other brokers of the cluster, whose connections wait until the broker takes
/// part.
pub(crate) struct Membership {
    /// `host:port`, by which the others reach it.
    pub(crate) address: String,
    takes_part: oneshot::Sender<Part>,
}

/// What a broker takes part with, until its end.
struct Part {
    member: Arc<Member>,
    quotas: Arc<QuotaManager>,
    ended: oneshot::Receiver<Infallible>,
}

/// The part that a broker takes in its cluster; it ends, at once, where this is dropped.
pub(crate) struct TakesPart {
    engine: Arc<Engine>,
    member: Arc<Member>,
    /// Sends the member to its thread once the cluster has other brokers.
    begins: AbortOnDropHandle<()>,
    _ended: oneshot::Sender<Infallible>,
}

impl TakesPart {
    /// Has the cluster's other brokers take over what this one leads, if there ever were any: it
    /// may be stopped because the cluster is to have one broker from now on.
    pub(crate) async fn leave(&self) {
        if !self.begins.is_finished() {
            return;
        }
        tokio::select! {
            biased;
            // Others have taken over already.
            _ = self.engine.liveness.ended() => {}
            () = self.member.leave() => {}
        }
    }
}

impl Membership {
    /// Listens at `address`; with port 0 the system chooses a port.
    pub(crate) async fn listen(
        network: Arc<dyn Network>,
        address: &str,
    ) -> Result<Self, ProcessError> {
        let (host, _) = address.rsplit_once(':').expect("it was checked with the settings");
        let (takes_part, member) = oneshot::channel::<Part>();
        let (bound, listens) = oneshot::channel();
        let given = address.to_owned();
        let run = move || {
            serve_promptly();
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(bound.send(Err(error))),
            };
            runtime.block_on(async {
                let listener = match network.listen(&given).await {
                    Ok(listener) => listener,
                    Err(error) => return drop(bound.send(Err(error))),
                };
                drop(bound.send(Ok(listener.local_address().port())));
                // Nobody takes part where the broker did not start, or is the only one.
                let Ok(Part { member, quotas, ended }) = member.await else { return };
                tokio::select! {
                    biased;
                    _ = ended => {}
                    () = member.run(listener) => {}
                    () = quotas.keep_shares() => {}
                }
            });
        };
        #[allow(clippy::disallowed_methods, reason = "a process: no simulation runs this")]
        let thread = std::thread::Builder::new().name("freshet-members".to_owned()).spawn(run);
        thread.map_err(system_error("a thread for the cluster's brokers"))?;
        let port = listens.await.expect("the thread says how it went");
        let port = port.map_err(system_error(format!("cannot listen on {address}")))?;
        Ok(Self { address: format!("{host}:{port}"), takes_part })
    }

    /// Takes part in the cluster as soon as that has other brokers.
    pub(crate) fn take_part(self, broker: &Broker, key: ChannelKey) -> TakesPart {
        let (engine, quotas) = (&broker.engine, &broker.quotas);
        let member = Arc::new(Member {
            fence: engine.registration(),
            metadata: Arc::clone(&engine.metadata),
            view: Arc::clone(&engine.view),
            network: Arc::clone(&engine.environment.network),
            key,
            duties: Arc::new(Successor {
                engine: Arc::clone(engine),
                quotas: Arc::clone(quotas),
                runtime: Handle::current(),
            }),
            times: Times::default(),
            state: MemberState::default(),
        });
        let (ends, ended) = oneshot::channel();
        let begins = {
            let (engine, member) = (Arc::clone(engine), Arc::clone(&member));
            let quotas = Arc::clone(quotas);
            tokio::spawn(async move {
                engine.wait_peers().await;
                if engine.has_peers() {
                    // Until now it may have been the only broker. The jobs of the cluster are those
                    // of the elected one from here on.
                    engine.set_term(None);
                    // The thread is gone where the broker ends.
                    let _ = self.takes_part.send(Part { member, quotas, ended });
                }
            })
        };
        let begins = AbortOnDropHandle::new(begins);
        TakesPart { engine: Arc::clone(engine), member, begins, _ended: ends }
    }
}

/// Takes over as the controller says, on the threads that serve clients.
struct Successor {
    engine: Arc<Engine>,
    quotas: Arc<QuotaManager>,
    runtime: Handle,
}

#[async_trait]
impl Duties for Successor {
    fn set_term(&self, term: Option<Term>) {
        self.engine.set_term(term);
    }

    async fn adopt(
        &self,
        dead: &BTreeSet<Incarnation>,
        partitions: &BTreeSet<PartitionId>,
    ) -> Result<(), String> {
        let (engine, dead, partitions) =
            (Arc::clone(&self.engine), dead.clone(), partitions.clone());
        let adopting = self
            .runtime
            .spawn(async move { engine.adopt(&dead, |id| partitions.contains(&id)).await });
        let adopted = adopting.await.map_err(|error| error.to_string())?;
        adopted.map_err(|error| error.to_string())
    }

    async fn hand_over(
        &self,
        partitions: &BTreeSet<PartitionId>,
        successor: Incarnation,
    ) -> Result<(), String> {
        let engine = Arc::clone(&self.engine);
        let partitions: Vec<_> = partitions.iter().copied().collect();
        let handing =
            self.runtime.spawn(async move { engine.hand_over(&partitions, successor).await });
        let handed = handing.await.map_err(|error| error.to_string())?;
        handed.map(drop).map_err(|error| error.to_string())
    }

    fn storage(&self) -> StorageReport {
        let LaneProgress { pending, quick_write } = self.engine.lane.progress();
        StorageReport::new(pending, quick_write)
    }

    fn prove_storage(&self) {
        self.engine.prove_storage();
    }

    fn report_use(&self) -> Vec<LimitUse> {
        self.quotas.report_use()
    }

    fn set_shares(&self, shares: Vec<LimitShare>) {
        self.quotas.set_shares(shares);
    }
}
