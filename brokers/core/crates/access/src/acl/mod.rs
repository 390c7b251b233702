//! Authorization: access control lists with the semantics of Kafka's StandardAuthorizer.
//!
//! A denial wins over every allowance. Without a matching entry the answer is no, unless no entry
//! applies to the resource at all and the cluster is configured to allow that. Super users may do
//! everything.

mod binding;
mod codes;
mod filter;
mod index;
#[cfg(test)]
mod reference;

pub use binding::{CLUSTER_NAME, supported_operations};
pub use codes::{AclError, BindingCodes, FilterCodes};
pub use filter::{AclFilter, PatternFilter};
pub use index::{AclIndex, AuthorizerSettings, parse_super_users};

/// Matches every resource name, host or principal name.
pub(crate) const WILDCARD: &str = "*";

/// Matches every principal.
pub(crate) const WILDCARD_PRINCIPAL: &str = "User:*";
