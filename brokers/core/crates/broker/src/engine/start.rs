//! Starting an engine: take over, open, then set everything going.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use super::configs::BrokerConfigs;
use super::descriptors::Descriptors;
use super::freshness::Freshness;
use super::opening::PartitionOpener;
use super::takeover::{Claim, Claimant};
use super::topic_jobs::TopicJobs;
use super::topics::{TopicKeeper, ViewedTopics};
use super::{Engine, EngineSettings, StartError, groups, hidden_topics};
use freshet_jobs::inherit::{DeadLane, Inherited};
use freshet_jobs::publish::Turns;
use freshet_jobs::{BrokerJobs, ClusterJobs, JobContext, JobMessage};
use freshet_metadata::cluster::{ClusterFacts, ClusterMetadata, Term};
use freshet_metadata::schema::ClusterRecord;
use freshet_metadata::store::{MetadataStore, ScopedStore};
use freshet_metadata::view::{Follower, MetadataView};
use freshet_partition::read_faults::ReadFaults;
use freshet_partition::registry::Partitions;
use freshet_partition::{Backlog, Sources};
use freshet_storage::cache::HotCache;
use freshet_storage::cache::ahead::Followers;
use freshet_storage::cache::blocks::BlockCache;
use freshet_storage::cold::reader::ColdReader;
use freshet_storage::lane::queue::Lane;
use freshet_storage::lane::reader::LaneReader;
use freshet_storage::lane::writer::WriterParts;
use freshet_storage::lane::{LaneError, LanePaths};
use freshet_storage::liveness::Liveness;
use freshet_storage::usage::EgressMeter;
use freshet_world::env::Environment;
use freshet_world::env::store::ObjectStore;

impl Engine {
    /// Starts a new incarnation: takes over whatever was before, then serves. Boxed,
    /// so that it is compiled here and not once more for everybody who waits for it.
    ///
    /// # Errors
    /// [`StartError`]; the caller starts anew, as yet another incarnation.
    pub fn start(
        environment: Environment,
        store: Arc<dyn MetadataStore>,
        settings: EngineSettings,
    ) -> BoxFuture<'static, Result<Arc<Self>, StartError>> {
        Self::take_over(environment, store, settings).boxed()
    }

    async fn take_over(
        environment: Environment,
        store: Arc<dyn MetadataStore>,
        settings: EngineSettings,
    ) -> Result<Arc<Self>, StartError> {
        let settings = Arc::new(settings);
        let taken = TakenOver::by(&environment, store, &settings).await?;
        let (jobs, messages) = mpsc::unbounded_channel();
        let (lane, writer) = taken.start_lane(&environment, &settings, jobs.clone()).await?;
        let (changes, opened) = watch::channel(0);
        let keeper = Arc::new(taken.topic_keeper(changes));
        let term = taken.term();
        let groups = groups::start(&environment, &settings, &taken.view, &taken.partitions, &lane);
        groups.expire_in(term);
        let load_groups = groups::loader(&groups, &taken.view);
        // Before anything is loaded: what is deleted later, it sees.
        let forget = groups::forget_deleted(Arc::clone(&groups), Arc::clone(&taken.view));
        taken.partitions.all().into_iter().for_each(&load_groups);
        let egress = Arc::new(EgressMeter::default());
        let freshness = Arc::new(Freshness::new(settings.rules, taken.liveness.clone()));
        let context = Arc::new(taken.job_context(&environment, &settings, &lane));
        let (own_jobs, cluster_jobs) = taken.jobs(&settings, context, &keeper, term, messages);
        let run_jobs = freshet_jobs::run(own_jobs, cluster_jobs);
        // They compute for long at a time: clients are answered meanwhile.
        let run_jobs = watched(taken.liveness.clone(), run_jobs).boxed();
        let jobs_task = environment.disk.set_aside(run_jobs).map_err(LaneError::from)?;
        let descriptors = taken.descriptors(&settings);
        let liveness = taken.liveness.clone();
        let topic_jobs = taken.topic_jobs(term, &environment, &settings);
        let spawn = |task| spawn(liveness.clone(), task);
        let tasks = vec![
            writer,
            spawn(follow(taken.follower, liveness.clone()).boxed()),
            spawn(keeper.run(load_groups).boxed()),
            jobs_task,
            spawn(egress.clone().run(Arc::clone(&lane), Arc::clone(&environment.clock)).boxed()),
            spawn(freshness.clone().run(Arc::clone(&taken.claim.token)).boxed()),
            spawn(forget.boxed()),
            spawn(topic_jobs.clone().sweep().boxed()),
            spawn(descriptors.run().boxed()),
            spawn(topic_jobs.purge_when_due().boxed()),
        ];
        let record = taken.cluster;
        tracing::info!(incarnation = taken.claim.incarnation.0, "leading");
        Ok(Arc::new(Self {
            decoy_secret: record.decoy_secret_bytes().expect("checked when it was read"),
            cluster_id: record.cluster_id,
            node_id: i32::try_from(settings.slot).expect("slots are few"),
            incarnation: taken.claim.incarnation,
            environment,
            metadata: taken.metadata,
            view: taken.view,
            partitions: taken.partitions,
            sources: taken.sources,
            lane,
            liveness,
            groups,
            egress,
            fence: taken.claim.fence,
            term,
            freshness,
            opened,
            jobs,
            settings,
            _tasks: tasks,
        }))
    }
}

