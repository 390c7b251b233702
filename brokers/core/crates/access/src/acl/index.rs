//! The ACL entries, indexed for the question that every request asks: may this principal do this?

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use super::binding::{covers, supported_operations};
use super::{AclFilter, WILDCARD, WILDCARD_PRINCIPAL};
use crate::principal::{Principal, PrincipalError};
use crate::types::{AclBinding, Operation, PatternType, Permission, ResourceType};

/// The settings of a cluster's authorizer.
#[derive(Debug, Clone, Default)]
pub struct AuthorizerSettings {
    /// The principals that may do everything, whatever the entries say (`super.users`).
    pub super_users: BTreeSet<Principal>,
    /// Whether everybody may use a resource to which no entry applies
    /// (`allow.everyone.if.no.acl.found`).
    pub allow_everyone_if_no_acl_found: bool,
}

/// Parses Kafka's `super.users`: principals that are separated by semicolons.
///
/// # Errors
/// [`PrincipalError`] where one of them has no colon.
pub fn parse_super_users(text: &str) -> Result<BTreeSet<Principal>, PrincipalError> {
    let users = text.split(';').map(str::trim).filter(|user| !user.is_empty());
    users.map(Principal::parse).collect()
}

/// An immutable set of entries. After a change of the entries a new one is built, which takes
/// microseconds per entry.
///
/// A question takes one look-up for the resource's own entries, one for those of the wildcard and
/// one for each distinct *length* of a prefix; then one for the principal. Hash maps are never
/// iterated, so their order has no effect.
pub struct AclIndex {
    settings: AuthorizerSettings,
    bindings: BTreeSet<AclBinding>,
    types: HashMap<ResourceType, TypeIndex>,
}

#[derive(Default)]
struct TypeIndex {
    /// Entries with literal names, of which the wildcard is one.
    literal: HashMap<Box<str>, PatternRules>,
    /// Entries with prefixes, by the bytes of the prefix.
    prefixed: HashMap<Box<[u8]>, PatternRules>,
    /// The distinct lengths of prefixes, in bytes.
    prefix_lengths: BTreeSet<usize>,
    /// The entries of each principal, for questions about any resource of the type.
    by_principal: HashMap<Box<str>, Vec<PatternRule>>,
}

/// The entries of one resource pattern.
#[derive(Default)]
struct PatternRules {
    by_principal: HashMap<Box<str>, Vec<Rule>>,
}

/// A rule, with the resource pattern of its entry.
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
    /// The entry has a host name. Kafka compares it with an address as text, so no client ever
    /// matches it.
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

/// What the entries that were looked at so far say together.
#[derive(Default)]
struct Findings {
    /// Whether any entry, of whichever principal, applies to the resource.
    resource_is_listed: bool,
    allowed: bool,
    denied: bool,
}

/// The principal that asks, and its address.
#[derive(Clone, Copy)]
struct Asker<'a> {
    principal: &'a Principal,
    host: IpAddr,
}

impl Asker<'_> {
    /// The principal names by which entries may apply to the asker, each once.
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

    /// The entries that apply to a resource.
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

    /// Returns whether an entry allows the asker the operation on at least one resource of this
    /// type. Such an entry does not count where one denial covers every resource that it names: a
    /// denial of the wildcard, of the same literal name, or of a prefix of its name. Only an entry
    /// for the operation itself or for All speaks: none is implied (Kafka's
    /// `Authorizer.authorizeByResourceType`). The caller has let super users pass before.
    fn allows_on_some_resource(&self, asker: Asker<'_>, operation: Operation) -> bool {
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
    /// Indexes entries. An entry that comes twice counts once.
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

    /// Whether a principal at an address may do an operation on a resource.
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

    /// Whether a principal at an address may do an operation on at least one resource of a type
    /// (KIP-679: a principal that may write to any topic may write idempotently).
    pub fn authorize_by_resource_type(
        &self,
        principal: &Principal,
        host: IpAddr,
        operation: Operation,
        resource_type: ResourceType,
    ) -> bool {
        // Kafka asks about a resource with this very name first, by which super users and open
        // clusters pass.
        if self.authorize(principal, host, operation, resource_type, "hardcode") {
            return true;
        }
        let asker = Asker { principal, host: host.to_canonical() };
        self.types
            .get(&resource_type)
            .is_some_and(|index| index.allows_on_some_resource(asker, operation))
    }

    /// The operations that a principal may do on a resource, as the bit field that Metadata,
    /// DescribeCluster and DescribeGroups report: bit n stands for the operation with code n.
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
