//! Each rule by itself, then all of them against the plain reference.

use proptest::prelude::*;

use super::super::reference::{self, Question};
use super::*;

const HOST: &str = "10.0.0.1";

fn host() -> IpAddr {
    HOST.parse().unwrap()
}

/// Reads `allow|deny <type> literal|prefixed <name> <principal> <host> <operation>`.
fn acl(text: &str) -> AclBinding {
    let mut words = text.split(' ');
    let mut word = || words.next().unwrap();
    let permission = if word() == "deny" { Permission::Deny } else { Permission::Allow };
    let resource_type = match word() {
        "topic" => ResourceType::Topic,
        "group" => ResourceType::Group,
        other => panic!("{other}"),
    };
    let pattern_type =
        if word() == "prefixed" { PatternType::Prefixed } else { PatternType::Literal };
    let (resource_name, principal, host) = (word().into(), word().into(), word().into());
    let operation = serde_json::from_value(word().into()).unwrap();
    AclBinding {
        resource_type,
        resource_name,
        pattern_type,
        principal,
        host,
        operation,
        permission,
    }
}

fn index(acls: &[&str]) -> AclIndex {
    AclIndex::new(AuthorizerSettings::default(), acls.iter().map(|text| acl(text)))
}

fn may(index: &AclIndex, user: &str, operation: Operation, topic: &str) -> bool {
    index.authorize(&Principal::user(user), host(), operation, ResourceType::Topic, topic)
}

#[test]
fn nothing_said_means_no_unless_the_cluster_is_open() {
    assert!(!may(&index(&[]), "alice", Operation::Read, "orders"));
    let open = AuthorizerSettings {
        allow_everyone_if_no_acl_found: true,
        ..AuthorizerSettings::default()
    };
    let index = AclIndex::new(open, [acl("allow topic literal orders User:bob * read")]);
    assert!(may(&index, "alice", Operation::Read, "payments"));
    assert!(!may(&index, "alice", Operation::Read, "orders"), "bob's entry closes the topic");
    assert!(may(&index, "bob", Operation::Read, "orders"));
}

#[test]
fn literal_prefixed_and_wildcard_names_match() {
    for pattern in ["literal orders", "prefixed ord", "prefixed orders", "literal *"] {
        let index = index(&[&format!("allow topic {pattern} User:alice * read")]);
        assert!(may(&index, "alice", Operation::Read, "orders"), "{pattern}");
        assert!(!may(&index, "bob", Operation::Read, "orders"), "{pattern}");
        assert!(!may(&index, "alice", Operation::Write, "orders"), "{pattern}");
    }
    for pattern in ["literal ord", "prefixed orders2", "prefixed *", "literal Orders"] {
        let index = index(&[&format!("allow topic {pattern} User:alice * read")]);
        assert!(!may(&index, "alice", Operation::Read, "orders"), "{pattern}");
    }
}

#[test]
fn prefixes_need_not_end_at_a_characters_bound() {
    let index = index(&["allow topic prefixed aä User:alice * read"]);
    assert!(may(&index, "alice", Operation::Read, "aäö"));
    assert!(!may(&index, "alice", Operation::Read, "a€"));
}

#[test]
fn a_denial_wins_wherever_it_stands() {
    for denial in
        ["literal orders User:alice *", "prefixed o User:* *", "literal * User:* 10.0.0.1"]
    {
        let index = index(&[
            "allow topic literal orders User:alice * all",
            "allow topic literal * User:* * all",
            &format!("deny topic {denial} read"),
        ]);
        assert!(!may(&index, "alice", Operation::Read, "orders"), "{denial}");
        assert!(may(&index, "alice", Operation::Write, "orders"), "{denial}");
        assert!(may(&index, "alice", Operation::Describe, "orders"), "denials imply nothing");
    }
}

#[test]
fn allowances_imply_describing() {
    for operation in ["read", "write", "delete", "alter", "describe", "all"] {
        let index = index(&[&format!("allow topic literal orders User:alice * {operation}")]);
        assert!(may(&index, "alice", Operation::Describe, "orders"), "{operation}");
    }
    for operation in ["alter_configs", "describe_configs", "all"] {
        let index = index(&[&format!("allow topic literal orders User:alice * {operation}")]);
        assert!(may(&index, "alice", Operation::DescribeConfigs, "orders"), "{operation}");
    }
    let index = index(&["allow topic literal orders User:alice * create"]);
    assert!(!may(&index, "alice", Operation::Describe, "orders"));
    assert!(!may(&index, "alice", Operation::DescribeConfigs, "orders"));
}

#[test]
fn hosts_are_addresses() {
    let index = index(&[
        "allow topic literal a User:alice 10.0.0.1 read",
        "allow topic literal b User:alice ::1 read",
        "allow topic literal c User:alice localhost read",
    ]);
    let from = |host: &str, topic: &str| {
        let alice = Principal::user("alice");
        let host = host.parse().unwrap();
        index.authorize(&alice, host, Operation::Read, ResourceType::Topic, topic)
    };
    assert!(from("10.0.0.1", "a") && from("::ffff:10.0.0.1", "a") && !from("10.0.0.2", "a"));
    assert!(from("0:0:0:0:0:0:0:1", "b") && !from("::2", "b"));
    assert!(!from("127.0.0.1", "c"), "names are not resolved");
}

#[test]
fn types_of_resources_are_apart() {
    let index = index(&["allow group literal orders User:alice * read"]);
    assert!(!may(&index, "alice", Operation::Read, "orders"));
}

