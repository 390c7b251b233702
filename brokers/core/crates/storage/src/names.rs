//! Names of what is stored: files of lanes, objects, and manifests.

use freshet_wire::ids::{Epoch, Incarnation};

/// A file of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaneFile {
    /// The file with this number that its broker wrote.
    Wal(u64),
    /// `SEAL`, with the blocks that the sealer copied.
    Seal,
}

impl LaneFile {
    /// Its number among the files that its broker wrote; 0 for SEAL.
    pub fn number(self) -> u64 {
        if let Self::Wal(number) = self { number } else { 0 }
    }
}

/// The name of an object: the incarnation that wrote it, and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// The incarnation that wrote it.
    pub incarnation: Incarnation,
    /// Its number within the incarnation.
    pub number: u64,
}

impl ObjectRef {
    /// Its key in the object store.
    pub fn key(self, cluster: &str) -> String {
        format!("{}/{}", Self::folder(cluster, self.incarnation), self.name())
    }

    /// Its name within the incarnation's folder.
    pub fn name(self) -> String {
        format!("{:012}", self.number)
    }

    /// Where the objects of an incarnation lie.
    pub fn folder(cluster: &str, incarnation: Incarnation) -> String {
        format!("{}/{:020}", Self::root(cluster), incarnation.0)
    }

    /// Where all objects of a cluster lie.
    pub fn root(cluster: &str) -> String {
        format!("{cluster}/objects")
    }
}

/// The name of a manifest of a partition; later ones compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManifestRef {
    /// Leader epoch in which it was written.
    pub epoch: Epoch,
    /// Number within the epoch, from 0.
    pub number: u64,
}
