//! Rules of single entries: what an entry's operation grants, what a resource type supports.

use crate::types::{Operation, Permission, ResourceType};

/// The only name that a resource of type Cluster has.
pub const CLUSTER_NAME: &str = "kafka-cluster";

/// The operations that make sense for a type of resource: the bits that Metadata, DescribeCluster
/// and DescribeGroups report as authorized (`AclEntry.supportedOperations` of Kafka). An entry
/// with another operation may be made, as in Kafka; nothing ever asks for it.
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

/// Whether an entry with operation `granted` speaks about `requested`. Operations imply others
/// where they are allowed, never where they are denied: who may not read may still describe.
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
