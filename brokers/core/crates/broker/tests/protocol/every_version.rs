//! Every version of every API that is advertised is answered, even where the request asks for
//! nothing, and the answer is one that a client of that version can read.

use freshet_wire::protocol::versions::ADVERTISED;
use kafka_protocol::messages::{
    AlterClientQuotasRequest, AlterConfigsRequest, AlterPartitionReassignmentsRequest,
    AlterUserScramCredentialsRequest, ApiKey, ApiVersionsRequest, CreateAclsRequest,
    CreatePartitionsRequest, CreateTopicsRequest, DeleteAclsRequest, DeleteGroupsRequest,
    DeleteRecordsRequest, DeleteTopicsRequest, DescribeAclsRequest, DescribeClientQuotasRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeGroupsRequest, DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest, DescribeUserScramCredentialsRequest, ElectLeadersRequest,
    FetchRequest, FindCoordinatorRequest, HeartbeatRequest, IncrementalAlterConfigsRequest,
    InitProducerIdRequest, JoinGroupRequest, LeaveGroupRequest, ListGroupsRequest,
    ListOffsetsRequest, ListPartitionReassignmentsRequest, MetadataRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, OffsetForLeaderEpochRequest, ProduceRequest,
    SaslAuthenticateRequest, SaslHandshakeRequest, SyncGroupRequest,
};

use super::harness::TestBroker;

macro_rules! ask {
    ($client:ident, $api:ident, $version:ident: $($key:ident $request:ty),* $(,)?) => {
        match $api {
            $(ApiKey::$key => {
                $client.call($version, <$request>::default()).await;
            })*
            other => panic!("{other:?} is advertised and not asked for here"),
        }
    };
}

#[tokio::test]
async fn every_advertised_version_is_answered() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    for &(api, oldest, newest) in ADVERTISED {
        let oldest = if api == ApiKey::Produce { 3 } else { oldest };
        for version in oldest..=newest {
            if api == ApiKey::Produce {
                // Without acks there is no answer.
                client.call(version, ProduceRequest::default().with_acks(-1)).await;
                continue;
            }
            ask!(client, api, version:
                Fetch FetchRequest,
                ListOffsets ListOffsetsRequest,
                Metadata MetadataRequest,
                OffsetCommit OffsetCommitRequest,
                OffsetFetch OffsetFetchRequest,
                FindCoordinator FindCoordinatorRequest,
                JoinGroup JoinGroupRequest,
                Heartbeat HeartbeatRequest,
                LeaveGroup LeaveGroupRequest,
                SyncGroup SyncGroupRequest,
                DescribeGroups DescribeGroupsRequest,
                ListGroups ListGroupsRequest,
                SaslHandshake SaslHandshakeRequest,
                ApiVersions ApiVersionsRequest,
                CreateTopics CreateTopicsRequest,
                DeleteTopics DeleteTopicsRequest,
                DeleteRecords DeleteRecordsRequest,
                DescribeClientQuotas DescribeClientQuotasRequest,
                AlterClientQuotas AlterClientQuotasRequest,
                InitProducerId InitProducerIdRequest,
                OffsetForLeaderEpoch OffsetForLeaderEpochRequest,
                DescribeAcls DescribeAclsRequest,
                CreateAcls CreateAclsRequest,
                DeleteAcls DeleteAclsRequest,
                DescribeConfigs DescribeConfigsRequest,
                AlterConfigs AlterConfigsRequest,
                DescribeLogDirs DescribeLogDirsRequest,
                SaslAuthenticate SaslAuthenticateRequest,
                CreatePartitions CreatePartitionsRequest,
                DeleteGroups DeleteGroupsRequest,
                IncrementalAlterConfigs IncrementalAlterConfigsRequest,
                ElectLeaders ElectLeadersRequest,
                AlterPartitionReassignments AlterPartitionReassignmentsRequest,
                ListPartitionReassignments ListPartitionReassignmentsRequest,
                OffsetDelete OffsetDeleteRequest,
                DescribeUserScramCredentials DescribeUserScramCredentialsRequest,
                AlterUserScramCredentials AlterUserScramCredentialsRequest,
                DescribeCluster DescribeClusterRequest,
                DescribeTopicPartitions DescribeTopicPartitionsRequest,
            );
        }
    }
}
