//! Manifests and the objects that they name.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{InspectError, Inspector, ObjectReport, PartitionReport, check_batch};
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::segment::{Chunk, Segment, decode_section};
use freshet_storage::names::ManifestRef;
use freshet_storage::names::ObjectRef;
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};
use freshet_wire::records::{Batches, StoredBatch, Tail};

/// The segments of one object that manifests name.
#[derive(Default)]
struct Named {
    segments: usize,
    chunks: usize,
    bytes: u64,
}

impl Inspector<'_> {
    pub(super) async fn read_partitions(&mut self) -> Result<(), InspectError> {
        let mut named: BTreeMap<ObjectRef, Named> = BTreeMap::new();
        let mut any = false;
        for id in self.partitions().await? {
            let requested = self.options.topic.as_deref();
            if requested.is_none_or(|topic| self.known.is_of(id, topic)) {
                any = true;
                let report = self.read_partition(id, &mut named).await?;
                self.report.partitions.push(report);
            }
        }
        match &self.options.topic {
            Some(topic) if !any => Err(InspectError::Unknown(format!("topic {topic}"))),
            Some(_) => Ok(()),
            None => self.list_objects(named).await,
        }
    }

    /// Every partition that the metadata store knows or that has manifests.
    async fn partitions(&self) -> Result<BTreeSet<PartitionId>, InspectError> {
        let mut all: BTreeSet<PartitionId> = self.known.partitions.keys().copied().collect();
        let root = Manifest::root(self.cluster);
        for topic in self.objects.list(&root).await? {
            let Ok(id) = topic.parse::<TopicId>() else { continue };
            for index in self.objects.list(&format!("{root}/{topic}")).await? {
                all.extend(index.parse().ok().map(|index| PartitionId::new(id, index)));
            }
        }
        Ok(all)
    }

    async fn read_partition(
        &mut self,
        id: PartitionId,
        named: &mut BTreeMap<ObjectRef, Named>,
    ) -> Result<PartitionReport, InspectError> {
        let damaged_before = self.report.damage.len();
        let mut names: BTreeSet<ManifestRef> = BTreeSet::new();
        for file_name in self.objects.list(&Manifest::folder(self.cluster, id)).await? {
            names.extend(Manifest::parse_file_name(&file_name));
        }
        let installed = self.installed.get(&id).copied();
        if let Some(missing) = installed.filter(|name| !names.contains(name)) {
            let key = self.manifest_key(id, missing);
            self.damaged(key, "the manifest that counts is missing");
        }
        let mut current = None;
        for name in &names {
            let manifest = self.read_manifest(id, *name).await?;
            if installed == Some(*name) {
                current = manifest;
            }
        }
        if let Some(manifest) = &current {
            self.check_coverage(manifest);
            for segment in &manifest.segments {
                self.read_segment(id, segment, named).await?;
            }
        }
        let record = self.known.partitions.get(&id);
        let extents = record.map_or(&[][..], |record| &record.extents);
        let current = current.unwrap_or_else(|| Manifest::empty(id));
        let first_dirty = current.first_dirty_offset;
        let dirty = current.segments.iter().filter(|segment| segment.end_offset > first_dirty);
        Ok(PartitionReport {
            topic_id: id.topic.simple().to_string(),
            topic: self.known.names.get(&id.topic).cloned(),
            partition: id.index,
            leader: record.and_then(|record| record.leader),
            epoch: record.map(|record| record.epoch),
            extents: extents.iter().map(|extent| extent.incarnation).collect(),
            manifest: installed.map(Manifest::file_name),
            manifests: names.into_iter().map(Manifest::file_name).collect(),
            log_start: current.log_start,
            covered_end: current.covered_end,
            segments: current.segments.len(),
            dropped: current.dropped.len(),
            bytes: current.bytes(),
            compacted_until: first_dirty,
            compacted_segments: current.segments.iter().filter(|segment| segment.compacted).count(),
            dirty_bytes: dirty.map(|segment| segment.bytes).sum(),
            producers: current.producers.len(),
            damaged: self.report.damage.len() - damaged_before,
        })
    }

    async fn read_manifest(
        &mut self,
        id: PartitionId,
        name: ManifestRef,
    ) -> Result<Option<Manifest>, InspectError> {
        let key = self.manifest_key(id, name);
        let manifest = match Manifest::decode(&self.objects.get(&key).await?) {
            Ok(manifest) => manifest,
            Err(error) => {
                self.damaged(key, error);
                return Ok(None);
            }
        };
        if (manifest.partition, manifest.name) != (id, name) {
            self.damaged(key, "it belongs to another partition or has another name");
            return Ok(None);
        }
        Ok(Some(manifest))
    }

    /// Checks that the segments follow each other from the log's start to the covered end. A log
    /// may start behind the covered end, where its records were deleted before they were split.
    fn check_coverage(&mut self, manifest: &Manifest) {
        let mut due = manifest.log_start.min(manifest.covered_end);
        for segment in &manifest.segments {
            if segment.base_offset > due || segment.end_offset <= segment.base_offset {
                break;
            }
            due = segment.end_offset;
        }
        if due != manifest.covered_end {
            let key = self.manifest_key(manifest.partition, manifest.name);
            let end = manifest.covered_end;
            self.damaged(key, format!("segments reach to {due}, it says that they reach to {end}"));
        }
    }

    async fn read_segment(
        &mut self,
        id: PartitionId,
        segment: &Segment,
        named: &mut BTreeMap<ObjectRef, Named>,
    ) -> Result<(), InspectError> {
        let key = segment.object.key(self.cluster);
        let (position, length) = (segment.section_position, u64::from(segment.section_bytes));
        let section = match self.objects.get_range(&key, position, length).await {
            Ok(bytes) => bytes,
            Err(error) => {
                self.damaged(key, format!("the section of {id} cannot be read: {error}"));
                return Ok(());
            }
        };
        let chunks = match decode_section(&section, id, segment.object) {
            Ok(chunks) => chunks,
            Err(error) => {
                self.damaged(key, error);
                return Ok(());
            }
        };
        let object = named.entry(segment.object).or_default();
        object.segments += 1;
        object.chunks += chunks.len();
        object.bytes += segment.bytes;
        if self.options.verify {
            self.verify_chunks(&key, id, segment, &chunks).await;
        }
        Ok(())
    }

    async fn verify_chunks(
        &mut self,
        key: &str,
        id: PartitionId,
        segment: &Segment,
        chunks: &[Chunk],
    ) {
        let mut due = segment.base_offset;
        for chunk in chunks {
            let place = format!("the chunk at {}", chunk.position);
            match self.objects.get_range(key, chunk.position, chunk.length).await {
                Err(error) => self.damaged(key, format!("{place} cannot be read: {error}")),
                Ok(bytes) => {
                    if let Err(error) = chunk.verify(segment.object, &bytes) {
                        self.damaged(key, error);
                    } else {
                        let check = |batch: &StoredBatch| self.check_records(id, batch);
                        if let Err(wrong) = check_chunk(segment, chunk, bytes, due, check) {
                            self.damaged(key, format!("{place}: {wrong}"));
                        }
                    }
                }
            }
            due = chunk.end_offset;
        }
        if due != segment.end_offset {
            let end = segment.end_offset;
            self.damaged(key, format!("chunks reach to {due}, the segment to {end}"));
        }
    }

    async fn list_objects(
        &mut self,
        mut named: BTreeMap<ObjectRef, Named>,
    ) -> Result<(), InspectError> {
        for folder in self.objects.list(&ObjectRef::root(self.cluster)).await? {
            let Ok(incarnation) = folder.parse().map(Incarnation) else { continue };
            let folder = ObjectRef::folder(self.cluster, incarnation);
            for name in self.objects.list(&folder).await? {
                let Ok(number) = name.parse() else { continue };
                let object = ObjectRef { incarnation, number };
                let Named { segments, chunks, bytes } = named.remove(&object).unwrap_or_default();
                let key = object.key(self.cluster);
                self.report.objects.push(ObjectReport { key, segments, chunks, bytes });
            }
        }
        Ok(())
    }
}

/// Checks that a chunk's batches are whole and follow each other from `due` to its end, and has the
/// records of each checked. In a compacted segment offsets may be missing.
fn check_chunk(
    segment: &Segment,
    chunk: &Chunk,
    bytes: Bytes,
    mut due: i64,
    mut check_records: impl FnMut(&StoredBatch),
) -> Result<(), String> {
    for batch in Batches::new(bytes, Tail::Report) {
        let batch = batch.map_err(|error| error.to_string())?;
        let header = check_batch(&batch.to_bytes())?.header();
        check_records(&batch);
        let missing = header.base_offset > due && !segment.compacted;
        if missing || header.base_offset < due {
            return Err(format!("a batch at offset {}, {due} was due", header.base_offset));
        }
        due = header.next_offset();
    }
    if due == chunk.end_offset {
        Ok(())
    } else {
        Err(format!("batches reach to {due}, the chunk to {}", chunk.end_offset))
    }
}
