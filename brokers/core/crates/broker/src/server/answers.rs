//! Answers of Kafka's APIs: each handler's response, what it is counted as, and for how long it
//! asks the client to pause.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::Encodable;

use super::service::{Outcome, Reply};
use super::throttle::{ThrottledResponse, timed};
use crate::context::RequestContext;
use crate::handlers;
use crate::handlers::produce::Frame;
use freshet_engine::groups::OFFSETS_TOPIC;
use freshet_greeting::call::{Call, Refusal};
use freshet_telemetry::CommitStage;
use freshet_wire::ids::TopicId;
use freshet_wire::protocol::fetch::{FetchRequest, FetchResponse};
use freshet_wire::protocol::produce::ProduceRequest;

pub(super) async fn stage_produce(
    context: &RequestContext,
    call: Call,
    body: Bytes,
    frame: Frame,
) -> Result<Outcome, Refusal> {
    let api = call.api;
    let request =
        ProduceRequest::decode(body, call.version).map_err(|error| Refusal::Body { api, error })?;
    let wants_answer = request.acks != 0;
    let staged = handlers::produce::stage_request(context, request, frame).await;
    if !wants_answer && staged.has_failed() {
        let reason = "an append with acks=0 failed".to_owned();
        return Err(Refusal::Message { api, reason });
    }
    let metrics = Arc::clone(&context.broker().engine.settings.metrics);
    let tally = Arc::clone(&context.tally);
    Ok(Outcome::Staged(Box::pin(async move {
        let (mut response, settled_at) = staged.acknowledge().await;
        metrics.produced(response.error_codes());
        if !wants_answer {
            return Reply::default();
        }
        let mut pieces = call.frame(vec![response.encode(call.version)]);
        let unbilled_ms = tally.answered(bytes_of(&pieces));
        if unbilled_ms > response.throttle_time_ms {
            response.throttle_time_ms = unbilled_ms;
            pieces = call.frame(vec![response.encode(call.version)]);
        }
        let mut reply = Reply::new(pieces);
        reply.written = settled_at.map(|at| -> Box<dyn FnOnce(usize) + Send> {
            Box::new(move |_| metrics.lane.commit_took(CommitStage::Respond, at.elapsed()))
        });
        reply
    })))
}

pub(super) fn answer_fetch(
    context: RequestContext,
    call: Call,
    body: Bytes,
) -> Result<Outcome, Refusal> {
    let api = call.api;
    let request =
        FetchRequest::decode(body, call.version).map_err(|error| Refusal::Body { api, error })?;
    Ok(Outcome::Waiting(Box::pin(async move {
        let (mut fetched, spent) = timed(handlers::fetch::handle(&context, request)).await;
        fetched.throttle(context.charge_request(spent));
        context.broker().engine.settings.metrics.fetched(fetched.response.error_codes());
        let billed: u64 = fetched.egress.iter().map(|(_, bytes)| bytes).sum();
        let billed = usize::try_from(billed).unwrap_or(usize::MAX);
        let pause_ms = fetched.response.throttle_time_ms;
        let mut body = fetched.response.encode(call.version);
        let all = bytes_of(&call.frame(Vec::new())) + bytes_of(&body);
        let unbilled_ms = context.tally.handed(all, billed);
        if unbilled_ms > pause_ms {
            FetchResponse::throttle_encoded(&mut body, unbilled_ms);
        }
        let mut reply = Reply::new(call.frame(body));
        reply.demands = fetched.memory.demands();
        let (egress, held) = (fetched.egress, (fetched.memory, fetched.handing));
        reply.written = Some(Box::new(move |handed| {
            let engine = &context.broker().engine;
            let topics = engine.view.topics();
            let taken = handed.saturating_sub(all - billed);
            if handed < all {
                context.tally.handed(handed, taken);
            }
            for (topic, bytes) in records_taken(egress, taken as u64) {
                engine.egress.add(topic, &context.payer, bytes);
                if let Some(topic) = topics.by_id(topic) {
                    engine.settings.metrics.topic(&topic.record.name).bytes_out.inc_by(bytes);
                }
            }
            drop(held);
        }));
        reply
    })))
}

/// The bytes of each topic that are billed where the socket took `taken` bytes of records, fewer
/// than there were where the client left in the middle. They were handed out for sure: what is no
/// record of the answer is taken to have come first.
fn records_taken(
    egress: Vec<(TopicId, u64)>,
    mut taken: u64,
) -> impl Iterator<Item = (TopicId, u64)> {
    let parts = egress.into_iter().map(move |(topic, bytes)| {
        let part = bytes.min(taken);
        taken -= part;
        (topic, part)
    });
    parts.filter(|(_, bytes)| *bytes > 0)
}