#[test]
fn super_users_may_do_everything() {
    let settings = AuthorizerSettings {
        super_users: parse_super_users(" User:root; User:admin;").unwrap(),
        allow_everyone_if_no_acl_found: false,
    };
    let index = AclIndex::new(settings, [acl("deny topic literal * User:* * all")]);
    assert!(may(&index, "root", Operation::Delete, "orders"));
    assert!(may(&index, "admin", Operation::Delete, "orders"));
    assert!(!may(&index, "alice", Operation::Delete, "orders"));
    let root = Principal::user("root");
    let topic = ResourceType::Topic;
    assert!(index.authorize_by_resource_type(&root, host(), Operation::Write, topic));
    assert!(parse_super_users("root").is_err());
    assert!(parse_super_users("").unwrap().is_empty());
}

fn may_some(acls: &[&str]) -> bool {
    let alice = Principal::user("alice");
    index(acls).authorize_by_resource_type(&alice, host(), Operation::Write, ResourceType::Topic)
}

/// The cases of KIP-679.
#[test]
fn writing_to_some_topic_needs_an_allowance_that_no_denial_dominates() {
    assert!(!may_some(&[]));
    assert!(may_some(&["allow topic literal orders User:alice * write"]));
    assert!(may_some(&["allow topic prefixed o User:alice * all"]));
    assert!(!may_some(&["allow topic literal orders User:bob * write"]));
    assert!(!may_some(&["allow topic literal orders User:alice 10.0.0.9 write"]));
    assert!(!may_some(&["allow group literal orders User:alice * write"]));
    let allowance = "allow topic literal orders User:alice * write";
    for denial in ["literal orders", "prefixed o", "prefixed orders", "literal *"] {
        assert!(!may_some(&[allowance, &format!("deny topic {denial} User:alice * write")]));
    }
    for denial in ["literal order", "prefixed orders2", "prefixed r"] {
        assert!(may_some(&[allowance, &format!("deny topic {denial} User:alice * write")]));
    }
    let prefix = "allow topic prefixed ord User:alice * write";
    assert!(may_some(&[prefix, "deny topic literal ord User:alice * write"]));
    assert!(may_some(&[prefix, "deny topic prefixed orders User:alice * write"]));
    assert!(!may_some(&[prefix, "deny topic prefixed o User:* * all"]));
    let wildcard = "allow topic literal * User:* * write";
    assert!(may_some(&[wildcard, "deny topic prefixed o User:alice * write"]));
}

#[test]
fn authorized_operations_are_bits() {
    let index = index(&["allow topic literal orders User:alice * read"]);
    let bits = |user: &str| {
        let user = Principal::user(user);
        index.authorized_operations(&user, host(), ResourceType::Topic, "orders")
    };
    assert_eq!(bits("alice"), 1 << 3 | 1 << 8, "read and describe");
    assert_eq!(bits("bob"), 0);
}

#[test]
fn filters_find_entries_in_order() {
    let index = index(&[
        "allow topic prefixed ord User:alice * read",
        "allow topic literal orders User:alice * read",
        "allow topic literal orders User:alice * read",
        "allow group literal orders User:alice * read",
    ]);
    assert_eq!(index.bindings().len(), 3, "repeated entries count once");
    let filter = AclFilter { resource_type: Some(ResourceType::Topic), ..AclFilter::default() };
    let names: Vec<&str> =
        index.matching(&filter).map(|binding| binding.resource_name.as_str()).collect();
    assert_eq!(names, ["ord", "orders"]);
}

fn any_principal() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["User:alice", "User:bob", "User:*", "Group:alice"])
        .prop_map(Into::into)
}

fn any_operation() -> impl Strategy<Value = Operation> {
    (2..=15_i8).prop_map(|code| Operation::from_code(code).unwrap())
}

/// Names over a small alphabet, so that prefixes of one another are common.
fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[abä*]{1,4}", 1 => Just("*".to_owned()), 1 => "hard(code)?"]
}

fn any_acl() -> impl Strategy<Value = AclBinding> {
    (
        prop::sample::select(vec![ResourceType::Topic, ResourceType::Group]),
        any_name(),
        prop::sample::select(vec![PatternType::Literal, PatternType::Prefixed]),
        any_principal(),
        prop::sample::select(vec!["*", HOST, "10.0.0.2", "somewhere"]),
        any_operation(),
        prop::sample::select(vec![Permission::Deny, Permission::Allow, Permission::Allow]),
    )
        .prop_map(
            |(
                resource_type,
                resource_name,
                pattern_type,
                principal,
                host,
                operation,
                permission,
            )| {
                AclBinding {
                    resource_type,
                    resource_name,
                    pattern_type,
                    principal,
                    host: host.into(),
                    operation,
                    permission,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_index_answers_as_the_reference_does(
        acls in prop::collection::vec(any_acl(), 0..24),
        open: bool,
        super_user: bool,
        asker in any_principal(),
        operation in any_operation(),
        names in prop::collection::vec(any_name(), 1..6),
    ) {
        let super_users = if super_user { "User:bob" } else { "" };
        let settings = AuthorizerSettings {
            super_users: parse_super_users(super_users).unwrap(),
            allow_everyone_if_no_acl_found: open,
        };
        let index = AclIndex::new(settings.clone(), acls.clone());
        let principal = Principal::parse(&asker).unwrap();
        let resource_type = ResourceType::Topic;
        let question = Question { principal: &principal, host: HOST, operation, resource_type };
        for name in names {
            prop_assert_eq!(
                index.authorize(&principal, host(), operation, resource_type, &name),
                reference::authorize(&settings, &acls, &question, &name),
                "{}", name
            );
        }
        prop_assert_eq!(
            index.authorize_by_resource_type(&principal, host(), operation, resource_type),
            reference::authorize_by_resource_type(&settings, &acls, &question)
        );
    }
}
