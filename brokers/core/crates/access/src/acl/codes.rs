//! Converts entries and filters from and to the codes of CreateAcls, DescribeAcls and DeleteAcls
//! requests.

use kafka_protocol::ResponseError;

use super::binding::CLUSTER_NAME;
use super::{AclFilter, PatternFilter};
use crate::principal::{Principal, PrincipalError};
use crate::types::{AclBinding, Operation, PatternType, Permission, ResourceType};

/// The code that stands for everything in a filter; no entry may have it.
const ANY: i8 = 1;
/// The code of the pattern filter that selects every entry which applies to a resource.
const MATCH: i8 = 2;

/// Why an entry or a filter is refused. Kafka's error code for all of them is INVALID_REQUEST.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AclError {
    /// An entry has a code without a meaning, or one that only filters may have.
    #[error("Invalid {field} {value}")]
    Code {
        /// Kafka's name of the field.
        field: &'static str,
        /// Kafka's name of the value.
        value: &'static str,
    },
    /// A filter has a code without a meaning.
    #[error("Unknown {0}.")]
    UnknownFilter(&'static str),
    /// An entry names no resource.
    #[error("Invalid empty resource name")]
    EmptyResourceName,
    /// An entry of type Cluster has another name than the only valid one.
    #[error("The only valid name for the CLUSTER resource is {CLUSTER_NAME}")]
    ClusterName,
    /// The principal does not have the form `Type:name`.
    #[error(transparent)]
    Principal(#[from] PrincipalError),
}

impl AclError {
    /// Kafka's error code for it.
    pub fn kafka_error(&self) -> ResponseError {
        ResponseError::InvalidRequest
    }
}

macro_rules! codes {
    ($type:ident: $($variant:ident)*) => {
        impl $type {
            /// The code in requests and responses.
            pub fn code(self) -> i8 {
                self as i8
            }

            /// The value with this code; `None` for UNKNOWN, ANY and codes without a meaning.
            pub fn from_code(code: i8) -> Option<Self> {
                [$(Self::$variant),*].into_iter().find(|value| value.code() == code)
            }
        }
    };
}

codes!(ResourceType: Topic Group Cluster TransactionalId DelegationToken User);
codes!(PatternType: Literal Prefixed);
codes!(Permission: Deny Allow);
codes!(Operation: All Read Write Create Delete Alter Describe ClusterAction DescribeConfigs
    AlterConfigs IdempotentWrite CreateTokens DescribeTokens TwoPhaseCommit);

/// Kafka's name of a code that stands for no value.
fn name_of(code: i8) -> &'static str {
    if code == ANY { "ANY" } else { "UNKNOWN" }
}

fn of_entry<T>(entry: Option<T>, field: &'static str, code: i8) -> Result<T, AclError> {
    entry.ok_or_else(|| AclError::Code { field, value: name_of(code) })
}

fn of_filter<T>(parsed: Option<T>, part: &'static str, code: i8) -> Result<Option<T>, AclError> {
    match parsed {
        None if code != ANY => Err(AclError::UnknownFilter(part)),
        parsed => Ok(parsed),
    }
}

/// An entry in the form of CreateAcls requests.
#[derive(Debug, Clone)]
pub struct BindingCodes {
    /// Code of the resource's type.
    pub resource_type: i8,
    /// Name of the resource.
    pub resource_name: String,
    /// Code of the pattern's type.
    pub pattern_type: i8,
    /// `Type:name`.
    pub principal: String,
    /// An address, or `*`.
    pub host: String,
    /// Code of the operation.
    pub operation: i8,
    /// Code of the permission.
    pub permission: i8,
}

impl TryFrom<BindingCodes> for AclBinding {
    type Error = AclError;

    /// Checks what Kafka checks, in Kafka's order. As Kafka does, it accepts any text as host, and
    /// any operation on any type of resource.
    fn try_from(codes: BindingCodes) -> Result<Self, AclError> {
        let resource_type = ResourceType::from_code(codes.resource_type);
        if resource_type == Some(ResourceType::Cluster) && codes.resource_name != CLUSTER_NAME {
            return Err(AclError::ClusterName);
        }
        if codes.resource_name.is_empty() {
            return Err(AclError::EmptyResourceName);
        }
        let resource_type = of_entry(resource_type, "resourceType", codes.resource_type)?;
        let pattern_type = PatternType::from_code(codes.pattern_type).ok_or_else(|| {
            let code = codes.pattern_type;
            let value = if code == MATCH { "MATCH" } else { name_of(code) };
            AclError::Code { field: "patternType", value }
        })?;
        let operation = Operation::from_code(codes.operation);
        let permission = Permission::from_code(codes.permission);
        let operation = of_entry(operation, "operation", codes.operation)?;
        let permission = of_entry(permission, "permissionType", codes.permission)?;
        Principal::parse(&codes.principal)?;
        Ok(Self {
            resource_type,
            resource_name: codes.resource_name,
            pattern_type,
            principal: codes.principal,
            host: codes.host,
            operation,
            permission,
        })
    }
}

/// A filter in the form of DescribeAcls and DeleteAcls requests.
#[derive(Debug, Clone)]
pub struct FilterCodes {
    /// Code of the resource's type.
    pub resource_type: i8,
    /// Name of the resource.
    pub resource_name: Option<String>,
    /// Code of the pattern's type.
    pub pattern_type: i8,
    /// `Type:name`.
    pub principal: Option<String>,
    /// An address, or `*`.
    pub host: Option<String>,
    /// Code of the operation.
    pub operation: i8,
    /// Code of the permission.
    pub permission: i8,
}

