//! Groups: which there are, their members, what they committed; deleting one.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::AT_ONCE;
use crate::Place;
use crate::apis::Request;
use crate::apis::groups::{DeleteGroup, DescribeGroup, DescribedGroup, ListGroups, ListedGroup};
use crate::apis::metadata::FindCoordinator;
use crate::apis::offsets::{CommittedOffset, OffsetCommit, OffsetFetch};
use crate::cluster::{ClusterClient, persist};
use crate::error::{ClientError, KafkaError};

/// The most members of all groups together that a call returns.
const MEMBERS_MAX: usize = 10_000;

impl ClusterClient {
    /// The groups of all brokers, of every protocol type, sorted by their ids.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn list_groups(&self, deadline: Instant) -> Result<Vec<ListedGroup>, ClientError> {
        let mut groups = persist(deadline, async || {
            let brokers = self.view(Some(Vec::new())).await?.brokers;
            let mut all = Vec::new();
            for address in brokers.values() {
                let (code, groups) = self.send(address, &ListGroups).await?;
                KafkaError::check(code, None)?;
                all.extend(groups);
            }
            Ok(all)
        })
        .await?;
        // While a group moves, two brokers may list it.
        groups.sort_by(|a, b| a.group.cmp(&b.group));
        groups.dedup_by(|a, b| a.group == b.group);
        Ok(groups)
    }

    /// Groups with their members, in the order of `names`. Assignments have at most
    /// `assigned_max` partitions in all; the first members keep theirs. A group whose answer cannot
    /// be decoded has a `fault` and hides no other one.
    ///
    /// # Errors
    /// Any [`ClientError`] but `Undecodable`.
    pub async fn describe_groups(
        &self,
        names: &[String],
        assigned_max: usize,
        deadline: Instant,
    ) -> Result<Vec<DescribedGroup>, ClientError> {
        let routes = self.coordinators(names, deadline).await?;
        let mut described = stream::iter(names)
            .map(|name| self.describe_group(name, routes.get(name), deadline))
            .buffered(AT_ONCE);
        let (mut all, mut left, mut members_left) = (Vec::new(), assigned_max, MEMBERS_MAX);
        while let Some(group) = described.next().await {
            let mut group = group?;
            group.members.truncate(members_left);
            members_left -= group.members.len();
            for member in &mut group.members {
                member.truncate(left);
                left -= member.partitions();
            }
            all.push(group);
        }
        Ok(all)
    }

    async fn describe_group(
        &self,
        name: &str,
        route: Option<&(i32, String)>,
        deadline: Instant,
    ) -> Result<DescribedGroup, ClientError> {
        let request = DescribeGroup { group: name.to_owned() };
        let asked = self.at_coordinator(name, route, &request, deadline, |answer| {
            let (code, group) = only(answer, DescribeGroup::NAME)?;
            KafkaError::check(code, None)?;
            Ok(group)
        });
        match asked.await {
            Ok(group) => Ok(DescribedGroup { coordinator: route.map(|(node, _)| *node), ..group }),
            Err(ClientError::Undecodable { reason, .. }) => Ok(DescribedGroup {
                group: name.to_owned(),
                state: "Unknown".to_owned(),
                protocol_type: String::new(),
                protocol: String::new(),
                members: Vec::new(),
                coordinator: route.map(|(node, _)| *node),
                fault: Some(reason),
            }),
            Err(error) => Err(error),
        }
    }

    /// What groups committed, in the order of `names`: `None` where that cannot be decoded.
    ///
    /// # Errors
    /// Any [`ClientError`] but `Undecodable`.
    pub async fn committed_offsets(
        &self,
        names: &[String],
        deadline: Instant,
    ) -> Result<Vec<Option<Vec<CommittedOffset>>>, ClientError> {
        let routes = self.coordinators(names, deadline).await?;
        let mut answers = stream::iter(names)
            .map(|name| {
                let request = OffsetFetch { group: name.clone() };
                let route = routes.get(name);
                async move {
                    self.at_coordinator(name, route, &request, deadline, |answer| {
                        let (code, offsets) = only(answer, OffsetFetch::NAME)?;
                        KafkaError::check(code, None)?;
                        Ok(offsets)
                    })
                    .await
                }
            })
            .buffered(AT_ONCE);
        let mut all = Vec::new();
        while let Some(answer) = answers.next().await {
            all.push(match answer {
                Ok(offsets) => Some(offsets),
                Err(ClientError::Undecodable { .. }) => None,
                Err(error) => return Err(error),
            });
        }
        Ok(all)
    }

    /// Commits offsets of a group without members.
    ///
    /// # Errors
    /// Any [`ClientError`]; UNKNOWN_MEMBER_ID where the group has members. Where one partition is
    /// refused, others may have been committed.
    pub async fn commit_offsets(
        &self,
        group: &str,
        offsets: &[(Place, i64)],
        deadline: Instant,
    ) -> Result<(), ClientError> {
        let mut topics: BTreeMap<String, Vec<(i32, i64)>> = BTreeMap::new();
        for ((topic, number), offset) in offsets {
            topics.entry(topic.clone()).or_default().push((*number, *offset));
        }
        let topics = topics.into_iter().collect();
        let request = OffsetCommit { group: group.to_owned(), topics };
        self.at_coordinator(group, None, &request, deadline, |topics| {
            let mut codes = topics.into_iter().flat_map(|(_, partitions)| partitions);
            codes.try_for_each(|(_, code)| KafkaError::check(code, None))
        })
        .await
    }

    /// Deletes a group with its committed offsets.
    ///
    /// # Errors
    /// Any [`ClientError`]; NON_EMPTY_GROUP while it has members, GROUP_ID_NOT_FOUND.
    pub async fn delete_group(&self, group: &str, deadline: Instant) -> Result<(), ClientError> {
        let request = DeleteGroup { group: group.to_owned() };
        self.at_coordinator(group, None, &request, deadline, |answer| {
            KafkaError::check(only(answer, DeleteGroup::NAME)?, None)
        })
        .await
    }

    /// Node id and address of each group's coordinator. Groups that have none now are left out.
    async fn coordinators(
        &self,
        names: &[String],
        deadline: Instant,
    ) -> Result<BTreeMap<String, (i32, String)>, ClientError> {
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let request = FindCoordinator { groups: names.to_vec() };
        let answers = persist(deadline, async || self.send_anywhere(&request).await).await?;
        let known = answers.into_iter().filter(|coordinator| coordinator.code == 0);
        Ok(known.map(|it| (it.group, (it.node, it.address))).collect())
    }

    /// Sends a request to a group's coordinator, at first to the one that is known. `read` takes
    /// the answer's errors out.
    async fn at_coordinator<R: Request, T>(
        &self,
        group: &str,
        route: Option<&(i32, String)>,
        request: &R,
        deadline: Instant,
        read: impl Fn(R::Answer) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let mut known = route.map(|(_, address)| address.clone());
        persist(deadline, async || {
            let address = match known.take() {
                Some(address) => address,
                None => self.find_coordinator(group).await?,
            };
            read(self.send(&address, request).await?)
        })
        .await
    }

    async fn find_coordinator(&self, group: &str) -> Result<String, ClientError> {
        let request = FindCoordinator { groups: vec![group.to_owned()] };
        let answer = only(self.send_anywhere(&request).await?, FindCoordinator::NAME)?;
        KafkaError::check(answer.code, answer.message)?;
        Ok(answer.address)
    }
}

/// The one element of an answer.
fn only<T>(answer: Vec<T>, api: &'static str) -> Result<T, ClientError> {
    let mut answer = answer.into_iter();
    match (answer.next(), answer.next()) {
        (Some(value), None) => Ok(value),
        _ => Err(ClientError::Undecodable {
            api,
            reason: "it has another number of elements than were asked for".to_owned(),
        }),
    }
}
