//! The rules of Kafka's authorizer in their simplest form: it looks at every entry and has no
//! index. Tests compare the index with it.

use super::AuthorizerSettings;
use crate::principal::Principal;
use crate::types::{AclBinding, Operation, PatternType, Permission, ResourceType};

pub struct Question<'a> {
    pub principal: &'a Principal,
    pub host: &'a str,
    pub operation: Operation,
    pub resource_type: ResourceType,
}

fn speaks_about_asker(acl: &AclBinding, question: &Question<'_>) -> bool {
    let principal = acl.principal == question.principal.as_str() || acl.principal == "User:*";
    let host = acl.host == question.host || acl.host == "*";
    principal && host
}

fn speaks_about_operation(acl: &AclBinding, requested: Operation) -> bool {
    if acl.operation == Operation::All {
        return true;
    }
    let mut granting = vec![requested];
    if acl.permission == Permission::Allow {
        if requested == Operation::Describe {
            granting.push(Operation::Read);
            granting.push(Operation::Write);
            granting.push(Operation::Delete);
            granting.push(Operation::Alter);
        }
        if requested == Operation::DescribeConfigs {
            granting.push(Operation::AlterConfigs);
        }
    }
    granting.contains(&acl.operation)
}

fn speaks_about_resource(acl: &AclBinding, name: &str) -> bool {
    match acl.pattern_type {
        PatternType::Literal => acl.resource_name == name || acl.resource_name == "*",
        PatternType::Prefixed => name.starts_with(&acl.resource_name),
    }
}

pub fn authorize(
    settings: &AuthorizerSettings,
    acls: &[AclBinding],
    question: &Question<'_>,
    name: &str,
) -> bool {
    if settings.super_users.contains(question.principal) {
        return true;
    }
    let mut of_resource = Vec::new();
    for acl in acls {
        if acl.resource_type == question.resource_type && speaks_about_resource(acl, name) {
            of_resource.push(acl);
        }
    }
    if of_resource.is_empty() {
        return settings.allow_everyone_if_no_acl_found;
    }
    let mut allowed = false;
    for acl in of_resource {
        if speaks_about_asker(acl, question) && speaks_about_operation(acl, question.operation) {
            if acl.permission == Permission::Deny {
                return false;
            }
            allowed = true;
        }
    }
    allowed
}

pub fn authorize_by_resource_type(
    settings: &AuthorizerSettings,
    acls: &[AclBinding],
    question: &Question<'_>,
) -> bool {
    if authorize(settings, acls, question, "hardcode") {
        return true;
    }
    let mut relevant = Vec::new();
    for acl in acls {
        if acl.resource_type == question.resource_type
            && speaks_about_asker(acl, question)
            && (acl.operation == question.operation || acl.operation == Operation::All)
        {
            relevant.push(acl);
        }
    }
    let is_wildcard =
        |acl: &AclBinding| acl.pattern_type == PatternType::Literal && acl.resource_name == "*";
    if relevant.iter().any(|acl| acl.permission == Permission::Deny && is_wildcard(acl)) {
        return false;
    }
    relevant.iter().filter(|acl| acl.permission == Permission::Allow).any(|allow| {
        is_wildcard(allow)
            || !relevant.iter().filter(|acl| acl.permission == Permission::Deny).any(|deny| {
                match deny.pattern_type {
                    PatternType::Literal => {
                        allow.pattern_type == PatternType::Literal
                            && allow.resource_name == deny.resource_name
                    }
                    PatternType::Prefixed => allow.resource_name.starts_with(&deny.resource_name),
                }
            })
    })
}
