//! Starts an engine: takes over from earlier incarnations, opens the partitions, then starts the
//! tasks that run until the engine ends ([`EngineTasks`]).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio_util::task::AbortOnDropHandle;

use super::configs::BrokerConfigs;
use super::copies::Copies;
use super::freshness::Freshness;
use super::opening::PartitionOpener;
use super::reading::BatchReading;
use super::takeover::{Claim, Claimant};
use super::topic_jobs::TopicJobs;
use super::topics::{TopicKeeper, ViewedTopics};
use super::{Engine, EngineSettings, StartError, groups, hidden_topics};
use freshet_coordinator::group::GroupCoordinator;
use freshet_jobs::descriptors::Descriptors;
use freshet_jobs::inherit::{DeadLane, Inherited};
use freshet_jobs::publish::Turns;
use freshet_jobs::{BrokerJobs, ClusterJobs, JobContext, JobMessage};
use freshet_metadata::cluster::{ClusterFacts, ClusterMetadata, Term};
use freshet_metadata::schema::{ClusterRecord, IncarnationState};
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
use freshet_storage::payers::PayerRules;
use freshet_storage::usage::EgressMeter;
use freshet_world::env::Environment;
use freshet_world::env::store::ObjectStore;
use freshet_world::watch;

impl Engine {
    /// Starts a new incarnation: takes over what earlier incarnations led, then serves it. The
    /// future is boxed so that it is compiled in this crate only, and not again in each crate that
    /// awaits it.
    ///
    /// # Errors
    /// Any [`StartError`]. An incarnation that failed to start is not used again: the caller calls
    /// `start` again, which claims another one.
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
        // This comes before everything that deletes: when it returns, the lane's first checkpoint
        // is durable and names the manifests that count. Until then only earlier lanes name them.
        let (lane, lane_writer) = taken.start_lane(&environment, &settings, jobs.clone()).await?;
        let (changes, opened) = watch::channel(0);
        let keeper = Arc::new(taken.topic_keeper(&environment, &settings, (&lane, changes)));
        let term = watch::Sender::new(taken.only_term());
        let groups = taken.create_groups(&environment, &settings, &lane);
        let load_groups = groups::coordinator_loader(&groups, &taken.view);
        // This subscribes to the view before any group is loaded. A topic that is deleted while
        // groups are loaded is then seen here; one that was deleted before is seen by the loader.
        let forget_offsets = groups::forget_deleted(Arc::clone(&groups), Arc::clone(&taken.view));
        taken.partitions.all().into_iter().for_each(&load_groups);
        let egress = Arc::new(EgressMeter::new(taken.payer_rules()));
        let freshness = Arc::new(Freshness::new(settings.rules, taken.liveness.clone()));
        let context = Arc::new(taken.job_context(&environment, &settings, &lane));
        let for_jobs = (&keeper, term.subscribe());
        let jobs_task = taken.start_jobs(&environment, &settings, context, for_jobs, messages)?;
        let liveness = taken.liveness.clone();
        let copies = taken.copies(&environment, &settings);
        let topic_jobs = taken.topic_jobs(term.subscribe(), &environment, &settings);
        let clock = Arc::clone(&environment.clock);
        let view = Arc::clone(&taken.view);
        let exists = move |topic| view.snapshot().led_topic(topic).is_some();
        let tasks = EngineTasks {
            lane_writer,
            keep_topics: keeper.clone().run(load_groups).boxed(),
            jobs: jobs_task,
            write_egress: egress.clone().run(Arc::clone(&lane), clock, exists).boxed(),
            check_token: taken.check_token(&freshness).boxed(),
            forget_offsets: forget_offsets.boxed(),
            write_descriptors: taken.descriptors(&settings).run().boxed(),
            topic_jobs: topic_jobs.run().boxed(),
            follow_metadata: follow_metadata(taken.follower, liveness.clone()).boxed(),
        };
        let tasks = tasks.spawn_all(&liveness);
        let reading = BatchReading::new(
            settings.decompression_bytes,
            Handle::current().metrics().num_workers(),
            Arc::clone(&environment.disk),
        );
        let record = taken.cluster;
        tracing::info!(incarnation = taken.claim.incarnation.0, "leading");
        Ok(Arc::new(Self {
            decoy_secret: record.decoy_secret_bytes().expect("checked when it was read"),
            cluster_id: record.cluster_id,
            keeper,
            adopting: tokio::sync::Mutex::default(),
            handing: tokio::sync::Mutex::default(),
            node_id: i32::try_from(settings.slot).expect("slots are few"),
            incarnation: taken.claim.incarnation,
            environment,
            metadata: taken.metadata,
            view: taken.view,
            partitions: taken.partitions,
            copies,
            sources: taken.sources,
            lane,
            reading,
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

/// The tasks of an engine. Each runs until the engine is dropped, which aborts
/// them in the order of the fields. None waits for another one to start, so their order decides
/// nothing; what must happen in order happens in [`Engine::start`] before they are spawned.
struct EngineTasks {
    /// Writes and syncs the blocks of the lane. It runs already: the first checkpoint had to be
    /// durable. It is the first to end, so that nothing is acknowledged while the others end.
    lane_writer: AbortOnDropHandle<()>,
    /// Keeps the image of the metadata store current. All tasks below learn from it which topics
    /// there are; an engine without it would serve deleted topics, so its end stands the engine
    /// down.
    follow_metadata: BoxFuture<'static, ()>,
    /// Opens the partitions of topics that were created and closes those of deleted ones.
    keep_topics: BoxFuture<'static, ()>,
    /// Splits lane files into objects, and does retention, compaction and sweeping. It runs
    /// already, on a thread of its own.
    jobs: AbortOnDropHandle<()>,
    /// Writes to the lane how many bytes clients fetched; the bill counts them from there.
    write_egress: BoxFuture<'static, ()>,
    /// Checks the owner token for reads that must not be stale. It also checks it once in a while
    /// when nobody reads, so that an idle broker that was fenced stands down.
    check_token: BoxFuture<'static, ()>,
    /// Forgets the offsets that groups committed for topics which are deleted from now on.
    forget_offsets: BoxFuture<'static, ()>,
    /// Copies the records of topics to the object store, from which a restored metadata store
    /// learns their names and configs.
    write_descriptors: BoxFuture<'static, ()>,
    /// Removes what an interrupted creation or deletion of a topic left in the metadata store, and
    /// gives up deleted topics once they can no longer be restored. Nothing that is served depends
    /// on it, so the start does not wait for it.
    topic_jobs: BoxFuture<'static, ()>,
}

impl EngineTasks {
    /// Spawns the tasks that do not run yet. A panic in any of them stands the engine down.
    fn spawn_all(self, liveness: &Liveness) -> Vec<AbortOnDropHandle<()>> {
        let spawn = |task| AbortOnDropHandle::new(tokio::spawn(watched(liveness.clone(), task)));
        vec![
            self.lane_writer,
            spawn(self.follow_metadata),
            spawn(self.keep_topics),
            self.jobs,
            spawn(self.write_egress),
            spawn(self.check_token),
            spawn(self.forget_offsets),
            spawn(self.write_descriptors),
            spawn(self.topic_jobs),
        ]
    }
}

/// What a new incarnation has once it leads every partition, before any task runs.
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
    /// Claims an incarnation, ends the earlier ones, and opens every partition under it. The order
    /// of the steps is that of the folder's `README.md`; every step may be interrupted, and the
    /// next start does all of them again.
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
            place: &settings.place,
            scale: cluster.scale,
            rules: settings.rules,
        };
        // First the claim: it fences and seals the earlier lanes, so that what is read of them
        // below cannot grow any more.
        let mut claim = claimant.claim().await?;
        // Only now the image: an earlier incarnation can change nothing of it since the claim.
        let (mut view, _) = MetadataView::open(Arc::clone(&scoped)).await?;
        let snapshot = view.snapshot();
        claim.succeed_what_others_took(&snapshot);
        let succession = &claim.succession;
        let whole = claim.lanes_to_be_whole(cluster.scale, &snapshot);
        let earlier = claimant.survey(succession, &whole).await?;
        let liveness = Liveness::default();
        let objects = Arc::clone(&environment.bucket);
        let adoption = hidden_topics::Adoption {
            metadata: &metadata,
            succession,
            term: Term::of_only_broker(claim.fence, snapshot.controller.as_deref()),
            earlier: &earlier,
            store: objects.as_ref(),
            cluster: &settings.cluster,
            now_ms: environment.clock.now_ms(),
        };
        if adoption.adopt(&view.snapshot()).await? {
            // Opened again, so that the partitions that were just added are taken over too.
            (view, _) = MetadataView::open(Arc::clone(&scoped)).await?;
        }
        let sources = Arc::new(sources(environment, settings, &objects, &liveness));
        let partitions = Arc::new(Partitions::default());
        let dead_lanes = earlier.lanes.clone();
        let opener = PartitionOpener::new(
            (metadata.as_ref(), claim.fence),
            &view,
            environment,
            settings,
            &sources,
        );
        for opened in opener.open_all(succession, earlier, claim.takes()).await? {
            opened.register(&partitions);
        }
        claimant.register_unknown_lanes(&claim).await?;
        // Opened again, so that it shows the leaders that were just written: a client that received
        // the earlier leaders' epochs would insist on them.
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
                // The receiver is gone once the engine has ended; then the next start splits the
                // file.
                let _ = jobs.send(JobMessage::Rolled(file));
            }),
            liveness: self.liveness.clone(),
            rules: settings.rules,
            metrics: settings.metrics.lane.clone(),
            payers: self.payer_rules(),
        };
        Ok(freshet_storage::lane::writer::start(parts).await?)
    }

    /// Which payers have usage of their own: as many as the cluster's limit says.
    fn payer_rules(&self) -> PayerRules {
        let view = Arc::clone(&self.view);
        let pairs_max = move || {
            let limit = view.snapshot().limits.usage_pairs_per_minute?;
            usize::try_from(limit).ok()
        };
        PayerRules { pairs_max: Arc::new(pairs_max), free: groups::PRINCIPAL.into() }
    }

    /// The term of a broker that is the cluster's only one. Among several the controller gets one,
    /// once it is elected.
    fn only_term(&self) -> Option<Term> {
        let elected = self.view.snapshot().controller.clone();
        let term = Term::of_only_broker(self.claim.fence, elected.as_deref());
        (self.cluster.scale <= 1).then_some(term)
    }

    /// Creates what reads for leaders in other zones.
    fn copies(&self, environment: &Environment, settings: &EngineSettings) -> Copies {
        let (sources, topics) = (Arc::clone(&self.sources), self.viewed_topics(settings));
        Copies::new(environment.clone(), settings.cluster.clone(), sources, topics)
    }

    /// Checks the owner token until the engine ends.
    fn check_token(&self, freshness: &Arc<Freshness>) -> impl Future<Output = ()> + use<> {
        let (view, own) = (Arc::clone(&self.view), self.claim.incarnation);
        let mut was_shown = false;
        let is_fenced = move || match view.snapshot().incarnations.get(&own) {
            // Ended incarnations are removed in the end.
            None => was_shown,
            Some(stored) => {
                was_shown = true;
                matches!(stored.record.state, IncarnationState::Fenced | IncarnationState::Sealed)
            }
        };
        Arc::clone(freshness).run(Arc::clone(&self.claim.token), is_fenced)
    }

    /// Creates the group coordinator.
    fn create_groups(
        &self,
        environment: &Environment,
        settings: &EngineSettings,
        lane: &Arc<Lane>,
    ) -> Arc<GroupCoordinator> {
        let (view, partitions) = (&self.view, &self.partitions);
        groups::create_coordinator(environment, settings, view, partitions, lane)
    }

    /// Starts the jobs, on a thread of their own: they compute for long at a time, and clients must
    /// be answered meanwhile.
    fn start_jobs(
        &self,
        environment: &Environment,
        settings: &EngineSettings,
        context: Arc<JobContext>,
        (keeper, term): (&Arc<TopicKeeper>, watch::Receiver<Option<Term>>),
        messages: mpsc::UnboundedReceiver<JobMessage>,
    ) -> Result<AbortOnDropHandle<()>, StartError> {
        let (own_jobs, cluster_jobs) = self.jobs(settings, context, keeper, term, messages);
        let run_jobs = freshet_jobs::run(own_jobs, cluster_jobs);
        let run_jobs = watched(self.liveness.clone(), run_jobs).boxed();
        Ok(environment.disk.set_aside(run_jobs).map_err(LaneError::from)?)
    }

    /// The jobs on the partitions that this broker leads, and those that remove what nobody names.
    /// `messages` brings what the first are asked to do.
    fn jobs(
        &self,
        settings: &EngineSettings,
        context: Arc<JobContext>,
        keeper: &Arc<TopicKeeper>,
        term: watch::Receiver<Option<Term>>,
        messages: mpsc::UnboundedReceiver<JobMessage>,
    ) -> (BrokerJobs, ClusterJobs) {
        let topics = self.viewed_topics(settings);
        let of_cluster = ClusterJobs {
            term,
            context: Arc::clone(&context),
            topics: Arc::clone(&topics) as Arc<_>,
            remains: Arc::clone(keeper) as Arc<_>,
            settings: settings.jobs,
        };
        let inherited =
            Inherited { lanes: self.dead_lanes.clone(), extents: Arc::clone(keeper) as Arc<_> };
        let own = BrokerJobs { context, topics, inherited, settings: settings.jobs, messages };
        (own, of_cluster)
    }

    fn topic_jobs(
        &self,
        term: watch::Receiver<Option<Term>>,
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

    /// What jobs and others ask about topics.
    fn viewed_topics(&self, settings: &EngineSettings) -> Arc<ViewedTopics> {
        let configs =
            BrokerConfigs::new(Arc::clone(&self.view), settings.configs.clone(), settings.slot);
        Arc::new(ViewedTopics { view: Arc::clone(&self.view), configs })
    }

    fn topic_keeper(
        &self,
        environment: &Environment,
        settings: &EngineSettings,
        (lane, changes): (&Arc<Lane>, watch::Sender<u64>),
    ) -> TopicKeeper {
        TopicKeeper {
            metadata: Arc::clone(&self.metadata),
            view: Arc::clone(&self.view),
            fence: self.claim.fence,
            partitions: Arc::clone(&self.partitions),
            lane: Arc::clone(lane),
            sources: Arc::clone(&self.sources),
            rules: self.viewed_topics(settings),
            clock: Arc::clone(&environment.clock),
            store: Arc::clone(&self.objects),
            cluster: settings.cluster.clone(),
            again: Notify::new(),
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
    // Read-ahead may fill half of the block cache; the other half is for blocks being served.
    let windows_total = settings.reads.block_bytes as u64 / 2;
    Sources {
        cache: HotCache::new(settings.hot_bytes),
        lanes: LaneReader::new(Arc::clone(&environment.disk), cluster, Arc::clone(&blocks)),
        cold: ColdReader::new(Arc::clone(objects), cluster, Arc::clone(&blocks)),
        followers: Followers::new(settings.reads.ahead_bytes_max, windows_total),
        read_faults: ReadFaults::new(counted),
        blocks,
        backlog: Backlog::default(),
        producers: Arc::default(),
        bound_changes: AtomicU64::new(0),
        liveness: liveness.clone(),
        rules: settings.rules,
        metrics: Arc::clone(&settings.metrics),
    }
}

/// Keeps the image of the metadata store current, and stands the engine down when that ends: from
/// then on it would not see which topics are created or deleted.
async fn follow_metadata(follower: Follower, liveness: Liveness) {
    let error = follower.run().await;
    liveness.stand_down(&format!("the view of the metadata ended: {error}"));
}

/// Runs a task, and stands the engine down where the task panics: the other tasks would go on
/// without it, and the engine would look healthy while, for example, nothing was split any more.
async fn watched(liveness: Liveness, task: BoxFuture<'static, ()>) {
    if AssertUnwindSafe(task).catch_unwind().await.is_err() {
        liveness.stand_down("a task of the engine panicked");
    }
}
