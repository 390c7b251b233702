"""Who may do what, and how much: authentication, passwords, ACLs, quotas."""

from __future__ import annotations

from typing import Any

from tests.protocol.connection import ClosedError, Connection
from tests.protocol.dialogue import ApiScenarios, Dialogue, Scenarios
from tests.protocol.world import (
    ABSENT,
    ALLOW,
    ITERATIONS,
    LITERAL,
    QUOTA_BYTES,
    QUOTA_USER,
    READ,
    RESOURCE_TOPIC,
    SCRAM_SHA_256,
    TOPIC,
    USER,
    acl,
)

ANY, UNKNOWN = 1, 0
UNKNOWN_MECHANISM = 9
EXACT, UNKNOWN_MATCH = 0, 9
MECHANISMS = {"PLAIN", "SCRAM-SHA-256"}


def handshake_succeeds(dialogue: Dialogue) -> None:
    """Version 0 is followed by bare tokens, version 1 by SaslAuthenticate."""
    account = dialogue.world.place.root
    token = f"\0{account.user}\0{account.password}".encode()
    with Connection(dialogue.world.place.address, dialogue.world.place.codec) as connection:
        answer = dialogue.ask_on(connection, {"Mechanism": "PLAIN"})
        assert set(answer["Mechanisms"]) >= MECHANISMS
        if dialogue.version == 0:
            connection.send_frame(token)
            assert connection.receive_frame() == b""
        else:
            connection.ask("SaslAuthenticate", 2, {"AuthBytes": token})
        answer = connection.ask("Metadata", 12, {"Topics": [{"Name": TOPIC}]})
        assert answer["Topics"][0]["ErrorCode"] == 0


def handshake_fails(dialogue: Dialogue) -> None:
    """A mechanism that is not offered; the connection ends after the answer."""
    with Connection(dialogue.world.place.address, dialogue.world.place.codec) as connection:
        answer = dialogue.ask_on(connection, {"Mechanism": "GSSAPI"})
        assert dialogue.errors(answer) == {"UNSUPPORTED_SASL_MECHANISM"}
        assert set(answer["Mechanisms"]) >= MECHANISMS
        assert is_closed(connection)


def is_closed(connection: Connection) -> bool:
    """Waits for the end of a connection; whether nothing came before it."""
    try:
        connection.receive_frame()
    except ClosedError:
        return True
    return False


def authenticate_succeeds(dialogue: Dialogue) -> None:
    """PLAIN, and the first of SCRAM's two steps."""
    account = dialogue.world.place.root
    plain = f"\0{account.user}\0{account.password}".encode()
    scram = f"n,,n={USER},r=nonce".encode()
    for mechanism, token in (("PLAIN", plain), ("SCRAM-SHA-256", scram)):
        with Connection(dialogue.world.place.address, dialogue.world.place.codec) as connection:
            connection.ask("SaslHandshake", 1, {"Mechanism": mechanism})
            answer = dialogue.ask_on(connection, {"AuthBytes": token})
            assert not answer["ErrorMessage"]
            assert answer.get("SessionLifetimeMs", 0) == 0
            expected = b"" if mechanism == "PLAIN" else b"r=nonce"
            assert answer["AuthBytes"].startswith(expected)
            assert bool(answer["AuthBytes"]) == bool(expected)


def authenticate_fails(dialogue: Dialogue) -> None:
    """A wrong password; the connection ends after the answer."""
    with Connection(dialogue.world.place.address, dialogue.world.place.codec) as connection:
        connection.ask("SaslHandshake", 1, {"Mechanism": "PLAIN"})
        answer = dialogue.ask_on(connection, {"AuthBytes": b"\0root\0wrong"})
        assert dialogue.errors(answer) == {"SASL_AUTHENTICATION_FAILED"}
        assert answer["ErrorMessage"]
        assert answer["AuthBytes"] == b""
        assert is_closed(connection)


def acl_filter(topic: str, **changes: object) -> dict[str, Any]:
    """What finds the ACLs of a topic."""
    return {
        "ResourceTypeFilter": RESOURCE_TOPIC,
        "ResourceNameFilter": topic,
        "PatternTypeFilter": LITERAL,
        "PrincipalFilter": None,
        "HostFilter": None,
        "Operation": ANY,
        "PermissionType": ANY,
        **changes,
    }


def describe_acls_succeeds(dialogue: Dialogue) -> None:
    """The ACL that is there."""
    answer = dialogue.ask(acl_filter(TOPIC))
    assert not answer["ErrorMessage"]
    (resource,) = answer["Resources"]
    kind = (resource["ResourceType"], resource["ResourceName"], resource["PatternType"])
    assert kind == (RESOURCE_TOPIC, TOPIC, LITERAL)
    user = {"Principal": f"User:{QUOTA_USER}", "Host": "*"}
    assert resource["Acls"] == [{**user, "Operation": READ, "PermissionType": ALLOW}]
    assert dialogue.ask(acl_filter(ABSENT))["Resources"] == []