/// What a new incarnation has once it leads every partition, before anything runs.
struct TakenOver {
    cluster: ClusterRecord,
    metadata: Arc<ClusterMetadata>,
    view: Arc<MetadataView>,
    follower: Follower,
    claim: Claim,
    objects: Arc<dyn ObjectStore>,
    sources: Arc<Sources>,
    partitions: Arc<Partitions>,
    dead_lanes: Vec<DeadLane>,
    liveness: Liveness,
}

impl TakenOver {
    async fn by(
        environment: &Environment,
        store: Arc<dyn MetadataStore>,
        settings: &EngineSettings,
    ) -> Result<Self, StartError> {
        let scoped: Arc<dyn MetadataStore> = Arc::new(ScopedStore::new(store, &settings.cluster)?);
        let metadata = Arc::new(ClusterMetadata::new(
            Arc::clone(&scoped),
            Arc::clone(&environment.clock),
            Arc::clone(&environment.randomness),
        ));
        let facts = ClusterFacts { cluster_id: None, scale: 1 };
        let cluster = metadata.open_or_create(&facts).await?.record;
        let claimant = Claimant {
            environment,
            metadata: &metadata,
            cluster: &settings.cluster,
            slot: settings.slot,
            host: &settings.host,
            rules: settings.rules,
        };
        let claim = claimant.claim().await?;
        let earlier = claimant.survey(&claim).await?;
        let (mut view, _) = MetadataView::open(Arc::clone(&scoped)).await?;
        let liveness = Liveness::default();
        let objects = Arc::clone(&environment.bucket);
        let adoption = hidden_topics::Adoption {
            metadata: &metadata,
            claim: &claim,
            term: Term::of_only_broker(claim.fence),
            earlier: &earlier,
            store: objects.as_ref(),
            cluster: &settings.cluster,
            now_ms: environment.clock.now_ms(),
        };
        if adoption.adopt(&view.snapshot()).await? {
            (view, _) = MetadataView::open(Arc::clone(&scoped)).await?;
        }
        let sources = Arc::new(sources(environment, settings, &objects, &liveness));
        let partitions = Arc::new(Partitions::default());
        let dead_lanes = earlier.lanes.clone();
        let opener = PartitionOpener {
            metadata: &metadata,
            view: &view,
            store: &objects,
            cluster: &settings.cluster,
            sources: &sources,
        };
        opener.open_all(&claim, earlier, &partitions).await?;
        claimant.register_unknown_lanes(&claim).await?;
        // With what was just written: a client that were told of the leaders before would hold on
        // to their epochs.
        let (view, follower) = MetadataView::open(scoped).await?;
        Ok(Self {
            cluster,
            metadata,
            view,
            follower,
            claim,
            objects,
            sources,
            partitions,
            dead_lanes,
            liveness,
        })
    }

    async fn start_lane(
        &self,
        environment: &Environment,
        settings: &EngineSettings,
        jobs: mpsc::UnboundedSender<JobMessage>,
    ) -> Result<(Arc<Lane>, AbortOnDropHandle<()>), StartError> {
        let parts = WriterParts {
            disk: Arc::clone(&environment.disk),
            clock: Arc::clone(&environment.clock),
            paths: LanePaths::new(&settings.cluster, self.claim.incarnation),
            token: Arc::clone(&self.claim.token),
            incarnation: self.claim.incarnation,
            nonce: environment.randomness.next_u64(),
            settings: settings.lane,
            checkpoints: Arc::clone(&self.partitions) as Arc<_>,
            rolled: Box::new(move |file| {
                // Nobody splits any more where the receiver is gone: the instance has ended.
                let _ = jobs.send(JobMessage::Rolled(file));
            }),
            liveness: self.liveness.clone(),
            rules: settings.rules,
            metrics: settings.metrics.lane.clone(),
        };
        Ok(freshet_storage::lane::writer::start(parts).await?)
    }

