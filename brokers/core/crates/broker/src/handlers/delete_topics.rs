//! DeleteTopics: deletes topics, by name or by id.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use tokio::time::timeout;
use uuid::Uuid;

use super::errors::ApiError;
use super::topics::{is_internal, time_limit};
use crate::context::RequestContext;
use freshet_access::types::Operation;

/// Handles the request. The response is sent once the topics are gone from this broker's image of
/// the metadata and, where they cannot be restored, their committed offsets from the coordinator.
pub async fn handle(
    context: &RequestContext,
    request: DeleteTopicsRequest,
) -> DeleteTopicsResponse {
    let time_limit = time_limit(request.timeout_ms);
    let by_name = request.topic_names.into_iter();
    let by_name = by_name.map(|name| DeleteTopicState::default().with_name(Some(name)));
    let topics: Vec<DeleteTopicState> = request.topics.into_iter().chain(by_name).collect();
    let mut times_named: BTreeMap<_, usize> = BTreeMap::new();
    for topic in &topics {
        *times_named.entry((topic.name.clone(), topic.topic_id)).or_default() += 1;
    }
    let mut responses = Vec::new();
    for topic in topics {
        match times_named.remove(&(topic.name.clone(), topic.topic_id)) {
            Some(1) => responses.push(handle_topic(context, topic, time_limit).await),
            Some(_) => responses.push(refuse_repeated(context, topic)),
            None => {} // answered already
        }
    }
    DeleteTopicsResponse::default().with_responses(responses)
}

/// A topic that is named twice is not deleted.
fn refuse_repeated(context: &RequestContext, topic: DeleteTopicState) -> DeletableTopicResult {
    let message =
        if topic.name.is_some() { "Duplicate topic name." } else { "Duplicate topic id." };
    let message = (context.api_version >= 5).then(|| StrBytes::from_static_str(message));
    DeletableTopicResult::default()
        .with_name(topic.name)
        .with_topic_id(topic.topic_id)
        .with_error_code(ResponseError::InvalidRequest.code())
        .with_error_message(message)
}

async fn handle_topic(
    context: &RequestContext,
    requested: DeleteTopicState,
    time_limit: Duration,
) -> DeletableTopicResult {
    let (name, id, outcome) = match find_topic(context, &requested) {
        Ok((name, id)) => {
            let outcome = match timeout(time_limit, delete_topic(context, &name, id)).await {
                Ok(outcome) => outcome,
                Err(_) => Err(ResponseError::RequestTimedOut.into()),
            };
            (Some(name), id, outcome)
        }
        Err(Unfound { name, error }) => (name, requested.topic_id, Err(error)),
    };
    let id = if context.api_version >= 6 { id } else { Uuid::nil() };
    let result = DeletableTopicResult::default()
        .with_name(name.map(|name| TopicName(StrBytes::from_string(name))))
        .with_topic_id(id);
    match outcome {
        Ok(()) => result.with_error_message(None),
        Err(error) => {
            let text = (context.api_version >= 5).then(|| error.text());
            result.with_error_code(error.code()).with_error_message(text)
        }
    }
}

struct Unfound {
    /// The topic's name; `None` where the client may not know it.
    name: Option<String>,
    error: ApiError,
}

/// Finds the requested topic and returns its name and id.
///
/// # Errors
/// [`Unfound`] where there is no such topic, or the client may not delete it.
fn find_topic(
    context: &RequestContext,
    requested: &DeleteTopicState,
) -> Result<(String, Uuid), Unfound> {
    let topics = context.broker().engine.view.topics();
    let unfound = |name: Option<&str>, error: ResponseError| Unfound {
        name: name.map(str::to_owned),
        error: error.into(),
    };
    let Some(name) = &requested.name else {
        let known = topics.by_id(requested.topic_id);
        let topic = known.ok_or_else(|| unfound(None, ResponseError::UnknownTopicId))?;
        let name = topic.record.name.as_str();
        let shown = context.may_topic(Operation::Describe, name).then_some(name);
        return if context.may_topic(Operation::Delete, name) {
            Ok((name.to_owned(), topic.record.id))
        } else {
            Err(unfound(shown, ResponseError::TopicAuthorizationFailed))
        };
    };
    if !requested.topic_id.is_nil() {
        return Err(Unfound {
            name: Some(name.to_string()),
            error: ApiError::new(
                ResponseError::InvalidRequest,
                "You may not specify both topic name and topic id.",
            ),
        });
    }
    if !context.may_topic(Operation::Delete, name) {
        return Err(unfound(Some(name), ResponseError::TopicAuthorizationFailed));
    }
    match topics.by_name(name) {
        Some(topic) => Ok((name.to_string(), topic.record.id)),
        None => Err(unfound(Some(name), ResponseError::UnknownTopicOrPartition)),
    }
}

async fn delete_topic(context: &RequestContext, name: &str, id: Uuid) -> Result<(), ApiError> {
    let broker = context.broker();
    if !broker.config().delete_topics {
        let disabled = if context.api_version < 3 {
            ResponseError::InvalidRequest
        } else {
            ResponseError::TopicDeletionDisabled
        };
        return Err(disabled.into());
    }
    if is_internal(name) {
        let message = format!("{name} is internal and cannot be deleted.");
        return Err(ApiError::new(ResponseError::TopicAuthorizationFailed, message));
    }
    let keep_ms = broker.config().topic_restorable_ms;
    let metadata = context.admit(1).await?;
    let deleted = metadata.delete_topic(broker.engine.fence(), name, Some(id), keep_ms).await;
    let deleted = deleted.map_err(|error| broker.metadata_error(&error))?;
    broker.await_revision(deleted.revision).await?;
    if keep_ms > 0 {
        // The committed offsets stay: they are restored with the topic.
        return Ok(());
    }
    if let Err(error) = broker.engine.groups.forget_topic(name).await {
        tracing::warn!(topic = name, ?error, "cannot forget a deleted topic's offsets yet");
    }
    Ok(())
}