/// Decodes a request, calls its handler and encodes the response.
macro_rules! answer {
    ($call:ident, $body:ident, $context:ident => borrow $handler:path) => {{
        let request = $call.request(&$body)?;
        reply($call, &$context, async { $handler(&$context, &request) }).await
    }};
    ($call:ident, $body:ident, $context:ident => await $handler:path) => {{
        let request = $call.request(&$body)?;
        reply($call, &$context, $handler(&$context, request)).await
    }};
    ($call:ident, $body:ident, $context:ident => $handler:path) => {{
        let request = $call.request(&$body)?;
        reply($call, &$context, async { $handler(&$context, request) }).await
    }};
}

/// Awaits a response and encodes it. It asks the client to pause where the request took more of a
/// thread's time than the client's quota allows.
async fn reply<R: Encodable + ThrottledResponse>(
    call: Call,
    context: &RequestContext,
    work: impl Future<Output = R>,
) -> Result<Reply, Refusal> {
    let (mut response, spent) = timed(work).await;
    let mut reply = Reply::new(answer_throttled(call, context, &mut response, spent)?);
    reply.busy = Some(spent);
    Ok(reply)
}

/// Encodes a response that took a thread's time for `spent`. It asks the client to pause where that
/// is more than the client's quota allows, or its bytes are more than is free.
fn answer_throttled<R: Encodable + ThrottledResponse>(
    call: Call,
    context: &RequestContext,
    response: &mut R,
    spent: Duration,
) -> Result<Vec<Bytes>, Refusal> {
    let pause_ms = context.charge_request(spent).max(context.asked_to_pause_ms());
    response.throttle(pause_ms);
    let pieces = call.answer(response)?;
    // Its length is known now, and does not depend on the pause.
    let unbilled_ms = context.tally.answered(bytes_of(&pieces));
    if unbilled_ms <= pause_ms {
        return Ok(pieces);
    }
    response.throttle(unbilled_ms);
    call.answer(response)
}

/// Bytes of an answer.
pub(super) fn bytes_of(pieces: &[Bytes]) -> usize {
    pieces.iter().map(Bytes::len).sum()
}

/// Answers a request of any API but Produce and Fetch.
pub(super) async fn answer_control(
    context: RequestContext,
    call: Call,
    body: Bytes,
) -> Result<Outcome, Refusal> {
    use handlers as api;
    let reply = match call.api {
        ApiKey::JoinGroup => return join_group(context, call, &body),
        ApiKey::SyncGroup => return sync_group(context, call, &body),
        ApiKey::Metadata => answer!(call, body, context => await api::metadata::handle),
        ApiKey::ListOffsets => answer!(call, body, context => await api::list_offsets::handle),
        ApiKey::OffsetForLeaderEpoch => {
            answer!(call, body, context => api::offset_for_leader_epoch::handle)
        }
        ApiKey::InitProducerId => {
            answer!(call, body, context => await api::init_producer_id::handle)
        }
        ApiKey::FindCoordinator => {
            answer!(call, body, context => await api::find_coordinator::handle)
        }
        ApiKey::Heartbeat => answer!(call, body, context => api::heartbeat::handle),
        ApiKey::LeaveGroup => answer!(call, body, context => await api::leave_group::handle),
        ApiKey::OffsetCommit => answer!(call, body, context => await api::offset_commit::handle),
        ApiKey::OffsetFetch => {
            let reply = answer!(call, body, context => await api::offset_fetch::handle);
            reply.map(|reply| metered_offsets(context, reply))
        }
        ApiKey::OffsetDelete => answer!(call, body, context => await api::offset_delete::handle),
        ApiKey::ListGroups => answer!(call, body, context => borrow api::list_groups::handle),
        ApiKey::DescribeGroups => answer!(call, body, context => api::describe_groups::handle),
        ApiKey::DeleteGroups => answer!(call, body, context => await api::delete_groups::handle),
        _ => answer_admin(&context, call, &body).await,
    };
    reply.map(Outcome::Reply)
}