def describe_acls_fails(dialogue: Dialogue) -> None:
    """A user without rights."""
    answer = dialogue.ask_as(dialogue.world.place.nobody, acl_filter(TOPIC))
    assert dialogue.errors(answer) == {"CLUSTER_AUTHORIZATION_FAILED"}
    assert answer["ErrorMessage"]
    assert answer["Resources"] == []


def create_acls_succeeds(dialogue: Dialogue) -> None:
    """Two at once; then they are there."""
    topics = [dialogue.world.name("topic") for _ in range(2)]
    answer = dialogue.ask({"Creations": [acl(topic) for topic in topics]})
    assert not any(result["ErrorMessage"] for result in answer["Results"])
    for topic in topics:
        expect_acl(dialogue, topic)


def expect_acl(dialogue: Dialogue, topic: str) -> None:
    """Asserts that a topic has one ACL."""

    def has_one() -> bool:
        return len(dialogue.world.ask("DescribeAcls", acl_filter(topic))["Resources"]) == 1

    dialogue.world.expect(has_one, f"an ACL of {topic}")


def create_acls_fails(dialogue: Dialogue) -> None:
    """One that cannot be, beside one that can."""
    topic = dialogue.world.name("topic")
    bad = {**acl(topic), "Principal": "somebody"}
    answer = dialogue.ask({"Creations": [bad, acl(topic)]})
    assert dialogue.errors(answer) == {"INVALID_REQUEST"}
    refused, made = answer["Results"]
    assert refused["ErrorMessage"]
    assert made["ErrorCode"] == 0


def delete_acls_succeeds(dialogue: Dialogue) -> None:
    """One that is there is named in the answer; a filter that finds none is no error."""
    topic = dialogue.world.name("topic")
    dialogue.world.ask("CreateAcls", {"Creations": [acl(topic)]})
    expect_acl(dialogue, topic)
    answer = dialogue.ask({"Filters": [acl_filter(topic), acl_filter(ABSENT)]})
    deleted, nothing = answer["FilterResults"]
    assert nothing["MatchingAcls"] == []
    (match,) = deleted["MatchingAcls"]
    entry = acl(topic)
    entry["PatternType"] = entry.pop("ResourcePatternType")
    assert not match.pop("ErrorMessage")
    assert match == {**entry, "ErrorCode": 0}


def delete_acls_fails(dialogue: Dialogue) -> None:
    """A user without rights."""
    body = {"Filters": [acl_filter(TOPIC)]}
    answer = dialogue.ask_as(dialogue.world.place.nobody, body)
    assert dialogue.errors(answer) == {"CLUSTER_AUTHORIZATION_FAILED"}
    assert answer["FilterResults"][0]["MatchingAcls"] == []


def quota_filter(user: str, match: int = EXACT, kind: str = "user") -> dict[str, Any]:
    """What finds the quota of a user."""
    component = {"EntityType": kind, "MatchType": match, "Match": user}
    return {"Components": [component], "Strict": True}


def describe_quotas_succeeds(dialogue: Dialogue) -> None:
    """The quota that is there; a user without one."""
    answer = dialogue.ask(quota_filter(QUOTA_USER))
    assert not answer["ErrorMessage"]
    entity = {"EntityType": "user", "EntityName": QUOTA_USER}
    values = {"Key": "producer_byte_rate", "Value": QUOTA_BYTES}
    assert answer["Entries"] == [{"Entity": [entity], "Values": [values]}]
    assert dialogue.ask(quota_filter(ABSENT))["Entries"] == []


def describe_quotas_fails(dialogue: Dialogue) -> None:
    """A kind of match that does not exist."""
    answer = dialogue.ask(quota_filter(QUOTA_USER, UNKNOWN_MATCH))
    assert dialogue.errors(answer) == {"INVALID_REQUEST"}
    assert answer["Entries"] is None


def alter_quotas_body(*users: str, key: str = "consumer_byte_rate") -> dict[str, Any]:
    """A request that sets a quota of users."""
    entries = [
        {
            "Entity": [{"EntityType": "user", "EntityName": user}],
            "Ops": [{"Key": key, "Value": QUOTA_BYTES, "Remove": False}],
        }
        for user in users
    ]
    return {"Entries": entries, "ValidateOnly": False}


