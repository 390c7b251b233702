//! Objects that are being made: their numbers, and that the sweeper keeps them until a manifest
//! names them.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{JobContext, JobError};
use freshet_storage::cold::segment::{Segment, SegmentWriter};
use freshet_storage::names::ObjectRef;
use freshet_storage::rules::Rule;
use freshet_wire::ids::PartitionId;
use freshet_world::env::store::StoreError;

/// The objects that jobs of this incarnation make.
#[derive(Default)]
pub struct Making(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    /// Numbered, and maybe put; no manifest that counts names them yet.
    unnamed: BTreeSet<ObjectRef>,
}

/// An object under a number that nobody else has. Dropped once a manifest names it, or none ever
/// will.
pub(super) struct NewObject {
    making: Arc<Making>,
    object: ObjectRef,
}

impl Making {
    fn number(&self, context: &JobContext) -> ObjectRef {
        let mut state = self.0.lock();
        let object = ObjectRef { incarnation: context.incarnation, number: state.next };
        state.next += 1;
        state.unnamed.insert(object);
        object
    }
}

impl NewObject {
    fn renumber(&mut self, context: &JobContext) {
        self.making.0.lock().unnamed.remove(&self.object);
        self.object = self.making.number(context);
    }
}

impl Drop for NewObject {
    fn drop(&mut self) {
        self.making.0.lock().unnamed.remove(&self.object);
    }
}

impl JobContext {
    /// Objects that may come to be named though no manifest names them yet.
    pub(super) fn unnamed_objects(&self) -> BTreeSet<ObjectRef> {
        if self.sources.rules.hold(Rule::KeepNewObjects) {
            self.making.0.lock().unnamed.clone()
        } else {
            BTreeSet::new()
        }
    }

    fn new_object(&self) -> NewObject {
        let making = Arc::clone(&self.making);
        let object = making.number(self);
        NewObject { making, object }
    }

    /// Where segments are gathered. Their object gets its number when it is put, since not all
    /// that might be gathered is.
    pub(super) fn segment_writer(&self) -> SegmentWriter {
        SegmentWriter::new(ObjectRef { incarnation: self.incarnation, number: 0 })
    }

    /// Puts what was gathered as an object, and says which segments it has.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn put_segments(
        &self,
        gathered: SegmentWriter,
    ) -> Result<(NewObject, Vec<(PartitionId, Segment)>), JobError> {
        let (pieces, mut segments) = gathered.finish();
        let mut object = self.new_object();
        loop {
            let key = object.object.key(&self.cluster);
            match self.put_when_possible(|| self.store.put_new(&key, pieces.clone())).await {
                // An earlier try whose answer was lost took the number.
                Err(StoreError::Exists(_)) => object.renumber(self),
                outcome => {
                    outcome?;
                    break;
                }
            }
        }
        for (_, segment) in &mut segments {
            segment.object = object.object;
        }
        Ok((object, segments))
    }
}
