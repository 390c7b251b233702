//! Throttling: measures the processor time of requests, and writes into responses for how long
//! clients must pause.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use kafka_protocol::messages as of;
use tokio::time::Instant;

/// Runs a request. Returns its output, and for how long a thread worked on it, without the time for
/// which it waited.
pub(super) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let mut work = pin!(work);
    let mut spent = Duration::ZERO;
    let output = poll_fn(|context| {
        let started = Instant::now();
        let polled = work.as_mut().poll(context);
        spent += started.elapsed();
        polled
    });
    let output = output.await;
    (output, spent)
}

/// A response with the field `throttle_time_ms`. Versions of the API without the field leave it
/// out when they are encoded.
pub(super) trait ThrottledResponse {
    fn throttle(&mut self, throttle_time_ms: i32);
}

macro_rules! throttled {
    ($($response:ident),* $(,)?) => {
        $(impl ThrottledResponse for of::$response {
            fn throttle(&mut self, throttle_time_ms: i32) {
                self.throttle_time_ms = throttle_time_ms;
            }
        })*
    };
}

throttled!(
    AlterClientQuotasResponse,
    AlterConfigsResponse,
    AlterPartitionReassignmentsResponse,
    AlterUserScramCredentialsResponse,
    CreateAclsResponse,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteAclsResponse,
    DeleteGroupsResponse,
    DeleteRecordsResponse,
    DeleteTopicsResponse,
    DescribeAclsResponse,
    DescribeClientQuotasResponse,
    DescribeClusterResponse,
    DescribeConfigsResponse,
    DescribeGroupsResponse,
    DescribeLogDirsResponse,
    DescribeTopicPartitionsResponse,
    DescribeUserScramCredentialsResponse,
    ElectLeadersResponse,
    FindCoordinatorResponse,
    HeartbeatResponse,
    IncrementalAlterConfigsResponse,
    InitProducerIdResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    ListGroupsResponse,
    ListOffsetsResponse,
    ListPartitionReassignmentsResponse,
    MetadataResponse,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    OffsetForLeaderEpochResponse,
    SyncGroupResponse,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_request_waits_is_not_counted() {
        let work = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            tokio::time::advance(Duration::ZERO).await;
            7
        };
        assert_eq!(timed(work).await, (7, Duration::ZERO));
    }
}
