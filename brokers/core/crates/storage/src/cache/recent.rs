//! A bounded map that evicts its least recently used entries.

use std::collections::BTreeMap;

struct Held<V> {
    value: V,
    weight: usize,
    used: u64,
}

/// The map (see the module).
pub struct Recent<K, V> {
    held: BTreeMap<K, Held<V>>,
    by_use: BTreeMap<u64, K>,
    uses: u64,
    weight: usize,
    weight_max: usize,
}

impl<K: Ord + Copy, V: Clone> Recent<K, V> {
    /// A map whose values weigh at most `weight_max` together.
    pub fn new(weight_max: usize) -> Self {
        let (held, by_use) = (BTreeMap::new(), BTreeMap::new());
        Self { held, by_use, uses: 0, weight: 0, weight_max }
    }

    /// The value of a key, which counts as a use of it.
    pub fn get(&mut self, key: K) -> Option<V> {
        let held = self.held.get_mut(&key)?;
        self.by_use.remove(&held.used);
        self.uses += 1;
        held.used = self.uses;
        self.by_use.insert(self.uses, key);
        Some(held.value.clone())
    }

    /// Adds a value, and evicts others until the weight is within its bound. A value that is
    /// heavier than the bound is not added.
    pub fn insert(&mut self, key: K, value: V, weight: usize) {
        self.remove(key);
        if weight > self.weight_max {
            return;
        }
        self.uses += 1;
        self.weight += weight;
        self.held.insert(key, Held { value, weight, used: self.uses });
        self.by_use.insert(self.uses, key);
        while self.weight > self.weight_max {
            let Some((_, oldest)) = self.by_use.first_key_value() else { return };
            self.remove(*oldest);
        }
    }

    fn remove(&mut self, key: K) {
        if let Some(held) = self.held.remove(&key) {
            self.by_use.remove(&held.used);
            self.weight -= held.weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut recent = Recent::new(3);
        for key in [1, 2, 3] {
            recent.insert(key, key * 10, 1);
        }
        assert_eq!(recent.get(1), Some(10));
        recent.insert(4, 40, 1);
        assert_eq!([1, 2, 3, 4].map(|key| recent.get(key)), [Some(10), None, Some(30), Some(40)]);
        recent.insert(5, 50, 3);
        assert_eq!([1, 3, 4, 5].map(|key| recent.get(key)), [None, None, None, Some(50)]);
        recent.insert(6, 60, 4);
        assert_eq!((recent.get(5), recent.get(6)), (Some(50), None), "too heavy");
        recent.insert(5, 51, 1);
        assert_eq!((recent.get(5), recent.weight), (Some(51), 1));
    }
}