def alter_quotas_succeeds(dialogue: Dialogue) -> None:
    """Quotas of two users; then they are there."""
    users = [dialogue.world.name("user") for _ in range(2)]
    answer = dialogue.ask(alter_quotas_body(*users))
    entities = [entry["Entity"] for entry in answer["Entries"]]
    assert sorted(entity["EntityName"] for (entity,) in entities) == sorted(users)
    assert not any(entry["ErrorMessage"] for entry in answer["Entries"])
    for user in users:
        expect_quota(dialogue, user)


def expect_quota(dialogue: Dialogue, user: str) -> None:
    """Asserts that a user has the quota that was set."""

    def has_it() -> bool:
        entries = dialogue.world.ask("DescribeClientQuotas", quota_filter(user))["Entries"]
        return [entry["Values"][0]["Value"] for entry in entries] == [QUOTA_BYTES]

    dialogue.world.expect(has_it, f"a quota of {user}")


def alter_quotas_fails(dialogue: Dialogue) -> None:
    """A quota that does not exist."""
    answer = dialogue.ask(alter_quotas_body(dialogue.world.name("user"), key="speed"))
    assert dialogue.errors(answer) == {"INVALID_REQUEST"}
    assert answer["Entries"][0]["ErrorMessage"]


def describe_scram_succeeds(dialogue: Dialogue) -> None:
    """One user, and all."""
    for users in ([{"Name": USER}], None):
        answer = dialogue.ask({"Users": users})
        assert not answer["ErrorMessage"]
        (result,) = [result for result in answer["Results"] if result["User"] == USER]
        info = {"Mechanism": SCRAM_SHA_256, "Iterations": ITERATIONS}
        assert result["CredentialInfos"] == [info]
        assert not result["ErrorMessage"]


def describe_scram_fails(dialogue: Dialogue) -> None:
    """A user that does not exist, and one that is named twice."""
    answer = dialogue.ask({"Users": [{"Name": ABSENT}, {"Name": USER}, {"Name": USER}]})
    assert dialogue.errors(answer) == {"RESOURCE_NOT_FOUND", "DUPLICATE_RESOURCE"}
    for result in answer["Results"]:
        assert result["CredentialInfos"] == []
        assert result["ErrorMessage"]


def scram_upsertion(user: str, **changes: object) -> dict[str, Any]:
    """A user's new password."""
    return {
        "Name": user,
        "Mechanism": SCRAM_SHA_256,
        "Iterations": ITERATIONS,
        "Salt": b"0123456789abcdef",
        "SaltedPassword": b"p" * 32,
        **changes,
    }


def alter_scram_succeeds(dialogue: Dialogue) -> None:
    """Two users get passwords; one loses it again."""
    users = [dialogue.world.name("user") for _ in range(2)]
    answer = dialogue.ask({"Upsertions": [scram_upsertion(user) for user in users]})
    assert {result["User"] for result in answer["Results"]} == set(users)
    deletion = {"Name": users[0], "Mechanism": SCRAM_SHA_256}
    (result,) = dialogue.ask({"Deletions": [deletion]})["Results"]
    assert (result["User"], result["ErrorCode"]) == (users[0], 0)
    assert not result["ErrorMessage"]


def alter_scram_fails(dialogue: Dialogue) -> None:
    """A user that does not exist, an unknown mechanism, too few iterations."""
    name = dialogue.world.name("user")
    deletion = {"Name": ABSENT, "Mechanism": SCRAM_SHA_256}
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"Deletions": [deletion]}, "RESOURCE_NOT_FOUND"),
        (
            {"Upsertions": [scram_upsertion(name, Mechanism=UNKNOWN_MECHANISM)]},
            "UNSUPPORTED_SASL_MECHANISM",
        ),
        ({"Upsertions": [scram_upsertion(name, Iterations=1)]}, "UNACCEPTABLE_CREDENTIAL"),
    ]
    for body, error in refusals:
        answer = dialogue.ask(body)
        assert dialogue.errors(answer) == {error}
        assert answer["Results"][0]["ErrorMessage"]


APIS: ApiScenarios = {
    "SaslHandshake": Scenarios(handshake_succeeds, handshake_fails, replayed=False),
    "SaslAuthenticate": Scenarios(authenticate_succeeds, authenticate_fails, replayed=False),
    "DescribeAcls": Scenarios(describe_acls_succeeds, describe_acls_fails),
    "CreateAcls": Scenarios(create_acls_succeeds, create_acls_fails),
    "DeleteAcls": Scenarios(delete_acls_succeeds, delete_acls_fails),
    "DescribeClientQuotas": Scenarios(describe_quotas_succeeds, describe_quotas_fails),
    "AlterClientQuotas": Scenarios(alter_quotas_succeeds, alter_quotas_fails),
    "DescribeUserScramCredentials": Scenarios(describe_scram_succeeds, describe_scram_fails),
    "AlterUserScramCredentials": Scenarios(alter_scram_succeeds, alter_scram_fails),
}
