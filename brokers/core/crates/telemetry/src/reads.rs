//! Metrics of reading from storage.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::labels::SourceLabel;

/// Metrics of runs that are read from lanes and objects. Clones count into the same figures.
#[derive(Debug, Clone)]
pub struct BlockMetrics {
    served: Family<SourceLabel, Counter>,
    from_memory: Counter,
    from_storage: Counter,
    loads: Counter,
    loaded: Counter,
    ahead: Counter,
    /// Places whose checksum was wrong.
    pub damaged: Counter,
}

impl Default for BlockMetrics {
    fn default() -> Self {
        let served = Family::<SourceLabel, Counter>::default();
        let of = |source| served.get_or_create_owned(&SourceLabel { source });
        Self {
            from_memory: of("memory"),
            from_storage: of("storage"),
            served,
            loads: Counter::default(),
            loaded: Counter::default(),
            ahead: Counter::default(),
            damaged: Counter::default(),
        }
    }
}

impl BlockMetrics {
    /// Notes bytes that a reader got, and whether they were in memory when it came.
    pub fn read(&self, in_memory: bool, bytes: u64) {
        let counter = if in_memory { &self.from_memory } else { &self.from_storage };
        counter.inc_by(bytes);
    }

    /// Notes a read of storage.
    pub fn loaded(&self, bytes: u64) {
        self.loads.inc();
        self.loaded.inc_by(bytes);
    }

    /// Notes bytes that are read ahead.
    pub fn read_ahead(&self, bytes: u64) {
        self.ahead.inc_by(bytes);
    }

    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let help = "Bytes of lanes and objects for clients by where a reader found them";
        registry.register("freshet_block_served_bytes", help, metrics.served.clone());
        let described = [
            ("freshet_block_loads", "Reads of lane files and objects for clients", &metrics.loads),
            ("freshet_block_loaded_bytes", "Bytes of these", &metrics.loaded),
            ("freshet_read_ahead_bytes", "Bytes of these before a client asked", &metrics.ahead),
            ("freshet_damaged_reads", "Places whose bytes do not check", &metrics.damaged),
        ];
        for (name, help, counter) in described {
            registry.register(name, help, counter.clone());
        }
        metrics
    }
}
