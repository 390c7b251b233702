//! Rules about single ACL entries: what an entry's operation grants, and which operations a
//! resource type supports.

use crate::types::{Operation, Permission, ResourceType};

/// The only name that a resource of type Cluster has.
pub const CLUSTER_NAME: &str = "kafka-cluster";

/// The operations that exist for a type of resource (`AclEntry.supportedOperations` of Kafka).
/// Metadata, DescribeCluster and DescribeGroups report these as authorized operations. As in Kafka,
/// an entry with another operation can be created, but no request ever needs it.
pub fn supported_operations(resource_type: ResourceType) -> &'static [Operation] {
    use Operation::{
        Alter, AlterConfigs, ClusterAction, Create, CreateTokens, Delete, Describe,
        DescribeConfigs, DescribeTokens, IdempotentWrite, Read, TwoPhaseCommit, Write,
    };
    match resource_type {
        ResourceType::Topic => {
            &[Read, Write, Create, Describe, Delete, Alter, DescribeConfigs, AlterConfigs]
        }
        ResourceType::Group => &[Read, Describe, Delete, DescribeConfigs, AlterConfigs],
        ResourceType::Cluster => &[
            Create,
            ClusterAction,
            DescribeConfigs,
            AlterConfigs,
            IdempotentWrite,
            Alter,
            Describe,
        ],
        ResourceType::TransactionalId => &[Describe, Write, TwoPhaseCommit],
        ResourceType::DelegationToken => &[Describe],
        ResourceType::User => &[CreateTokens, DescribeTokens],
    }
}

/// Whether an entry with operation `granted` applies to `requested`. An allowed operation implies
/// others, a denied one does not: a principal that is denied Read may still be allowed Describe.
pub(super) fn covers(permission: Permission, granted: Operation, requested: Operation) -> bool {
    use Operation::{All, Alter, AlterConfigs, Delete, Describe, DescribeConfigs, Read, Write};
    if granted == All || granted == requested {
        return true;
    }
    permission == Permission::Allow
        && match requested {
            Describe => matches!(granted, Read | Write | Delete | Alter),
            DescribeConfigs => granted == AlterConfigs,
            _ => false,
        }
}
