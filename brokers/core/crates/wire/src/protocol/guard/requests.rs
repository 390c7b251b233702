//! The requests that are served, after Kafka's `*Request.json`.

use kafka_protocol::messages::ApiKey;

use super::schema::{Request, request};

/// For requests without a flexible version.
const NEVER: i16 = i16::MAX;

/// The schema of an API's request.
pub(super) fn schema(api: ApiKey) -> Option<&'static Request> {
    REQUESTS.iter().find(|request| request.api == api)
}

pub(super) static REQUESTS: &[Request] = &[
    request!(ListOffsets, 6, {
        replica_id: Int32,
        isolation_level: Int8 from 2,
        topics: [{
            name: String,
            partitions: [{
                partition_index: Int32,
                current_leader_epoch: Int32 from 4,
                timestamp: Int64,
            }],
        }],
        timeout_ms: Int32 from 10,
    }),
    request!(Metadata, 9, {
        topics: [{ topic_id: Uuid from 10, name: String }],
        allow_auto_topic_creation: Bool from 4,
        include_cluster_authorized_operations: Bool from 8 to 10,
        include_topic_authorized_operations: Bool from 8,
    }),
    request!(OffsetCommit, 8, {
        group_id: String,
        generation_id_or_member_epoch: Int32,
        member_id: String,
        group_instance_id: String from 7,
        retention_time_ms: Int64 to 4,
        topics: [{
            name: String,
            partitions: [{
                partition_index: Int32,
                committed_offset: Int64,
                committed_leader_epoch: Int32 from 6,
                committed_metadata: String,
            }],
        }],
    }),
    request!(OffsetFetch, 6, {
        group_id: String to 7,
        topics: [{ name: String, partition_indexes: [Int32] }] to 7,
        groups: [{
            group_id: String,
            member_id: String from 9,
            member_epoch: Int32 from 9,
            topics: [{ name: String, partition_indexes: [Int32] }],
        }] from 8,
        require_stable: Bool from 7,
    }),
    request!(FindCoordinator, 3, {
        key: String to 3,
        key_type: Int8 from 1,
        coordinator_keys: [String] from 4,
    }),
    request!(JoinGroup, 6, {
        group_id: String,
        session_timeout_ms: Int32,
        rebalance_timeout_ms: Int32 from 1,
        member_id: String,
        group_instance_id: String from 5,
        protocol_type: String,
        protocols: [{ name: String, metadata: Bytes }],
        reason: String from 8,
    }),
    request!(Heartbeat, 4, {
        group_id: String,
        generation_id: Int32,
        member_id: String,
        group_instance_id: String from 3,
    }),
    request!(LeaveGroup, 4, {
        group_id: String,
        member_id: String to 2,
        members: [{
            member_id: String,
            group_instance_id: String,
            reason: String from 5,
        }] from 3,
    }),
    request!(SyncGroup, 4, {
        group_id: String,
        generation_id: Int32,
        member_id: String,
        group_instance_id: String from 3,
        protocol_type: String from 5,
        protocol_name: String from 5,
        assignments: [{ member_id: String, assignment: Bytes }],
    }),
    request!(DescribeGroups, 5, {
        groups: [String],
        include_authorized_operations: Bool from 3,
    }),
    request!(ListGroups, 3, {
        states_filter: [String] from 4,
        types_filter: [String] from 5,
    }),
    request!(SaslHandshake, NEVER, { mechanism: String }),
    request!(ApiVersions, 3, {
        client_software_name: String from 3,
        client_software_version: String from 3,
    }),
    request!(CreateTopics, 5, {
        topics: [{
            name: String,
            num_partitions: Int32,
            replication_factor: Int16,
            assignments: [{ partition_index: Int32, broker_ids: [Int32] }],
            configs: [{ name: String, value: String }],
        }],
        timeout_ms: Int32,
        validate_only: Bool,
    }),
    request!(DeleteTopics, 4, {
        topics: [{ name: String, topic_id: Uuid }] from 6,
        topic_names: [String] to 5,
        timeout_ms: Int32,
    }),
    request!(DeleteRecords, 2, {
        topics: [{
            name: String,
            partitions: [{ partition_index: Int32, offset: Int64 }],
        }],
        timeout_ms: Int32,
    }),
    request!(InitProducerId, 2, {
        transactional_id: String,
        transaction_timeout_ms: Int32,
        producer_id: Int64 from 3,
        producer_epoch: Int16 from 3,
    }),
    request!(OffsetForLeaderEpoch, 4, {
        replica_id: Int32 from 3,
        topics: [{
            topic: String,
            partitions: [{
                partition: Int32,
                current_leader_epoch: Int32,
                leader_epoch: Int32,
            }],
        }],
    }),
    request!(DescribeAcls, 2, {
        resource_type_filter: Int8,
        resource_name_filter: String,
        pattern_type_filter: Int8,
        principal_filter: String,
        host_filter: String,
        operation: Int8,
        permission_type: Int8,
    }),
    request!(CreateAcls, 2, {
        creations: [{
            resource_type: Int8,
            resource_name: String,
            resource_pattern_type: Int8,
            principal: String,
            host: String,
            operation: Int8,
            permission_type: Int8,
        }],
    }),
    request!(DeleteAcls, 2, {
        filters: [{
            resource_type_filter: Int8,
            resource_name_filter: String,
            pattern_type_filter: Int8,
            principal_filter: String,
            host_filter: String,
            operation: Int8,
            permission_type: Int8,
        }],
    }),
    request!(DescribeConfigs, 4, {
        resources: [{
            resource_type: Int8,
            resource_name: String,
            configuration_keys: [String],
        }],
        include_synonyms: Bool,
        include_documentation: Bool from 3,
    }),
    request!(AlterConfigs, 2, {
        resources: [{
            resource_type: Int8,
            resource_name: String,
            configs: [{ name: String, value: String }],
        }],
        validate_only: Bool,
    }),
    request!(DescribeLogDirs, 2, {
        topics: [{ topic: String, partitions: [Int32] }],
    }),
    request!(SaslAuthenticate, 2, { auth_bytes: Bytes }),
    request!(CreatePartitions, 2, {
        topics: [{
            name: String,
            count: Int32,
            assignments: [{ broker_ids: [Int32] }],
        }],
        timeout_ms: Int32,
        validate_only: Bool,
    }),
    request!(DeleteGroups, 2, { groups_names: [String] }),
    request!(ElectLeaders, 2, {
        election_type: Int8 from 1,
        topic_partitions: [{ topic: String, partitions: [Int32] }],
        timeout_ms: Int32,
    }),
    request!(IncrementalAlterConfigs, 1, {
        resources: [{
            resource_type: Int8,
            resource_name: String,
            configs: [{ name: String, config_operation: Int8, value: String }],
        }],
        validate_only: Bool,
    }),
    request!(AlterPartitionReassignments, 0, {
        timeout_ms: Int32,
        allow_replication_factor_change: Bool from 1,
        topics: [{
            name: String,
            partitions: [{ partition_index: Int32, replicas: [Int32] }],
        }],
    }),
    request!(ListPartitionReassignments, 0, {
        timeout_ms: Int32,
        topics: [{ name: String, partition_indexes: [Int32] }],
    }),
    request!(OffsetDelete, NEVER, {
        group_id: String,
        topics: [{ name: String, partitions: [{ partition_index: Int32 }] }],
    }),
    request!(DescribeClientQuotas, 1, {
        components: [{ entity_type: String, match_type: Int8, match: String }],
        strict: Bool,
    }),
    request!(AlterClientQuotas, 1, {
        entries: [{
            entity: [{ entity_type: String, entity_name: String }],
            ops: [{ key: String, value: Float64, remove: Bool }],
        }],
        validate_only: Bool,
    }),
    request!(DescribeUserScramCredentials, 0, { users: [{ name: String }] }),
    request!(AlterUserScramCredentials, 0, {
        deletions: [{ name: String, mechanism: Int8 }],
        upsertions: [{
            name: String,
            mechanism: Int8,
            iterations: Int32,
            salt: Bytes,
            salted_password: Bytes,
        }],
    }),
    request!(DescribeCluster, 0, {
        include_cluster_authorized_operations: Bool,
        endpoint_type: Int8 from 1,
        include_fenced_brokers: Bool from 2,
    }),
    request!(DescribeTopicPartitions, 0, {
        topics: [{ name: String }],
        response_partition_limit: Int32,
        cursor: { topic_name: String, partition_index: Int32 },
    }),
];
