//! Objects that are being written: gives them their numbers, and keeps the sweeper from deleting
//! them before a manifest names them.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{JobContext, JobError};
use freshet_storage::cold::segment::{Segment, SegmentWriter};
use freshet_storage::names::ObjectRef;
use freshet_storage::rules::Rule;
use freshet_wire::ids::PartitionId;
use freshet_world::env::store::StoreError;

/// The objects that jobs of this incarnation are writing.
#[derive(Default)]
pub struct Making(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    /// Objects that have a number and may have been put, and that no manifest names yet.
    unnamed: BTreeSet<ObjectRef>,
}

/// An object under a number that no other object has. The sweeper keeps the object until this is
/// dropped, so it is dropped once a manifest names the object or none ever will.
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
    /// The objects that no manifest names yet but one may name soon.
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

    /// A writer in which segments are gathered. Their object gets its number only when it is put: a
    /// writer that is given up needs none.
    pub(super) fn segment_writer(&self) -> SegmentWriter {
        SegmentWriter::new(ObjectRef { incarnation: self.incarnation, number: 0 })
    }

    /// Puts the gathered segments as one object, and returns the object and its segments. It tries
    /// until the object store answers.
    ///
    /// # Errors
    /// [`JobError::Cold`] with a [`StoreError`] that trying again cannot help.
    pub(super) async fn put_segments(
        &self,
        gathered: SegmentWriter,
    ) -> Result<(NewObject, Vec<(PartitionId, Segment)>), JobError> {
        let (pieces, mut segments) = gathered.finish();
        let mut object = self.new_object();
        loop {
            let key = object.object.key(&self.cluster);
            match self.put_when_possible(|| self.store.put_new(&key, pieces.clone())).await {
                // An earlier attempt, whose answer was lost, has taken the number.
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
