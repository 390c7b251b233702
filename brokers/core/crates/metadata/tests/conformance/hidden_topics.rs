//! Hidden topics, quotas, and notes of changes.

use freshet_metadata::MetadataView;
use freshet_metadata::cluster::{Actor, ClusterError, ClusterMetadata, FoundTopic, Note};
use freshet_metadata::schema::{
    Extent, PartitionRecord, QuotaEntity, QuotaEntityType, QuotaKey, QuotaValues, SealedEnd,
    TopicRecord,
};
use freshet_metadata::view::Snapshot;
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};

use super::fixture::{Hooked, Outcome, broker, metadata, metadata_of, new_topic};

const HOUR_MS: i64 = 3_600_000;

async fn shown(metadata: &ClusterMetadata) -> Snapshot {
    let (view, _) = MetadataView::open(metadata.store().clone()).await.unwrap();
    let snapshot = view.snapshot();
    (*snapshot).clone()
}

#[tokio::test]
async fn a_deleted_topic_is_led_and_not_seen_until_it_comes_back() {
    let metadata = metadata();
    let made = metadata.create_topic(None, &new_topic("a.b", 150)).await.unwrap().record;
    metadata.delete_topic(None, "a.b", None, HOUR_MS).await.unwrap();
    // Nothing of it is a rest.
    assert_eq!(metadata.sweep_topics(None).await.unwrap(), 0);
    let snapshot = shown(&metadata).await;
    assert!(snapshot.topics.is_empty() && snapshot.deleted_topics.is_empty());
    let led = snapshot.led_topic(made.id).unwrap();
    assert_eq!((&led.record, led.partitions.len()), (&made, 150));
    assert_eq!(snapshot.led_topics().count(), 1);
    // Its name, and whatever collides with it, is free.
    let other = metadata.create_topic(None, &new_topic("a_b", 1)).await.unwrap().record;
    let collision = metadata.restore_topic(None, made.id, None).await.unwrap_err();
    assert!(matches!(collision, ClusterError::TopicCollision { .. }), "{collision}");
    let invalid = metadata.restore_topic(None, made.id, Some("a/b")).await.unwrap_err();
    assert!(matches!(invalid, ClusterError::InvalidTopicName(_)), "{invalid}");
    let would_be = metadata.restored_topic(made.id, Some("c")).await.unwrap().record;
    assert_eq!((would_be.name.as_str(), would_be.id), ("c", made.id));
    assert!(metadata.topic("c").await.unwrap().is_none(), "nothing has changed");
    let collision = metadata.restored_topic(made.id, None).await.unwrap_err();
    assert!(matches!(collision, ClusterError::TopicCollision { .. }), "{collision}");
    metadata.restore_topic(None, made.id, Some("c")).await.unwrap();
    let restored = metadata.topic("c").await.unwrap().unwrap().record;
    let deletions = restored.deletions.clone();
    assert_eq!(deletions.len(), 1);
    assert_eq!(restored, TopicRecord { name: "c".to_owned(), deletions, ..made });
    // Under its new name it is deleted and swept like any other.
    metadata.delete_topic(None, "c", None, 0).await.unwrap();
    assert_eq!(metadata.partitions_of(restored.id).await.unwrap(), []);
    assert_eq!(metadata.sweep_topics(None).await.unwrap(), 0);
    assert!(shown(&metadata).await.topics.by_id(other.id).is_some());
}

#[tokio::test]
async fn a_purge_may_stop_anywhere_and_the_sweep_ends_it() {
    for stop in 0.. {
        let plain = metadata();
        let id = plain.create_topic(None, &new_topic("t", 150)).await.unwrap().record.id;
        plain.delete_topic(None, "t", None, HOUR_MS).await.unwrap();
        let hooked = Hooked::new(plain.store().clone(), move |commit| async move {
            if commit == stop { Outcome::Refuse } else { Outcome::Commit }
        });
        let purged = metadata_of(hooked.clone()).purge_topic(None, id).await;
        let is_marked = shown(&plain).await.deleted_topics.contains_key(&id);
        assert_eq!(purged.is_ok(), is_marked, "stop {stop}");
        plain.sweep_topics(None).await.unwrap();
        let left = plain.partitions_of(id).await.unwrap();
        assert_eq!(left.is_empty(), is_marked, "stop {stop}");
        if hooked.commits() <= stop {
            return;
        }
    }
}

fn orphan(id: TopicId) -> FoundTopic {
    let end = Some(SealedEnd { file: 0, sequence: 9 });
    let extents = vec![Extent { epoch: 4, incarnation: Incarnation(3), end }];
    FoundTopic {
        topic: TopicRecord {
            id,
            name: String::new(),
            partitions: 120,
            replication_factor: 1,
            internal: false,
            created_at_ms: 5,
            configs: std::collections::BTreeMap::new(),
            partition_counts: Vec::new(),
            deletions: Vec::new(),
            retention: None,
        },
        partitions: vec![PartitionRecord { extents, ..PartitionRecord::new(None, 4) }; 120],
    }
}