/// Answers a request of an API that administrators use.
async fn answer_admin(
    context: &RequestContext,
    call: Call,
    body: &Bytes,
) -> Result<Reply, Refusal> {
    use handlers as api;
    match call.api {
        ApiKey::CreateTopics => answer!(call, body, context => await api::create_topics::handle),
        ApiKey::DeleteTopics => answer!(call, body, context => await api::delete_topics::handle),
        ApiKey::DeleteRecords => answer!(call, body, context => await api::delete_records::handle),
        ApiKey::CreatePartitions => {
            answer!(call, body, context => await api::create_partitions::handle)
        }
        ApiKey::DescribeConfigs => {
            answer!(call, body, context => borrow api::describe_configs::handle)
        }
        ApiKey::AlterConfigs => answer!(call, body, context => await api::alter_configs::handle),
        ApiKey::IncrementalAlterConfigs => {
            answer!(call, body, context => await api::incremental_alter_configs::handle)
        }
        ApiKey::DescribeCluster => {
            answer!(call, body, context => borrow api::describe_cluster::handle)
        }
        ApiKey::DescribeLogDirs => answer!(call, body, context => api::describe_log_dirs::handle),
        ApiKey::DescribeTopicPartitions => {
            answer!(call, body, context => borrow api::describe_topic_partitions::handle)
        }
        ApiKey::ElectLeaders => answer!(call, body, context => borrow api::elect_leaders::handle),
        ApiKey::AlterPartitionReassignments => {
            answer!(call, body, context => await api::alter_partition_reassignments::handle)
        }
        ApiKey::ListPartitionReassignments => {
            answer!(call, body, context => borrow api::list_partition_reassignments::handle)
        }
        ApiKey::CreateAcls => answer!(call, body, context => await api::create_acls::handle),
        ApiKey::DescribeAcls => answer!(call, body, context => borrow api::describe_acls::handle),
        ApiKey::DeleteAcls => answer!(call, body, context => await api::delete_acls::handle),
        ApiKey::DescribeClientQuotas => {
            answer!(call, body, context => api::describe_client_quotas::handle)
        }
        ApiKey::AlterClientQuotas => {
            answer!(call, body, context => await api::alter_client_quotas::handle)
        }
        ApiKey::DescribeUserScramCredentials => {
            answer!(call, body, context => api::describe_user_scram_credentials::handle)
        }
        ApiKey::AlterUserScramCredentials => {
            answer!(call, body, context => await api::alter_user_scram_credentials::handle)
        }
        api => {
            let reason = "is advertised and not served".to_owned();
            tracing::error!(?api, reason);
            Err(Refusal::Message { api, reason })
        }
    }
}

/// Has the bytes of an answer with committed offsets counted for whom asked, once they were handed
/// out: as read from the topic that holds the offsets. What the service asks for itself is not.
fn metered_offsets(context: RequestContext, mut reply: Reply) -> Reply {
    let engine = &context.broker().engine;
    let topic = engine.view.topics().by_name(OFFSETS_TOPIC).map(|topic| topic.record.id);
    let is_own = context.client.exempt && !context.is_on_behalf;
    // Where the meter is closed the broker stops, and this is not counted: nobody pays for it.
    if let (Some(topic), false, Some(handing)) = (topic, is_own, engine.egress.begin()) {
        reply.written = Some(Box::new(move |handed| {
            if handed > 0 {
                context.broker().engine.egress.add(topic, &context.payer, handed as u64);
            }
            drop(handing);
        }));
    }
    reply
}

fn join_group(context: RequestContext, call: Call, body: &Bytes) -> Result<Outcome, Refusal> {
    let request = call.request(body)?;
    Ok(waiting(call, context, move |context| async move {
        let response = handlers::join_group::handle(&context, request).await;
        (context, response)
    }))
}

fn sync_group(context: RequestContext, call: Call, body: &Bytes) -> Result<Outcome, Refusal> {
    let request = call.request(body)?;
    Ok(waiting(call, context, move |context| async move {
        let response = handlers::sync_group::handle(&context, request).await;
        (context, response)
    }))
}

/// The outcome of a request whose answer may take long. It is dropped where the client closes the
/// connection meanwhile.
fn waiting<R, F>(
    call: Call,
    context: RequestContext,
    work: impl FnOnce(RequestContext) -> F,
) -> Outcome
where
    R: Encodable + ThrottledResponse + Send,
    F: Future<Output = (RequestContext, R)> + Send + 'static,
{
    let work = work(context);
    Outcome::Waiting(Box::pin(async move {
        let ((context, mut response), spent) = timed(work).await;
        let answered = answer_throttled(call, &context, &mut response, spent);
        // Where the response cannot be encoded the reply is empty, and the client times out.
        answered.map(Reply::new).unwrap_or_default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_answer_that_was_left_in_the_middle_only_what_was_taken_is_billed() {
        let [one, other] = [1, 2].map(TopicId::from_u128);
        let billed = |taken| records_taken(vec![(one, 10), (other, 5)], taken).collect::<Vec<_>>();
        assert_eq!(billed(15), [(one, 10), (other, 5)]);
        assert_eq!(billed(12), [(one, 10), (other, 2)]);
        assert_eq!(billed(10), [(one, 10)]);
        assert_eq!(billed(3), [(one, 3)]);
        assert_eq!(billed(0), []);
    }
}
