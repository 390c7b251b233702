//! Asking the keeper to wake a cluster: once for all clients that wait, and not too often.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::limits::Bucket;
use super::metrics::GatewayMetrics;
use freshet_metadata::cell::CellMetadata;
use freshet_metadata::schema::cell::{ClusterSpec, WakeRequest};
use freshet_world::env::Clock;

/// A request is made again where the cluster does not run after this long; one that is still there
/// stays as it is.
const AGAIN: Duration = Duration::from_secs(5);
/// How long to rest where a request could not be written, or has to wait for its turn.
const REST: Duration = Duration::from_millis(100);

/// See the module.
pub(super) struct Wakes {
    cell: CellMetadata,
    clock: Arc<dyn Clock>,
    metrics: Arc<GatewayMetrics>,
    clusters: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Wake>>>>,
}

/// What is known of the wakes of a cluster.
struct Wake {
    rate: Bucket,
    /// When the request was written last, since the cluster was reached.
    asked_at: Option<Instant>,
}

impl Wakes {
    pub(super) fn new(
        cell: CellMetadata,
        clock: Arc<dyn Clock>,
        metrics: Arc<GatewayMetrics>,
    ) -> Self {
        Self { cell, clock, metrics, clusters: Mutex::default() }
    }

    /// Returns once the keeper was asked to wake the cluster, by this connection or another. Only
    /// for clients that have authenticated. Waits for as long as the cluster may not be woken
    /// again; the caller bounds the time.
    pub(super) async fn ask(&self, spec: &ClusterSpec, connection: &str) {
        let of_cluster = self.of_cluster(spec);
        let mut wake = of_cluster.lock().await;
        match wake.asked_at {
            Some(at) if at.elapsed() < AGAIN => return,
            // Asking again for the same awakening is no other one.
            Some(_) => {}
            None => {
                let capacity = spec.wakes_per_minute_max;
                while !wake.rate.take(capacity, f64::from(capacity) / 60.0) {
                    sleep(REST).await;
                }
            }
        }
        let by = format!("gateway {connection}");
        loop {
            let request = WakeRequest { requested_at_ms: self.clock.now_ms(), by: by.clone() };
            match self.cell.request_wake(&spec.id, &request).await {
                Ok((stored, written)) => {
                    self.note(&spec.id, connection, &stored.record, written);
                    wake.asked_at = Some(Instant::now());
                    return;
                }
                Err(error) => {
                    let cluster = &spec.id;
                    tracing::warn!(cluster, connection, %error, "cannot ask for a wake");
                    sleep(REST * 10).await;
                }
            }
        }
    }

    fn note(&self, cluster: &str, connection: &str, stands: &WakeRequest, written: bool) {
        if written {
            self.metrics.wake_requested(cluster);
            tracing::info!(cluster, connection, "asked for the cluster to be woken");
        } else {
            // So that one finds from here to the request that the keeper logs.
            tracing::info!(cluster, connection, by = stands.by, "is being woken already");
        }
    }

    /// Notes that a cluster was reached: the next wake is another one.
    pub(super) async fn reached(&self, cluster: &str) {
        let of_cluster = self.clusters.lock().get(cluster).cloned();
        if let Some(of_cluster) = of_cluster {
            of_cluster.lock().await.asked_at = None;
        }
    }

    /// Forgets a cluster that is gone.
    pub(super) fn forget(&self, cluster: &str) {
        self.clusters.lock().remove(cluster);
    }

    fn of_cluster(&self, spec: &ClusterSpec) -> Arc<tokio::sync::Mutex<Wake>> {
        let mut clusters = self.clusters.lock();
        let of_cluster = clusters.entry(spec.id.clone()).or_insert_with(|| {
            let rate = Bucket::full(spec.wakes_per_minute_max);
            Arc::new(tokio::sync::Mutex::new(Wake { rate, asked_at: None }))
        });
        Arc::clone(of_cluster)
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::testing::{StoppedClock, Switched};
    use freshet_metadata::samples::spec;

    struct Fixture {
        cell: CellMetadata,
        store: Arc<Switched>,
        wakes: Wakes,
    }

    impl Fixture {
        fn new() -> Self {
            let store = Switched::new();
            let cell = CellMetadata::new(store.clone());
            let wakes = Wakes::new(cell.clone(), Arc::new(StoppedClock(7)), Arc::default());
            Self { cell, store, wakes }
        }

        /// The request that stands, which the keeper then takes away.
        async fn taken(&self) -> bool {
            match self.cell.wake("cl_1").await.unwrap() {
                Some(wake) => self.cell.remove_wake("cl_1", wake.revision).await.unwrap(),
                None => false,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_clients_make_one_request() {
        let fixture = Fixture::new();
        let spec = spec("cl_1", 1);
        join_all((0..100).map(|_| fixture.wakes.ask(&spec, "con_1"))).await;
        let stored = fixture.cell.wake("cl_1").await.unwrap().unwrap();
        assert_eq!(stored.record, WakeRequest { requested_at_ms: 7, by: "gateway con_1".into() });
        assert!(fixture.taken().await);
        fixture.wakes.ask(&spec, "con_1").await;
        assert!(!fixture.taken().await, "asked for a moment ago");
        advance(AGAIN).await;
        fixture.wakes.ask(&spec, "con_1").await;
        assert!(fixture.taken().await, "still not reached");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_is_woken_so_often_a_minute() {
        let fixture = Fixture::new();
        let spec = spec("cl_1", 1);
        assert_eq!(spec.wakes_per_minute_max, 6);
        for _ in 0..6 {
            fixture.wakes.ask(&spec, "con_1").await;
            assert!(fixture.taken().await);
            fixture.wakes.reached("cl_1").await;
        }
        let seventh =
            timeout(Duration::from_millis(9_500), fixture.wakes.ask(&spec, "con_1")).await;
        assert!(seventh.is_err());
        assert!(!fixture.taken().await);
        timeout(Duration::from_secs(1), fixture.wakes.ask(&spec, "con_1")).await.unwrap();
        assert!(fixture.taken().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_down_is_asked_again() {
        let fixture = Fixture::new();
        let spec = spec("cl_1", 1);
        fixture.store.turn_off();
        assert!(timeout(Duration::from_secs(3), fixture.wakes.ask(&spec, "con_1")).await.is_err());
        fixture.store.turn_on();
        // It took a turn that led to nothing; the next one is there.
        fixture.wakes.ask(&spec, "con_1").await;
        assert!(fixture.taken().await);
    }
}