impl TryFrom<FilterCodes> for AclFilter {
    type Error = AclError;

    fn try_from(codes: FilterCodes) -> Result<Self, AclError> {
        let (pattern_part, entry_part) = ("patternFilter", "entryFilter");
        let resource_type = ResourceType::from_code(codes.resource_type);
        let pattern = match codes.pattern_type {
            MATCH => PatternFilter::Match,
            code => of_filter(PatternType::from_code(code), pattern_part, code)?
                .map_or(PatternFilter::Any, PatternFilter::Exactly),
        };
        let operation = Operation::from_code(codes.operation);
        let permission = Permission::from_code(codes.permission);
        Ok(Self {
            resource_type: of_filter(resource_type, pattern_part, codes.resource_type)?,
            resource_name: codes.resource_name,
            pattern,
            principal: codes.principal,
            host: codes.host,
            operation: of_filter(operation, entry_part, codes.operation)?,
            permission: of_filter(permission, entry_part, codes.permission)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes() -> BindingCodes {
        BindingCodes {
            resource_type: 2,
            resource_name: "orders".into(),
            pattern_type: 3,
            principal: "User:alice".into(),
            host: "*".into(),
            operation: 3,
            permission: 3,
        }
    }

    fn refusal(codes: BindingCodes) -> String {
        let error = AclBinding::try_from(codes).unwrap_err();
        assert_eq!(error.kafka_error(), ResponseError::InvalidRequest);
        error.to_string()
    }

    #[test]
    fn every_code_means_what_kafka_says() {
        for code in i8::MIN..=i8::MAX {
            assert_eq!(ResourceType::from_code(code).is_some(), (2..=7).contains(&code));
            assert_eq!(PatternType::from_code(code).is_some(), (3..=4).contains(&code));
            assert_eq!(Operation::from_code(code).is_some(), (2..=15).contains(&code));
            assert_eq!(Permission::from_code(code).is_some(), (2..=3).contains(&code));
            assert!(Operation::from_code(code).is_none_or(|operation| operation.code() == code));
        }
    }

    #[test]
    fn an_entry_is_read_from_its_codes() {
        let binding = AclBinding::try_from(codes()).unwrap();
        assert_eq!(binding.resource_type, ResourceType::Topic);
        assert_eq!(binding.pattern_type, PatternType::Literal);
        assert_eq!((binding.operation, binding.permission), (Operation::Read, Permission::Allow));
        assert_eq!((binding.resource_name.as_str(), binding.host.as_str()), ("orders", "*"));
    }

    #[test]
    fn entries_are_refused_in_kafkas_words() {
        let refused = [
            (BindingCodes { resource_type: 0, ..codes() }, "Invalid resourceType UNKNOWN"),
            (BindingCodes { resource_type: 1, ..codes() }, "Invalid resourceType ANY"),
            (BindingCodes { pattern_type: 2, ..codes() }, "Invalid patternType MATCH"),
            (BindingCodes { pattern_type: 1, ..codes() }, "Invalid patternType ANY"),
            (BindingCodes { operation: 1, ..codes() }, "Invalid operation ANY"),
            (BindingCodes { operation: 16, ..codes() }, "Invalid operation UNKNOWN"),
            (BindingCodes { permission: 1, ..codes() }, "Invalid permissionType ANY"),
            (
                BindingCodes { resource_name: String::new(), ..codes() },
                "Invalid empty resource name",
            ),
            (
                BindingCodes { resource_type: 4, ..codes() },
                "The only valid name for the CLUSTER resource is kafka-cluster",
            ),
            (
                BindingCodes { principal: "alice".into(), ..codes() },
                "Could not parse principal from `alice` (no colon is present separating the \
                 principal type from the principal name)",
            ),
        ];
        for (codes, message) in refused {
            assert_eq!(refusal(codes), message);
        }
        let cluster =
            BindingCodes { resource_type: 4, resource_name: CLUSTER_NAME.into(), ..codes() };
        assert!(AclBinding::try_from(cluster).is_ok());
    }

    #[test]
    fn filters_take_any_and_match_but_nothing_unknown() {
        let open = FilterCodes {
            resource_type: 1,
            resource_name: None,
            pattern_type: 1,
            principal: None,
            host: None,
            operation: 1,
            permission: 1,
        };
        assert_eq!(AclFilter::try_from(open.clone()), Ok(AclFilter::default()));
        let narrow = FilterCodes { pattern_type: 2, resource_type: 3, ..open.clone() };
        let narrow = AclFilter::try_from(narrow).unwrap();
        assert_eq!(narrow.pattern, PatternFilter::Match);
        assert_eq!(narrow.resource_type, Some(ResourceType::Group));
        let unknown = [
            (FilterCodes { resource_type: 0, ..open.clone() }, "Unknown patternFilter."),
            (FilterCodes { pattern_type: 5, ..open.clone() }, "Unknown patternFilter."),
            (FilterCodes { operation: 0, ..open.clone() }, "Unknown entryFilter."),
            (FilterCodes { permission: -1, ..open }, "Unknown entryFilter."),
        ];
        for (codes, message) in unknown {
            assert_eq!(AclFilter::try_from(codes).unwrap_err().to_string(), message);
        }
    }
}
