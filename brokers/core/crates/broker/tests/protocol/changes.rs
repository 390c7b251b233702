//! What clients change: none of it is lost before it was read for the audit log, what is kept of it
//! is bounded, and it has a rate.

use freshet_metadata::cluster::{Actor, CHANGES_KEPT_MAX, Note};
use freshet_metadata::schema::{ChangeRecord, LimitsRecord};
use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::delete_acls_request::DeleteAclsFilter;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::{
    CreateAclsRequest, DeleteAclsRequest, DeleteGroupsRequest, DeleteRecordsRequest,
    DeleteTopicsRequest, GroupId,
};
use kafka_protocol::protocol::StrBytes;

use super::groups::coordinator;
use super::harness::{Client, TestBroker, batch, text, topic_name};
use super::limits::{commit, create, limited};

const THROTTLED: E = E::ThrottlingQuotaExceeded;

fn rate(changes_per_second: u64) -> LimitsRecord {
    LimitsRecord { changes_per_second: Some(changes_per_second), ..LimitsRecord::default() }
}

fn actor() -> Actor {
    Actor {
        principal: "User:alice".to_owned(),
        client_id: String::new(),
        address: "192.0.2.1".to_owned(),
        connection: String::new(),
    }
}

async fn kept(broker: &TestBroker) -> Vec<ChangeRecord> {
    broker.engine.metadata.changes(0, 10_000).await.unwrap()
}

/// Leaves room for so many more changes.
async fn leave_room_for(broker: &TestBroker, changes: u64) {
    let metadata = broker.engine.metadata.within(rate(1)).on_behalf_of(&actor());
    for _ in 0..metadata.room_for_changes().await.unwrap() - changes {
        metadata.note(None, Note::new("group.delete", "g")).await.unwrap();
    }
}

fn acls(count: usize) -> CreateAclsRequest {
    let creations = (0..count).map(|number| {
        AclCreation::default()
            .with_resource_type(2)
            .with_resource_name(text(&format!("t-{number:04}")))
            .with_resource_pattern_type(3)
            .with_principal(text("User:*"))
            .with_host(text("*"))
            .with_operation(2)
            .with_permission_type(3)
    });
    CreateAclsRequest::default().with_creations(creations.collect())
}

/// How many entries were made, each of the others being refused for now, and for how long.
async fn create_acls(client: &mut Client, count: usize) -> (usize, i32) {
    let answer = client.call(3, acls(count)).await;
    let codes: Vec<i16> = answer.results.iter().map(|result| result.error_code).collect();
    assert_eq!(codes.len(), count);
    let made = codes.iter().take_while(|code| **code == 0).count();
    assert!(codes[made..].iter().all(|code| *code == THROTTLED.code()), "{codes:?}");
    (made, answer.throttle_time_ms)
}

async fn delete_acls(client: &mut Client) -> (i16, usize) {
    let filter = DeleteAclsFilter::default()
        .with_resource_type_filter(1)
        .with_resource_name_filter(None)
        .with_pattern_type_filter(1)
        .with_principal_filter(None)
        .with_host_filter(None)
        .with_operation(1)
        .with_permission_type(1);
    let request = DeleteAclsRequest::default().with_filters(vec![filter]);
    let result = client.call(3, request).await.filter_results.remove(0);
    (result.error_code, result.matching_acls.len())
}

#[tokio::test]
async fn changes_beyond_the_rate_are_refused_with_the_time_to_wait() {
    let broker = limited(rate(1)).await;
    let mut client = broker.client();
    let (made, pause_ms) = create_acls(&mut client, 230).await;
    assert!((200..=205).contains(&made), "{made}");
    assert!((1..=1_000).contains(&pause_ms), "{pause_ms}");
    assert_eq!(kept(&broker).await.len(), made);
    // Every other kind of change, over another connection too; all clients share the rate.
    let mut other = broker.client();
    while create_acls(&mut other, 1).await.0 == 1 {}
    let (code, message) = create(&mut other, &[("t", 1)], false).await.remove(0);
    assert_eq!(code, THROTTLED.code());
    assert!(message.starts_with("limit changes_per_second is reached by all clients"), "{message}");
    assert_eq!(create(&mut other, &[("t", 1)], true).await[0].0, 0, "nothing is changed");
    assert_eq!(delete_acls(&mut other).await, (THROTTLED.code(), 0));
}

#[tokio::test]
async fn a_filter_removes_many_entries_and_owes_for_them() {
    let broker = limited(LimitsRecord::default()).await;
    let mut client = broker.client();
    assert_eq!(create_acls(&mut client, 300).await, (300, 0));
    super::limits::set(&broker, rate(1)).await;
    assert_eq!(delete_acls(&mut client).await, (0, 300));
    let (made, pause_ms) = create_acls(&mut client, 1).await;
    assert_eq!(made, 0);
    assert!((90_000..=101_000).contains(&pause_ms), "{pause_ms}");
}

