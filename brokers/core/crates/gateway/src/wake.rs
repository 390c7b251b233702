//! Requesting that the keeper wakes a cluster: once for all clients that wait, and not too often.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::bucket::Bucket;
use super::metrics::GatewayMetrics;
use freshet_metadata::cell::CellMetadata;
use freshet_metadata::schema::cell::{ClusterSpec, WakeRequest};
use freshet_world::env::Clock;

/// A request is repeated where the cluster does not run after this time. One that is still stored
/// stays as it is.
const AGAIN: Duration = Duration::from_secs(5);
/// The pause where a request could not be written or exceeds the rate.
const REST: Duration = Duration::from_millis(100);

/// The wake requests of all clusters (see the module).
pub(super) struct Wakes {
    cell: CellMetadata,
    clock: Arc<dyn Clock>,
    metrics: Arc<GatewayMetrics>,
    clusters: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Wake>>>>,
}

/// The wake requests of one cluster.
struct Wake {
    rate: Bucket,
    /// When the request was last written since the cluster was last reached.
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

    /// Returns once a wake of the cluster is requested, by this connection or another. It is called
    /// for authenticated clients only. It waits for as long as the cluster's rate of wakes is used
    /// up; the caller bounds the time.
    pub(super) async fn ask(&self, spec: &ClusterSpec, connection: &str) {
        let of_cluster = self.of_cluster(spec);
        let mut wake = of_cluster.lock().await;
        match wake.asked_at {
            Some(at) if at.elapsed() < AGAIN => return,
            // To repeat the request of the same wake costs no token of the rate.
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
                    tracing::warn!(
                        cluster, connection, %error,
                        "cannot request a wake: trying again"
                    );
                    sleep(REST * 10).await;
                }
            }
        }
    }

    fn note(&self, cluster: &str, connection: &str, stands: &WakeRequest, written: bool) {
        if written {
            self.metrics.wake_requested(cluster);
            tracing::info!(cluster, connection, "requested a wake of the cluster");
        } else {
            // The connection whose request is stored is named, because that one is in the keeper's
            // log.
            tracing::info!(
                cluster,
                connection,
                by = stands.by,
                "a wake of the cluster is requested already"
            );
        }
    }

    /// Notes that a cluster was reached, so that the next request counts as another wake.
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

    struct WakeFixture {
        cell: CellMetadata,
        store: Arc<Switched>,
        wakes: Wakes,
    }

    impl WakeFixture {
        fn new() -> Self {
            let store = Switched::new();
            let cell = CellMetadata::new(store.clone());
            let wakes = Wakes::new(cell.clone(), Arc::new(StoppedClock(7)), Arc::default());
            Self { cell, store, wakes }
        }

        /// Whether a request is stored; removes it, as the keeper does.
        async fn taken(&self) -> bool {
            match self.cell.wake("cl_1").await.unwrap() {
                Some(wake) => self.cell.remove_wake("cl_1", wake.revision).await.unwrap(),
                None => false,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_clients_make_one_request() {
        let fixture = WakeFixture::new();
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
        let fixture = WakeFixture::new();
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
        let fixture = WakeFixture::new();
        let spec = spec("cl_1", 1);
        fixture.store.turn_off();
        assert!(timeout(Duration::from_secs(3), fixture.wakes.ask(&spec, "con_1")).await.is_err());
        fixture.store.turn_on();
        // That request took a token and woke nothing; the next token is there.
        fixture.wakes.ask(&spec, "con_1").await;
        assert!(fixture.taken().await);
    }
}