#[tokio::test]
async fn a_topic_that_was_found_is_there_all_at_once_and_once() {
    let id = TopicId::from_u128(77);
    for stop in 0.. {
        let plain = metadata();
        let fence = Some(broker(&plain).await);
        let hooked = Hooked::new(plain.store().clone(), move |commit| async move {
            if commit == stop { Outcome::Refuse } else { Outcome::Commit }
        });
        let stopped = metadata_of(hooked.clone()).hide_found(fence, &orphan(id)).await;
        let seen = shown(&plain).await.hidden.get(&id).map(|hidden| hidden.topic.partitions.len());
        assert_eq!(seen, stopped.is_ok().then_some(120), "stop {stop}");
        // The next start does it again.
        plain.hide_found(fence, &orphan(id)).await.unwrap();
        assert_eq!(plain.hide_found(fence, &orphan(id)).await, Ok(0));
        let snapshot = shown(&plain).await;
        let partition = snapshot.led_topic(id).unwrap().partition(119).unwrap();
        assert_eq!(partition.record, orphan(id).partitions[119]);
        let internal = "__consumer_offsets".to_owned();
        let refused = plain.restore_topic(None, id, Some(&internal)).await;
        assert_eq!(refused, Err(ClusterError::InternalTopic(internal)));
        plain.restore_topic(None, id, Some("attached")).await.unwrap();
        let partition = PartitionId::new(id, 0);
        assert_eq!(plain.partition(partition).await.unwrap().unwrap().record.epoch, 4);
        if hooked.commits() <= stop {
            return;
        }
    }
}

fn of_user(name: Option<&str>) -> QuotaEntity {
    QuotaEntity([(QuotaEntityType::User, name.map(str::to_owned))].into())
}

#[tokio::test]
async fn quotas_are_shown_and_go_with_their_last_value() {
    let metadata = metadata();
    let values: QuotaValues = [(QuotaKey::ProducerByteRate, 1024.0)].into();
    metadata.set_quotas(None, &of_user(Some("alice")), &values).await.unwrap();
    metadata.set_quotas(None, &of_user(None), &values).await.unwrap();
    let expected = [(of_user(None), values.clone()), (of_user(Some("alice")), values.clone())];
    assert_eq!(*shown(&metadata).await.quotas, expected.into());
    let changes = [(QuotaKey::ProducerByteRate, None), (QuotaKey::MaxConnections, Some(3.0))];
    let altered = metadata.alter_quotas(None, &of_user(None), &changes.into()).await.unwrap();
    assert_eq!(altered.1, [(QuotaKey::MaxConnections, 3.0)].into());
    let none = [(QuotaKey::MaxConnections, None)].into();
    metadata.alter_quotas(None, &of_user(None), &none).await.unwrap();
    assert_eq!(metadata.quotas().await.unwrap().len(), 1);
    // What changes nothing has no revision of its own.
    assert_eq!(metadata.alter_quotas(None, &of_user(None), &none).await.unwrap().0, 0);
}

fn on_behalf(metadata: &ClusterMetadata) -> ClusterMetadata {
    metadata.on_behalf_of(&Actor {
        principal: "User:alice".to_owned(),
        client_id: "tests".to_owned(),
        address: "192.0.2.1".to_owned(),
        connection: "con_1".to_owned(),
    })
}

#[tokio::test]
async fn a_change_and_its_note_are_there_together_or_not_at_all() {
    for stop in 0.. {
        let plain = metadata();
        let hooked = Hooked::new(plain.store().clone(), move |commit| async move {
            if commit == stop { Outcome::Refuse } else { Outcome::Commit }
        });
        let noted = on_behalf(&metadata_of(hooked.clone()));
        let made = noted.create_topic(None, &new_topic("t", 150)).await;
        let changes = plain.changes(0, 10).await.unwrap();
        assert_eq!(made.is_ok(), plain.topic("t").await.unwrap().is_some());
        assert_eq!(changes.len(), usize::from(made.is_ok()), "stop {stop}");
        if hooked.commits() <= stop {
            assert_eq!(changes[0].action, "topic.create");
            return;
        }
    }
}

#[tokio::test]
async fn many_who_note_at_once_get_numbers_of_their_own() {
    let plain = metadata();
    let notes = (0..20).map(|number| {
        let noted = on_behalf(&plain);
        async move { noted.note(None, Note::new("group.delete", number.to_string())).await }
    });
    for noted in futures::future::join_all(notes).await {
        noted.unwrap();
    }
    let changes = plain.changes(0, 100).await.unwrap();
    let sequences: Vec<u64> = changes.iter().map(|change| change.sequence).collect();
    assert_eq!(sequences, (1..=20).collect::<Vec<_>>());
    assert_eq!(plain.changes(17, 2).await.unwrap().len(), 2);
}

#[tokio::test]
async fn nothing_is_noted_of_a_fenced_broker() {
    let plain = metadata();
    let fence = broker(&plain).await;
    plain.mark_fenced(None, fence.incarnation).await.unwrap();
    let noted = on_behalf(&plain).note(Some(fence), Note::new("group.delete", "g")).await;
    assert_eq!(noted, Err(ClusterError::Fenced(fence.incarnation)));
    assert_eq!(plain.changes(0, 10).await.unwrap(), []);
}
