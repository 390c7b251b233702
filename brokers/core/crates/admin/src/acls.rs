//! Entries of the access control list, by Kafka's names.

use serde::de::DeserializeOwned;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::{Deserialize, Serialize};

use super::{AdminError, ClusterAdmin};
use freshet_access::acl::{AclError, BindingCodes};
use freshet_access::types::{AclBinding, kafka_name};
use freshet_metadata::cluster::{ClusterError, check_acl};

/// An entry as Kafka's tools write it: `TOPIC`, `PREFIXED`, `User:alice`, `*`, `READ`, `ALLOW`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AclText {
    /// The type of the resource.
    pub resource_type: String,
    /// Its name, a prefix of it, or `*`.
    pub resource_name: String,
    /// `LITERAL` or `PREFIXED`.
    pub pattern_type: String,
    /// `User:<name>` or `User:*`.
    pub principal: String,
    /// An address, or `*`.
    pub host: String,
    /// What is allowed or denied.
    pub operation: String,
    /// `ALLOW` or `DENY`.
    pub permission: String,
}

impl From<&AclBinding> for AclText {
    fn from(binding: &AclBinding) -> Self {
        Self {
            resource_type: kafka_name(&binding.resource_type),
            resource_name: binding.resource_name.clone(),
            pattern_type: kafka_name(&binding.pattern_type),
            principal: binding.principal.clone(),
            host: binding.host.clone(),
            operation: kafka_name(&binding.operation),
            permission: kafka_name(&binding.permission),
        }
    }
}

impl AclText {
    /// Parses the entry. `at` is its index in the request, for the
    /// field of the error.
    fn binding(&self, at: usize) -> Result<AclBinding, AdminError> {
        let field = |name: &str| format!("acls/{at}/{name}");
        let code = |name: &str, text: &str| {
            AdminError::invalid(&field(name), format!("Invalid {name} {text:?}"))
        };
        let binding = AclBinding {
            resource_type: value_of(&self.resource_type)
                .ok_or_else(|| code("resource_type", &self.resource_type))?,
            resource_name: self.resource_name.clone(),
            pattern_type: value_of(&self.pattern_type)
                .ok_or_else(|| code("pattern_type", &self.pattern_type))?,
            principal: self.principal.clone(),
            host: self.host.clone(),
            operation: value_of(&self.operation)
                .ok_or_else(|| code("operation", &self.operation))?,
            permission: value_of(&self.permission)
                .ok_or_else(|| code("permission", &self.permission))?,
        };
        if binding.host.is_empty() {
            return Err(AdminError::invalid(&field("host"), "an address, or * for all"));
        }
        let codes = BindingCodes {
            resource_type: binding.resource_type.code(),
            resource_name: binding.resource_name,
            pattern_type: binding.pattern_type.code(),
            principal: binding.principal,
            host: binding.host,
            operation: binding.operation.code(),
            permission: binding.permission.code(),
        };
        AclBinding::try_from(codes).map_err(|error| {
            let name = match error {
                AclError::ClusterName | AclError::EmptyResourceName => "resource_name",
                AclError::Principal(_) => "principal",
                AclError::Code { .. } | AclError::UnknownFilter(_) => "resource_type",
            };
            AdminError::invalid(&field(name), error.to_string())
        })
    }
}

fn value_of<T: DeserializeOwned>(name: &str) -> Option<T> {
    let stored = name.to_ascii_lowercase();
    let stored: StrDeserializer<'_, ValueError> = stored.as_str().into_deserializer();
    T::deserialize(stored).ok()
}

impl ClusterAdmin {
    /// Lists the ACL entries.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
    pub async fn list_acls(&self) -> Result<Vec<AclText>, AdminError> {
        let mut bindings = self.metadata.list_acls().await?;
        bindings.sort();
        Ok(bindings.iter().map(AclText::from).collect())
    }

    /// Adds entries. Entries that exist already are no error.
    ///
    /// # Errors
    /// [`AdminError::Invalid`] and [`AdminError::LimitReached`], and then none was added;
    /// [`AdminError::NotFound`] where the cluster has no record; those of the metadata store.
    pub async fn add_acls(&self, acls: &[AclText]) -> Result<(), AdminError> {
        let bindings = bindings(acls)?;
        bindings.iter().enumerate().try_for_each(|(at, binding)| check_addition(at, binding))?;
        self.require_record().await?;
        self.metadata.add_acls(None, &bindings).await?;
        Ok(())
    }

    /// Removes entries. Entries that do not exist are no error.
    ///
    /// # Errors
    /// [`AdminError::Invalid`], and then none was removed; those of the metadata store.
    pub async fn remove_acls(&self, acls: &[AclText]) -> Result<(), AdminError> {
        self.metadata.remove_acls(None, &bindings(acls)?).await?;
        Ok(())
    }
}

/// What CreateAcls checks besides. An entry that an earlier release took can be removed without.
fn check_addition(at: usize, binding: &AclBinding) -> Result<(), AdminError> {
    check_acl(binding).map_err(|error| {
        let name = match &error {
            ClusterError::InvalidAcl(name) => name.replace(' ', "_"),
            _ => "resource_name".to_owned(),
        };
        AdminError::invalid(&format!("acls/{at}/{name}"), error.to_string())
    })
}

fn bindings(acls: &[AclText]) -> Result<Vec<AclBinding>, AdminError> {
    acls.iter().enumerate().map(|(at, acl)| acl.binding(at)).collect()
}
