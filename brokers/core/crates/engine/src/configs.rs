//! The broker configs in force: those in the metadata store override the static ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use freshet_configs::{BrokerConfig, Overrides};
use freshet_metadata::schema::ConfigScope;
use freshet_metadata::view::MetadataView;

/// Resolves the configs of a broker in force, and keeps the result until the stored ones change.
pub struct BrokerConfigs {
    view: Arc<MetadataView>,
    fixed: BrokerConfig,
    slot: u32,
    resolved: Derived<BTreeMap<ConfigScope, Overrides>, BrokerConfig>,
}

impl BrokerConfigs {
    /// The configs of the broker in a slot, whose static ones are `fixed`.
    pub fn new(view: Arc<MetadataView>, fixed: BrokerConfig, slot: u32) -> Self {
        Self { view, fixed, slot, resolved: Derived::default() }
    }

    /// The configs in force, as of the image of the metadata. They are resolved once per change.
    pub fn current(&self) -> Arc<BrokerConfig> {
        let stored = Arc::clone(&self.view.snapshot().broker_configs);
        self.resolved.get(&stored, || resolve(&self.fixed, &stored, self.slot))
    }

    /// The configs of the broker in another slot. Brokers of a cluster have the same static ones.
    pub fn of_slot(&self, slot: u32) -> BrokerConfig {
        resolve(&self.fixed, &self.view.snapshot().broker_configs, slot)
    }
}

fn resolve(
    fixed: &BrokerConfig,
    stored: &BTreeMap<ConfigScope, Overrides>,
    slot: u32,
) -> BrokerConfig {
    let of = |scope| stored.get(&scope).cloned().unwrap_or_default();
    fixed.with_stored(&of(ConfigScope::Default), &of(ConfigScope::Slot(slot)))
}

/// A value that is computed from a part of the image, and kept while that part is the same one.
pub struct Derived<S, T>(Mutex<Option<(Arc<S>, Arc<T>)>>);

impl<S, T> Default for Derived<S, T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<S, T> Derived<S, T> {
    /// The value for `source`: the kept one where it was computed from the same `Arc`, else what
    /// `derive` returns.
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
