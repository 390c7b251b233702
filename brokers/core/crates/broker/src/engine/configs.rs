//! The configs of brokers that hold now: what the metadata store has over what is static.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use freshet_configs::{BrokerConfig, Overrides};
use freshet_metadata::schema::ConfigScope;
use freshet_metadata::view::MetadataView;

/// See the module.
pub struct BrokerConfigs {
    view: Arc<MetadataView>,
    fixed: BrokerConfig,
    resolved: Derived<BTreeMap<ConfigScope, Overrides>, BrokerConfig>,
}

impl BrokerConfigs {
    /// The configs of a broker that was given `fixed` at its start.
    pub fn new(view: Arc<MetadataView>, fixed: BrokerConfig) -> Self {
        Self { view, fixed, resolved: Derived::default() }
    }

    /// What holds as far as the view knows. Resolved once for each change.
    pub fn current(&self) -> Arc<BrokerConfig> {
        let stored = Arc::clone(&self.view.snapshot().broker_configs);
        self.resolved.get(&stored, || match stored.get(&ConfigScope::Default) {
            Some(dynamic) => self.fixed.with_stored(dynamic),
            None => self.fixed.clone(),
        })
    }
}

/// Something computed from a part of the view, kept for as long as that part is the same.
pub struct Derived<S, T>(Mutex<Option<(Arc<S>, Arc<T>)>>);

impl<S, T> Default for Derived<S, T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<S, T> Derived<S, T> {
    /// What `derive` makes of `source`, or made of it before.
    pub fn get(&self, source: &Arc<S>, derive: impl FnOnce() -> T) -> Arc<T> {
        let mut known = self.0.lock();
        match &*known {
            Some((of, derived)) if Arc::ptr_eq(of, source) => Arc::clone(derived),
            _ => {
                let derived = Arc::new(derive());
                *known = Some((Arc::clone(source), Arc::clone(&derived)));
                derived
            }
        }
    }
}