#[tokio::test]
async fn no_change_is_made_that_the_audit_log_has_no_room_for() {
    let broker = limited(rate(1_000_000)).await;
    let mut client = broker.client();
    coordinator(&mut client).await;
    client.create_topic("t", 1, &[]).await;
    client.produce("t", 0, batch(&["a"])).await;
    assert_eq!(commit(&mut client, "g", 0, "").await, 0);
    leave_room_for(&broker, 3).await;
    assert_eq!(create_acls(&mut client, 5).await.0, 3, "as many as there is room for");
    assert_eq!(kept(&broker).await.len() as u64, CHANGES_KEPT_MAX);

    let (code, message) = create(&mut client, &[("u", 1)], false).await.remove(0);
    assert_eq!(code, THROTTLED.code());
    assert!(message.contains("wait to be taken into the audit log"), "{message}");
    // In several steps: nothing of it is left behind.
    assert_eq!(create(&mut client, &[("v", 300)], false).await[0].0, THROTTLED.code());
    assert_eq!(delete_acls(&mut client).await, (THROTTLED.code(), 0));
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name("t")])
        .with_timeout_ms(10_000);
    let deleted = client.call(5, request).await;
    assert_eq!(deleted.responses[0].error_code, THROTTLED.code());
    assert!(deleted.throttle_time_ms >= 1_000, "{deleted:?}");
    let request = DeleteGroupsRequest::default().with_groups_names(vec![GroupId(text("g"))]);
    assert_eq!(client.call(2, request.clone()).await.results[0].error_code, THROTTLED.code());
    let partition = DeleteRecordsPartition::default().with_offset(1);
    let topic =
        DeleteRecordsTopic::default().with_name(topic_name("t")).with_partitions(vec![partition]);
    let records = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
    let refused = client.call(2, records.clone()).await.topics.remove(0).partitions.remove(0);
    assert_eq!((refused.error_code, refused.low_watermark), (THROTTLED.code(), -1));
    assert_eq!(kept(&broker).await.len() as u64, CHANGES_KEPT_MAX);
    assert_eq!(kept(&broker).await[0].sequence, 1, "none was dropped");

    // What was read makes room, for one change each.
    broker.engine.metadata.forget_changes(2).await.unwrap();
    assert_eq!(client.call(2, request).await.results[0].error_code, 0);
    assert_eq!(client.call(2, records).await.topics[0].partitions[0].error_code, 0);
    assert_eq!(create(&mut client, &[("u", 1)], false).await[0].0, THROTTLED.code());
    let last = kept(&broker).await.pop().unwrap();
    assert_eq!((last.action.as_str(), last.detail["0"].as_str()), ("topic.delete_records", "1"));
}

#[tokio::test]
async fn without_a_control_plane_the_oldest_are_dropped_and_the_gap_shows() {
    let broker = TestBroker::start().await;
    let metadata = broker.engine.metadata.on_behalf_of(&actor());
    for _ in 0..CHANGES_KEPT_MAX + 5 {
        metadata.note(None, Note::new("group.delete", "g")).await.unwrap();
    }
    let kept = kept(&broker).await;
    assert_eq!((kept.len() as u64, kept[0].sequence), (CHANGES_KEPT_MAX, 6));
}

#[tokio::test]
async fn of_what_a_client_names_so_much_is_kept_and_two_names_stay_two() {
    let broker = limited(LimitsRecord::default()).await;
    let mut client = broker.client();
    client.name = "c".repeat(32_000).leak();
    coordinator(&mut client).await;
    client.create_topic("t", 1, &[]).await;
    let groups = ["a", "b"].map(|last| format!("{}{last}", "g".repeat(32_000)));
    for group in &groups {
        assert_eq!(commit(&mut client, group, 0, "").await, 0);
    }
    let names = groups.iter().map(|group| GroupId(StrBytes::from_string(group.clone())));
    let request = DeleteGroupsRequest::default().with_groups_names(names.collect());
    let deleted = client.call(2, request).await;
    assert!(deleted.results.iter().all(|result| result.error_code == 0), "{deleted:?}");
    let kept = kept(&broker).await;
    assert_eq!(kept.len(), 3);
    for change in &kept {
        let bytes = serde_json::to_string(change).unwrap().len();
        assert!(bytes < 1_500, "{bytes}");
        assert_eq!(change.client_id.chars().count(), 256);
        assert!(change.client_id.starts_with("ccc"));
    }
    assert_ne!(kept[1].target, kept[2].target);
}
