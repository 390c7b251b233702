//! Which APIs and versions are served. The one table: ApiVersions advertises it, the header's
//! decoder refuses what it lacks.

use kafka_protocol::messages::ApiKey;

/// An API with its oldest and newest advertised version.
pub type ApiRange = (ApiKey, i16, i16);

/// What ApiVersions advertises, by API key: as Apache Kafka 4.1, as far as it is served.
pub const ADVERTISED: &[ApiRange] = &[
    (ApiKey::Produce, 0, 13),
    (ApiKey::Fetch, 4, 18),
    (ApiKey::ListOffsets, 1, 10),
    (ApiKey::Metadata, 0, 13),
    (ApiKey::OffsetCommit, 2, 9),
    (ApiKey::OffsetFetch, 1, 9),
    (ApiKey::FindCoordinator, 0, 6),
    (ApiKey::JoinGroup, 0, 9),
    (ApiKey::Heartbeat, 0, 4),
    (ApiKey::LeaveGroup, 0, 5),
    (ApiKey::SyncGroup, 0, 5),
    (ApiKey::DescribeGroups, 0, 6),
    (ApiKey::ListGroups, 0, 5),
    (ApiKey::SaslHandshake, 0, 1),
    (ApiKey::ApiVersions, 0, 4),
    (ApiKey::CreateTopics, 2, 7),
    (ApiKey::DeleteTopics, 1, 6),
    (ApiKey::DeleteRecords, 0, 2),
    (ApiKey::InitProducerId, 0, 5),
    (ApiKey::OffsetForLeaderEpoch, 2, 4),
    (ApiKey::DescribeAcls, 1, 3),
    (ApiKey::CreateAcls, 1, 3),
    (ApiKey::DeleteAcls, 1, 3),
    (ApiKey::DescribeConfigs, 1, 4),
    (ApiKey::AlterConfigs, 0, 2),
    (ApiKey::DescribeLogDirs, 1, 4),
    (ApiKey::SaslAuthenticate, 0, 2),
    (ApiKey::CreatePartitions, 0, 3),
    (ApiKey::DeleteGroups, 0, 2),
    (ApiKey::ElectLeaders, 0, 2),
    (ApiKey::IncrementalAlterConfigs, 0, 1),
    (ApiKey::AlterPartitionReassignments, 0, 1),
    (ApiKey::ListPartitionReassignments, 0, 0),
    (ApiKey::OffsetDelete, 0, 0),
    (ApiKey::DescribeClientQuotas, 0, 1),
    (ApiKey::AlterClientQuotas, 0, 1),
    (ApiKey::DescribeUserScramCredentials, 0, 0),
    (ApiKey::AlterUserScramCredentials, 0, 0),
    (ApiKey::DescribeCluster, 0, 2),
    (ApiKey::DescribeTopicPartitions, 0, 0),
];

/// The oldest Produce that is served. Older ones are advertised all the same, since older
/// librdkafka switches features off otherwise (KAFKA-18659).
pub const PRODUCE_OLDEST: i16 = 3;

/// The advertised range of an API.
pub fn advertised(api: ApiKey) -> Option<(i16, i16)> {
    ADVERTISED.iter().find(|range| range.0 == api).map(|&(_, oldest, newest)| (oldest, newest))
}

/// Whether a request of this version is served.
pub fn is_served(api: ApiKey, version: i16) -> bool {
    let Some((oldest, newest)) = advertised(api) else { return false };
    let oldest = if api == ApiKey::Produce { PRODUCE_OLDEST } else { oldest };
    (oldest..=newest).contains(&version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_stands_once_in_order_and_is_known_to_the_codec() {
        assert!(ADVERTISED.is_sorted_by_key(|range| range.0 as i16));
        for pair in ADVERTISED.windows(2) {
            assert_ne!(pair[0].0, pair[1].0);
        }
        for &(api, oldest, newest) in ADVERTISED {
            let valid = api.valid_versions();
            assert!(api == ApiKey::Produce || valid.min <= oldest, "{api:?}");
            assert!(oldest <= newest && newest <= valid.max, "{api:?}");
        }
    }

    #[test]
    fn the_oldest_produce_versions_are_advertised_but_not_served() {
        assert_eq!(advertised(ApiKey::Produce), Some((0, 13)));
        for version in 0..=2 {
            assert!(!is_served(ApiKey::Produce, version));
        }
        assert!(is_served(ApiKey::Produce, 3) && is_served(ApiKey::Produce, 13));
        assert!(!is_served(ApiKey::Produce, 14) && !is_served(ApiKey::Produce, -1));
        assert!(!is_served(ApiKey::Vote, 0));
    }
}
