//! The entries, indexed for the question that every request asks.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use super::binding::{covers, supported_operations};
use super::{AclFilter, WILDCARD, WILDCARD_PRINCIPAL};
use crate::principal::{Principal, PrincipalError};
use crate::types::{AclBinding, Operation, PatternType, Permission, ResourceType};

/// How the authorizer of a cluster is set up.
#[derive(Debug, Clone, Default)]
pub struct AuthorizerSettings {
    /// May do everything, whatever the entries say (`super.users`).
    pub super_users: BTreeSet<Principal>,
    /// Whether a resource of which no entry speaks is open to all
    /// (`allow.everyone.if.no.acl.found`).
    pub allow_everyone_if_no_acl_found: bool,
}

/// Reads Kafka's `super.users`: principals separated by semicolons.
///
/// # Errors
/// Where one of them has no colon.
pub fn parse_super_users(text: &str) -> Result<BTreeSet<Principal>, PrincipalError> {
    let users = text.split(';').map(str::trim).filter(|user| !user.is_empty());
    users.map(Principal::parse).collect()
}

/// An immutable set of entries; a change makes a new one. Building costs microseconds an entry.
///
/// A question costs one look-up for the resource's own entries, one for the wildcard's and one for
/// each distinct *length* of a prefix; then one for the principal. Hash maps are only asked,
/// never iterated.
pub struct AclIndex {
    settings: AuthorizerSettings,
    bindings: BTreeSet<AclBinding>,
    types: HashMap<ResourceType, TypeIndex>,
}

#[derive(Default)]
struct TypeIndex {
    /// Entries of literal names; the wildcard is one of them.
    literal: HashMap<Box<str>, PatternRules>,
    /// Entries of prefixes, by the bytes of the prefix.
    prefixed: HashMap<Box<[u8]>, PatternRules>,
    /// The distinct lengths of prefixes, in bytes.
    prefix_lengths: BTreeSet<usize>,
    /// Every entry of a principal, for questions about any resource of the type.
    by_principal: HashMap<Box<str>, Vec<PatternRule>>,
}

/// The entries of one resource pattern.
#[derive(Default)]
struct PatternRules {
    by_principal: HashMap<Box<str>, Vec<Rule>>,
}

/// A rule with the resource pattern it is of.
struct PatternRule {
    pattern: PatternType,
    name: Box<str>,
    rule: Rule,
}

#[derive(Clone, Copy)]
struct Rule {
    host: HostRule,
    operation: Operation,
    permission: Permission,
}

#[derive(Clone, Copy)]
enum HostRule {
    Any,
    Address(IpAddr),
    /// A name: Kafka compares addresses as text, so no client ever matches it.
    Never,
}

impl Rule {
    fn new(binding: &AclBinding) -> Self {
        let host = if binding.host == WILDCARD {
            HostRule::Any
        } else {
            let address = binding.host.parse::<IpAddr>();
            address.map_or(HostRule::Never, |address| HostRule::Address(address.to_canonical()))
        };
        Self { host, operation: binding.operation, permission: binding.permission }
    }

    fn matches_host(&self, host: IpAddr) -> bool {
        match self.host {
            HostRule::Any => true,
            HostRule::Address(address) => address == host,
            HostRule::Never => false,
        }
    }
}

/// What the entries met so far amount to.
#[derive(Default)]
struct Findings {
    /// Some entry, of whomever, speaks about the resource.
    resource_is_listed: bool,
    allowed: bool,
    denied: bool,
}

/// Who asks from where.
#[derive(Clone, Copy)]
struct Asker<'a> {
    principal: &'a Principal,
    host: IpAddr,
}

impl Asker<'_> {
    /// The names under which entries may speak about the asker, each once.
    fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.principal.as_str();
        let wildcard = (own != WILDCARD_PRINCIPAL).then_some(WILDCARD_PRINCIPAL);
        std::iter::once(own).chain(wildcard)
    }
}

impl PatternRules {
    fn judge(&self, asker: Asker<'_>, operation: Operation, findings: &mut Findings) {
        findings.resource_is_listed = true;
        for rule in asker.names().filter_map(|name| self.by_principal.get(name)).flatten() {
            if rule.matches_host(asker.host) && covers(rule.permission, rule.operation, operation) {
                match rule.permission {
                    Permission::Allow => findings.allowed = true,
                    Permission::Deny => findings.denied = true,
                }
            }
        }
    }
}

impl TypeIndex {
    fn insert(&mut self, binding: &AclBinding) {
        let rule = Rule::new(binding);
        let name = binding.resource_name.as_str();
        let rules = match binding.pattern_type {
            PatternType::Literal => self.literal.entry(name.into()).or_default(),
            PatternType::Prefixed => {
                self.prefix_lengths.insert(name.len());
                self.prefixed.entry(name.as_bytes().into()).or_default()
            }
        };
        rules.by_principal.entry(binding.principal.as_str().into()).or_default().push(rule);
        let of_principal = self.by_principal.entry(binding.principal.as_str().into()).or_default();
        of_principal.push(PatternRule { pattern: binding.pattern_type, name: name.into(), rule });
    }

