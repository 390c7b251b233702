//! Asks the ACLs what a client may do.

use super::RequestContext;
use freshet_access::acl::{CLUSTER_NAME, supported_operations};
use freshet_access::principal::Principal;
use freshet_access::types::{Operation, ResourceType};

impl RequestContext {
    /// Whether the ACLs allow the client this operation on a resource.
    pub(crate) fn may(&self, operation: Operation, kind: ResourceType, name: &str) -> bool {
        let client = &self.client;
        self.broker().acls().is_none_or(|acls| {
            acls.authorize(&client.principal, client.host, operation, kind, name)
        })
    }

    /// Whether a principal is a super user, whom no ACL restricts.
    pub(crate) fn is_super_user(&self, principal: &Principal) -> bool {
        let authorizer = self.broker().settings.authorizer.as_ref();
        authorizer.is_some_and(|settings| settings.super_users.contains(principal))
    }

    /// Whether a user is as if it were absent in answers to this client: the service's own user, to
    /// all but the service.
    pub(crate) fn hides_user(&self, user: &str) -> bool {
        self.is_super_user(&Principal::user(user)) && !self.is_super_user(&self.client.principal)
    }

    /// Whether the client may do this to the topic of that name.
    pub(crate) fn may_topic(&self, operation: Operation, name: &str) -> bool {
        self.may(operation, ResourceType::Topic, name)
    }

    /// Whether the client may do this to the consumer group of that name.
    pub(crate) fn may_group(&self, operation: Operation, name: &str) -> bool {
        self.may(operation, ResourceType::Group, name)
    }

    /// Whether the client may do this to the cluster.
    pub(crate) fn may_cluster(&self, operation: Operation) -> bool {
        self.may(operation, ResourceType::Cluster, CLUSTER_NAME)
    }

    /// Whether the client may do this to at least one topic.
    pub(crate) fn may_some_topic(&self, operation: Operation) -> bool {
        let client = &self.client;
        self.broker().acls().is_none_or(|acls| {
            let kind = ResourceType::Topic;
            acls.authorize_by_resource_type(&client.principal, client.host, operation, kind)
        })
    }

    /// What the client may do to a resource, as the protocol's bit field: bit n stands for the
    /// operation with code n.
    pub(crate) fn authorized_operations(&self, kind: ResourceType, name: &str) -> i32 {
        let client = &self.client;
        match self.broker().acls() {
            Some(acls) => acls.authorized_operations(&client.principal, client.host, kind, name),
            None => supported_operations(kind)
                .iter()
                .fold(0, |bits, operation| bits | 1 << (*operation as i8)),
        }
    }
}
