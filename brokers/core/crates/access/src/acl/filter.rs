//! The filters of DescribeAcls and DeleteAcls: Kafka's `AclBindingFilter`.

use super::WILDCARD;
use crate::types::{AclBinding, Operation, PatternType, Permission, ResourceType};

/// How a filter's resource name is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PatternFilter {
    /// Entries of either pattern type with exactly the filter's name.
    #[default]
    Any,
    /// Entries that apply to the resource with the filter's name: literal ones, the wildcard, and
    /// prefixes of the name.
    Match,
    /// Entries of this pattern type with exactly the filter's name.
    Exactly(PatternType),
}

/// A filter of entries. An absent field matches everything. Texts are compared literally, so the
/// host `*` matches only entries with the host `*`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AclFilter {
    /// Type of the resource.
    pub resource_type: Option<ResourceType>,
    /// Name of the resource, or of the pattern.
    pub resource_name: Option<String>,
    /// How the name is compared.
    pub pattern: PatternFilter,
    /// `Type:name`.
    pub principal: Option<String>,
    /// An address, or `*`.
    pub host: Option<String>,
    /// The entry's own operation. Operations that it implies are not considered.
    pub operation: Option<Operation>,
    /// Allow or deny.
    pub permission: Option<Permission>,
}

impl AclFilter {
    /// Whether an entry matches the filter.
    pub fn matches(&self, binding: &AclBinding) -> bool {
        fn is<T: PartialEq>(required: Option<&T>, value: &T) -> bool {
            required.is_none_or(|required| required == value)
        }
        is(self.resource_type.as_ref(), &binding.resource_type)
            && self.matches_pattern(binding)
            && is(self.principal.as_ref(), &binding.principal)
            && is(self.host.as_ref(), &binding.host)
            && is(self.operation.as_ref(), &binding.operation)
            && is(self.permission.as_ref(), &binding.permission)
    }

    fn matches_pattern(&self, binding: &AclBinding) -> bool {
        if let PatternFilter::Exactly(required) = self.pattern
            && required != binding.pattern_type
        {
            return false;
        }
        let Some(name) = &self.resource_name else { return true };
        match (self.pattern, binding.pattern_type) {
            (PatternFilter::Match, PatternType::Literal) => {
                *name == binding.resource_name || binding.resource_name == WILDCARD
            }
            (PatternFilter::Match, PatternType::Prefixed) => {
                name.starts_with(&binding.resource_name)
            }
            _ => *name == binding.resource_name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pattern_type: PatternType, name: &str) -> AclBinding {
        AclBinding {
            resource_type: ResourceType::Topic,
            resource_name: name.into(),
            pattern_type,
            principal: "User:alice".into(),
            host: "*".into(),
            operation: Operation::Read,
            permission: Permission::Allow,
        }
    }

    /// Names of the entries that a filter of this kind finds among five.
    fn matching_names(pattern: PatternFilter, name: Option<&str>) -> Vec<String> {
        use PatternType::{Literal, Prefixed};
        let entries =
            [(Literal, "foo"), (Literal, "*"), (Literal, "f"), (Prefixed, "foo"), (Prefixed, "f")];
        let filter =
            AclFilter { pattern, resource_name: name.map(Into::into), ..AclFilter::default() };
        let entries = entries.into_iter().map(|(kind, name)| entry(kind, name));
        let matching_names = entries.filter(|entry| filter.matches(entry));
        matching_names
            .map(|entry| format!("{:?}:{}", entry.pattern_type, entry.resource_name))
            .collect()
    }

    #[test]
    fn names_are_compared_as_the_pattern_type_says() {
        use PatternFilter::{Any, Exactly, Match};
        assert_eq!(matching_names(Any, None).len(), 5);
        assert_eq!(matching_names(Match, None).len(), 5);
        assert_eq!(matching_names(Any, Some("foo")), ["Literal:foo", "Prefixed:foo"]);
        assert_eq!(
            matching_names(Match, Some("foo")),
            ["Literal:foo", "Literal:*", "Prefixed:foo", "Prefixed:f"]
        );
        assert_eq!(matching_names(Match, Some("fob")), ["Literal:*", "Prefixed:f"]);
        assert_eq!(matching_names(Exactly(PatternType::Literal), Some("foo")), ["Literal:foo"]);
        assert_eq!(matching_names(Exactly(PatternType::Prefixed), Some("foo")), ["Prefixed:foo"]);
        assert_eq!(
            matching_names(Exactly(PatternType::Prefixed), None),
            ["Prefixed:foo", "Prefixed:f"]
        );
        assert_eq!(matching_names(Any, Some("*")), ["Literal:*"]);
    }

    #[test]
    fn every_field_narrows() {
        let binding = entry(PatternType::Literal, "foo");
        assert!(AclFilter::default().matches(&binding));
        let filters = [
            AclFilter { resource_type: Some(ResourceType::Group), ..AclFilter::default() },
            AclFilter { resource_name: Some("fo".into()), ..AclFilter::default() },
            AclFilter { principal: Some("User:*".into()), ..AclFilter::default() },
            AclFilter { host: Some("1.2.3.4".into()), ..AclFilter::default() },
            AclFilter { operation: Some(Operation::Describe), ..AclFilter::default() },
            AclFilter { permission: Some(Permission::Deny), ..AclFilter::default() },
        ];
        for filter in filters {
            assert!(!filter.matches(&binding), "{filter:?}");
        }
        let exact = AclFilter {
            resource_type: Some(ResourceType::Topic),
            resource_name: Some("foo".into()),
            pattern: PatternFilter::Exactly(PatternType::Literal),
            principal: Some("User:alice".into()),
            host: Some("*".into()),
            operation: Some(Operation::Read),
            permission: Some(Permission::Allow),
        };
        assert!(exact.matches(&binding));
    }
}