    /// The entries that speak about a resource.
    fn matching(&self, name: &str) -> impl Iterator<Item = &PatternRules> {
        let wildcard = (name != WILDCARD).then_some(WILDCARD);
        let literal = std::iter::once(name).chain(wildcard);
        let prefixes = self.prefix_lengths.range(..=name.len());
        literal
            .filter_map(|name| self.literal.get(name))
            .chain(prefixes.filter_map(|length| self.prefixed.get(&name.as_bytes()[..*length])))
    }

    fn judge(&self, asker: Asker<'_>, operation: Operation, name: &str) -> Findings {
        let mut findings = Findings::default();
        for rules in self.matching(name) {
            rules.judge(asker, operation, &mut findings);
            if findings.denied {
                break;
            }
        }
        findings
    }

    /// Whether some allowance of the asker is dominated by no denial. Implied operations do not
    /// count here (Kafka's `Authorizer.authorizeByResourceType`).
    fn allows_some(&self, asker: Asker<'_>, operation: Operation) -> bool {
        let mut denied = (BTreeSet::new(), BTreeSet::new());
        let mut allowed = Vec::new();
        let entries = asker.names().filter_map(|name| self.by_principal.get(name)).flatten();
        for PatternRule { pattern, name, rule } in entries {
            let speaks = rule.operation == Operation::All || rule.operation == operation;
            if !speaks || !rule.matches_host(asker.host) {
                continue;
            }
            match (rule.permission, pattern) {
                (Permission::Allow, _) => allowed.push((*pattern, &**name)),
                (Permission::Deny, PatternType::Literal) if &**name == WILDCARD => return false,
                (Permission::Deny, PatternType::Literal) => _ = denied.0.insert(&**name),
                (Permission::Deny, PatternType::Prefixed) => _ = denied.1.insert(&**name),
            }
        }
        let (denied_literals, denied_prefixes) = denied;
        allowed.into_iter().any(|(pattern, name)| {
            if pattern == PatternType::Literal {
                if name == WILDCARD {
                    return true;
                }
                if denied_literals.contains(name) {
                    return false;
                }
            }
            let mut prefixes =
                name.char_indices().map(|(at, character)| &name[..at + character.len_utf8()]);
            !prefixes.any(|prefix| denied_prefixes.contains(prefix))
        })
    }
}

impl AclIndex {
    /// Indexes entries. Repeated ones count once.
    pub fn new(
        settings: AuthorizerSettings,
        bindings: impl IntoIterator<Item = AclBinding>,
    ) -> Self {
        let bindings: BTreeSet<AclBinding> = bindings.into_iter().collect();
        let mut types: HashMap<ResourceType, TypeIndex> = HashMap::new();
        for binding in &bindings {
            types.entry(binding.resource_type).or_default().insert(binding);
        }
        Self { settings, bindings, types }
    }

    /// Whether a principal at an address may do something to a resource.
    pub fn authorize(
        &self,
        principal: &Principal,
        host: IpAddr,
        operation: Operation,
        resource_type: ResourceType,
        name: &str,
    ) -> bool {
        if self.settings.super_users.contains(principal) {
            return true;
        }
        let asker = Asker { principal, host: host.to_canonical() };
        let findings = self
            .types
            .get(&resource_type)
            .map(|index| index.judge(asker, operation, name))
            .unwrap_or_default();
        if findings.resource_is_listed {
            findings.allowed && !findings.denied
        } else {
            self.settings.allow_everyone_if_no_acl_found
        }
    }

    /// Whether a principal at an address may do something to at least one resource of a type
    /// (KIP-679: who may write to any topic may write idempotently).
    pub fn authorize_by_resource_type(
        &self,
        principal: &Principal,
        host: IpAddr,
        operation: Operation,
        resource_type: ResourceType,
    ) -> bool {
        // Kafka asks for a resource of this very name first: super users and open clusters pass.
        if self.authorize(principal, host, operation, resource_type, "hardcode") {
            return true;
        }
        let asker = Asker { principal, host: host.to_canonical() };
        self.types.get(&resource_type).is_some_and(|index| index.allows_some(asker, operation))
    }

    /// The operations that a principal may do to a resource, as the bit field that Metadata,
    /// DescribeCluster and DescribeGroups report: bit n for the operation with code n.
    pub fn authorized_operations(
        &self,
        principal: &Principal,
        host: IpAddr,
        resource_type: ResourceType,
        name: &str,
    ) -> i32 {
        supported_operations(resource_type)
            .iter()
            .filter(|operation| self.authorize(principal, host, **operation, resource_type, name))
            .fold(0, |bits, operation| bits | 1 << (*operation as i8))
    }

    /// The entries that a filter matches, sorted.
    pub fn matching(&self, filter: &AclFilter) -> impl Iterator<Item = &AclBinding> {
        self.bindings.iter().filter(|binding| filter.matches(binding))
    }

    /// Every entry, sorted.
    pub fn bindings(&self) -> &BTreeSet<AclBinding> {
        &self.bindings
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