    /// Jobs of the cluster are this broker's, as long as it is the only one.
    fn term(&self) -> Term {
        Term::of_only_broker(self.claim.fence)
    }

    /// Jobs on what this broker leads, and those of the cluster under `term`.
    fn jobs(
        &self,
        settings: &EngineSettings,
        context: Arc<JobContext>,
        keeper: &Arc<TopicKeeper>,
        term: Term,
        messages: mpsc::UnboundedReceiver<JobMessage>,
    ) -> (BrokerJobs, ClusterJobs) {
        let configs = BrokerConfigs::new(Arc::clone(&self.view), settings.configs.clone());
        let topics = Arc::new(ViewedTopics { view: Arc::clone(&self.view), configs });
        let of_cluster = ClusterJobs {
            term,
            context: Arc::clone(&context),
            topics: Arc::clone(&topics) as Arc<_>,
            remains: Arc::clone(keeper) as Arc<_>,
            settings: settings.jobs,
        };
        let inherited =
            Inherited { lanes: self.dead_lanes.clone(), trimmer: Arc::clone(keeper) as Arc<_> };
        let own = BrokerJobs { context, topics, inherited, settings: settings.jobs, messages };
        (own, of_cluster)
    }

    fn topic_jobs(
        &self,
        term: Term,
        environment: &Environment,
        settings: &EngineSettings,
    ) -> TopicJobs {
        TopicJobs {
            term,
            rules: settings.rules,
            metadata: Arc::clone(&self.metadata),
            view: Arc::clone(&self.view),
            clock: Arc::clone(&environment.clock),
        }
    }

    fn descriptors(&self, settings: &EngineSettings) -> Descriptors {
        Descriptors {
            store: Arc::clone(&self.objects),
            cluster: settings.cluster.clone(),
            incarnation: self.claim.incarnation,
            token: Arc::clone(&self.claim.token),
            rules: settings.rules,
            view: Arc::clone(&self.view),
        }
    }

    fn topic_keeper(&self, changes: watch::Sender<u64>) -> TopicKeeper {
        TopicKeeper {
            metadata: Arc::clone(&self.metadata),
            view: Arc::clone(&self.view),
            fence: self.claim.fence,
            partitions: Arc::clone(&self.partitions),
            sources: Arc::clone(&self.sources),
            changes,
        }
    }

    fn job_context(
        &self,
        environment: &Environment,
        settings: &EngineSettings,
        lane: &Arc<Lane>,
    ) -> JobContext {
        JobContext {
            clock: Arc::clone(&environment.clock),
            disk: Arc::clone(&environment.disk),
            store: Arc::clone(&self.objects),
            cluster: settings.cluster.clone(),
            incarnation: self.claim.incarnation,
            lane: Arc::clone(lane),
            token: Arc::clone(&self.claim.token),
            sources: Arc::clone(&self.sources),
            partitions: Arc::clone(&self.partitions),
            making: Arc::default(),
            turns: Turns::default(),
        }
    }
}

fn sources(
    environment: &Environment,
    settings: &EngineSettings,
    objects: &Arc<dyn ObjectStore>,
    liveness: &Liveness,
) -> Sources {
    let counted = settings.metrics.blocks.clone();
    let blocks = Arc::new(BlockCache::new(settings.reads, counted.clone()));
    let cluster = &settings.cluster;
    // What is read ahead leaves room for what is being served.
    let windows_total = settings.reads.block_bytes as u64 / 2;
    Sources {
        cache: HotCache::new(settings.hot_bytes),
        lanes: LaneReader::new(Arc::clone(&environment.disk), cluster, Arc::clone(&blocks)),
        cold: ColdReader::new(Arc::clone(objects), cluster, Arc::clone(&blocks)),
        followers: Followers::new(settings.reads.ahead_bytes_max, windows_total),
        read_faults: ReadFaults::new(counted),
        blocks,
        backlog: Backlog::default(),
        liveness: liveness.clone(),
        rules: settings.rules,
        metrics: Arc::clone(&settings.metrics),
    }
}

/// Keeps the view current; an instance whose view ended knows nothing any more.
async fn follow(follower: Follower, liveness: Liveness) {
    let error = follower.run().await;
    liveness.stand_down(&format!("the view of the metadata ended: {error}"));
}

/// A task whose panic ends the instance: the rest would only seem to live.
async fn watched(liveness: Liveness, task: BoxFuture<'static, ()>) {
    if AssertUnwindSafe(task).catch_unwind().await.is_err() {
        liveness.stand_down("a task of the engine panicked");
    }
}

fn spawn(liveness: Liveness, task: BoxFuture<'static, ()>) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(watched(liveness, task)))
}
