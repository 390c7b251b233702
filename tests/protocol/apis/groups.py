"""Groups: their members, and the offsets that they commit."""

from __future__ import annotations

from typing import Any

from tests.protocol.connection import CLIENT_ID
from tests.protocol.dialogue import ApiScenarios, Dialogue, Scenarios
from tests.protocol.world import (
    ABSENT,
    ASSIGNMENT,
    COMMIT_METADATA,
    COMMITTED,
    GROUP,
    REBALANCE_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    SUBSCRIPTION,
    TOPIC,
)

UNKNOWN_MEMBER = "nobody-knows-it"
GROUP_KEY, UNKNOWN_KEY_TYPE = 0, 9
MEMBER_ID_REQUIRED_FROM, STATIC_FROM, PROTOCOL_TYPE_FROM = 4, 5, 7
METADATA_BYTES_TOO_MANY = 5000
NO_OPERATIONS = -(1 << 31)


def find_coordinator_body(
    dialogue: Dialogue, keys: list[str], kind: int = GROUP_KEY
) -> dict[str, Any]:
    """A request for the coordinators of keys; of the first alone, where a version takes one."""
    if dialogue.has("CoordinatorKeys"):
        return {"CoordinatorKeys": keys, "KeyType": kind}
    return {"Key": keys[0], "KeyType": kind}


def find_coordinator_succeeds(dialogue: Dialogue) -> None:
    """The coordinators of groups are the broker that is asked."""
    keys = [GROUP, "another"]
    answer = dialogue.ask(find_coordinator_body(dialogue, keys))
    host, _, port = dialogue.world.place.address.rpartition(":")
    found_at = answer.get("Coordinators", [answer])
    for coordinator in found_at:
        assert (coordinator["Host"], coordinator["Port"]) == (host, int(port))
        assert coordinator["NodeId"] >= 0
        assert coordinator.get("ErrorMessage") in {None, "", "NONE"}
    if dialogue.has("CoordinatorKeys"):
        assert [coordinator["Key"] for coordinator in found_at] == keys


def find_coordinator_fails(dialogue: Dialogue) -> None:
    """A kind of coordinator that does not exist."""
    answer = dialogue.ask(find_coordinator_body(dialogue, [GROUP], UNKNOWN_KEY_TYPE))
    assert dialogue.errors(answer) == {"INVALID_REQUEST"}


def join_body(group: str, member: str = "", **changes: object) -> dict[str, Any]:
    """A request to join a group as a consumer."""
    return {
        "GroupId": group,
        "SessionTimeoutMs": SESSION_TIMEOUT_MS,
        "RebalanceTimeoutMs": REBALANCE_TIMEOUT_MS,
        "MemberId": member,
        "ProtocolType": "consumer",
        "Protocols": [
            {"Name": "range", "Metadata": SUBSCRIPTION},
            {"Name": "roundrobin", "Metadata": SUBSCRIPTION},
        ],
        **changes,
    }


def join_succeeds(dialogue: Dialogue) -> None:
    """The first member of a group, which leads it; also a static one."""
    group, member = dialogue.world.name("group"), ""
    if dialogue.version >= MEMBER_ID_REQUIRED_FROM:
        answer = dialogue.ask(join_body(group))
        assert dialogue.errors(answer) == {"MEMBER_ID_REQUIRED"}
        assert answer["GenerationId"] == -1
        member = answer["MemberId"]
    answer = dialogue.ask(join_body(group, member))
    check_first_member(dialogue, answer, None)
    if member:
        assert answer["MemberId"] == member
    if dialogue.version >= STATIC_FROM:
        answer = dialogue.ask(join_body(dialogue.world.name("group"), GroupInstanceId="fixed"))
        check_first_member(dialogue, answer, "fixed")


def check_first_member(dialogue: Dialogue, answer: dict[str, Any], instance: str | None) -> None:
    """The answer to a group's first member."""
    assert dialogue.errors(answer) == set()
    assert answer["GenerationId"] == 1
    assert answer["ProtocolName"] == "range"
    assert answer["Leader"] == answer["MemberId"]
    assert answer.get("ProtocolType", "consumer") == "consumer"
    assert answer.get("SkipAssignment", False) is False
    (listed,) = answer["Members"]
    assert listed["MemberId"] == answer["MemberId"]
    assert listed["Metadata"] == SUBSCRIPTION
    if dialogue.version >= STATIC_FROM:
        assert listed["GroupInstanceId"] == instance


def join_fails(dialogue: Dialogue) -> None:
    """Members that are unknown, and what a group does not take."""
    refusals = [
        (join_body(GROUP, UNKNOWN_MEMBER), "UNKNOWN_MEMBER_ID"),
        (join_body(GROUP, SessionTimeoutMs=1), "INVALID_SESSION_TIMEOUT"),
        (join_body(GROUP, ProtocolType="connect"), "INCONSISTENT_GROUP_PROTOCOL"),
        (join_body(""), "INVALID_GROUP_ID"),
    ]
    for body, error in refusals:
        answer = dialogue.ask(body)
        assert dialogue.errors(answer) == {error}
        assert answer["Members"] == []
        assert not answer["ProtocolName"]


def sync_body(group: str, member: str, generation: int, **changes: object) -> dict[str, Any]:
    """A request for a member's assignment, by the member that leads."""
    return {
        "GroupId": group,
        "GenerationId": generation,
        "MemberId": member,
        "Assignments": [{"MemberId": member, "Assignment": ASSIGNMENT}],
        **changes,
    }


def sync_succeeds(dialogue: Dialogue) -> None:
    """The assignment that the leader made."""
    group = dialogue.world.name("group")
    joined = dialogue.world.settle("JoinGroup", join_body(group), 3)
    protocol = {"ProtocolType": "consumer", "ProtocolName": "range"}
    body = sync_body(group, joined["MemberId"], joined["GenerationId"], **protocol)
    answer = dialogue.ask(body)
    assert answer["Assignment"] == ASSIGNMENT
    for name, value in protocol.items():
        assert answer.get(name, value) == value


def sync_fails(dialogue: Dialogue) -> None:
    """Members and generations that are unknown, and another protocol."""
    world = dialogue.world
    protocol = {"ProtocolType": "consumer", "ProtocolName": "range"}
    if not dialogue.has("ProtocolName"):
        protocol = {}
    refusals = [
        (sync_body(ABSENT, UNKNOWN_MEMBER, 1, **protocol), "UNKNOWN_MEMBER_ID"),
        (sync_body(GROUP, UNKNOWN_MEMBER, world.generation, **protocol), "UNKNOWN_MEMBER_ID"),
        (sync_body(GROUP, world.member, world.generation + 1, **protocol), "ILLEGAL_GENERATION"),
    ]
    if protocol:
        other = {**protocol, "ProtocolName": "sticky"}
        body = sync_body(GROUP, world.member, world.generation, **other)
        refusals.append((body, "INCONSISTENT_GROUP_PROTOCOL"))
    for body, error in refusals:
        answer = dialogue.ask(body)
        assert dialogue.errors(answer) == {error}
        assert answer["Assignment"] == b""


def sync_without_protocol_fails(dialogue: Dialogue) -> None:
    """From version 5 on a member must say which protocol it means."""
    body = sync_body(GROUP, dialogue.world.member, dialogue.world.generation)
    assert dialogue.errors(dialogue.ask(body)) == {"INCONSISTENT_GROUP_PROTOCOL"}


def heartbeat_body(group: str, member: str, generation: int) -> dict[str, Any]:
    """A heartbeat."""
    return {"GroupId": group, "GenerationId": generation, "MemberId": member}


def heartbeat_succeeds(dialogue: Dialogue) -> None:
    """A member that is one."""
    world = dialogue.world
    dialogue.ask(heartbeat_body(GROUP, world.member, world.generation))


def heartbeat_fails(dialogue: Dialogue) -> None:
    """Members and generations that are unknown."""
    world = dialogue.world
    refusals = [
        (heartbeat_body(ABSENT, UNKNOWN_MEMBER, 1), "UNKNOWN_MEMBER_ID"),
        (heartbeat_body(GROUP, UNKNOWN_MEMBER, world.generation), "UNKNOWN_MEMBER_ID"),
        (heartbeat_body(GROUP, world.member, world.generation + 1), "ILLEGAL_GENERATION"),
    ]
    for body, error in refusals:
        assert dialogue.errors(dialogue.ask(body)) == {error}


def leave_body(dialogue: Dialogue, group: str, members: list[str]) -> dict[str, Any]:
    """A request to leave a group; by the first alone, where a version takes one."""
    if dialogue.has("Members"):
        reason = "the test ends"
        return {
            "GroupId": group,
            "Members": [{"MemberId": member, "Reason": reason} for member in members],
        }
    return {"GroupId": group, "MemberId": members[0]}


def leave_succeeds(dialogue: Dialogue) -> None:
    """The only member of a group leaves it."""
    group = dialogue.world.name("group")
    member, _ = dialogue.world.join(group)
    answer = dialogue.ask(leave_body(dialogue, group, [member]))
    expected = {"MemberId": member, "GroupInstanceId": None, "ErrorCode": 0}
    assert answer.get("Members", [expected]) == [expected]


def leave_fails(dialogue: Dialogue) -> None:
    """Members that are unknown, of a group that is there and of one that is not."""
    for group in (GROUP, ABSENT):
        answer = dialogue.ask(leave_body(dialogue, group, [UNKNOWN_MEMBER]))
        assert dialogue.errors(answer) == {"UNKNOWN_MEMBER_ID"}


def commit_body(group: str, topics: dict[str, list[int]], **changes: object) -> dict[str, Any]:
    """A request that commits an offset for partitions."""
    metadata = changes.pop("metadata", COMMIT_METADATA)
    entries = [
        {
            "Name": name,
            "Partitions": [
                {
                    "PartitionIndex": index,
                    "CommittedOffset": COMMITTED + index,
                    "CommittedMetadata": metadata,
                }
                for index in indexes
            ],
        }
        for name, indexes in topics.items()
    ]
    return {"GroupId": group, "Topics": entries, **changes}


def commit_succeeds(dialogue: Dialogue) -> None:
    """By a group without members, for two topics, with metadata and without."""
    world = dialogue.world
    group, topic = world.name("group"), world.create_topic(2)
    for metadata in (COMMIT_METADATA, None):
        dialogue.ask(commit_body(group, {topic: [0, 1], TOPIC: [2]}, metadata=metadata))
    entries = [{"Name": topic, "PartitionIndexes": [1]}]
    answer = world.ask("OffsetFetch", {"GroupId": group, "Topics": entries}, 7)
    (result,) = answer["Topics"][0]["Partitions"]
    assert (result["CommittedOffset"], result["Metadata"]) == (COMMITTED + 1, "")


def commit_fails(dialogue: Dialogue) -> None:
    """Partitions that are absent, metadata that is too long, a member that is none."""
    group = dialogue.world.name("group")
    answer = dialogue.ask(commit_body(group, {ABSENT: [0], TOPIC: [0, 99]}))
    assert dialogue.errors(answer) == {"UNKNOWN_TOPIC_OR_PARTITION"}
    answer = dialogue.ask(commit_body(group, {TOPIC: [0]}, metadata="m" * METADATA_BYTES_TOO_MANY))
    assert dialogue.errors(answer) == {"OFFSET_METADATA_TOO_LARGE"}
    stale = {"GenerationIdOrMemberEpoch": 1, "MemberId": UNKNOWN_MEMBER}
    answer = dialogue.ask(commit_body(GROUP, {TOPIC: [0]}, **stale))
    assert dialogue.errors(answer) == {"UNKNOWN_MEMBER_ID"}


def fetch_offsets_body(
    dialogue: Dialogue, group: str, topics: dict[str, list[int]] | None
) -> dict[str, Any]:
    """A request for committed offsets; None: of all partitions."""
    entries = None
    if topics is not None:
        entries = [{"Name": name, "PartitionIndexes": indexes} for name, indexes in topics.items()]
    if dialogue.has("Groups"):
        return {"Groups": [{"GroupId": group, "Topics": entries}]}
    return {"GroupId": group, "Topics": entries}


def fetch_offsets_succeeds(dialogue: Dialogue) -> None:
    """A committed offset, partitions without one, and all that a group has."""
    committed = (COMMITTED, COMMIT_METADATA)
    every = {0: committed, 1: (-1, ""), 3: (-1, "")}
    asked: list[tuple[dict[str, list[int]] | None, dict[int, tuple[int, str]]]]
    asked = [({TOPIC: [0, 1, 3]}, every)]
    if dialogue.version >= 2:
        asked.append((None, {0: committed}))
    for topics, expected in asked:
        answer = dialogue.ask(fetch_offsets_body(dialogue, GROUP, topics))
        (group,) = answer.get("Groups", [answer])
        assert group.get("GroupId", GROUP) == GROUP
        (topic,) = group["Topics"]
        assert topic["Name"] == TOPIC
        results = {
            result["PartitionIndex"]: (result["CommittedOffset"], result["Metadata"])
            for result in topic["Partitions"]
        }
        assert results == expected
        epochs = {result.get("CommittedLeaderEpoch", -1) for result in topic["Partitions"]}
        assert epochs == {-1}


def fetch_offsets_fails(dialogue: Dialogue) -> None:
    """A user without rights: any group and topic may be asked for, known or not."""
    body = fetch_offsets_body(dialogue, GROUP, {TOPIC: [0]})
    answer = dialogue.ask_as(dialogue.world.place.nobody, body)
    assert dialogue.errors(answer) == {"GROUP_AUTHORIZATION_FAILED"}
    unknown = dialogue.ask(fetch_offsets_body(dialogue, ABSENT, {ABSENT: [0]}))
    (group,) = unknown.get("Groups", [unknown])
    assert group["Topics"][0]["Partitions"][0]["CommittedOffset"] == -1


def describe_succeeds(dialogue: Dialogue) -> None:
    """A group with a member, and a group that does not exist where that is no error."""
    wants_operations = dialogue.has("IncludeAuthorizedOperations")
    body: dict[str, Any] = {"Groups": [GROUP]}
    if wants_operations:
        body["IncludeAuthorizedOperations"] = True
    (group,) = dialogue.ask(body)["Groups"]
    shape = (group["GroupState"], group["ProtocolType"], group["ProtocolData"])
    assert shape == ("Stable", "consumer", "range")
    (member,) = group["Members"]
    assert member["MemberId"] == dialogue.world.member
    assert (member["MemberMetadata"], member["MemberAssignment"]) == (SUBSCRIPTION, ASSIGNMENT)
    assert member["ClientId"] == CLIENT_ID
    assert member["ClientHost"] == "/127.0.0.1"
    assert member.get("GroupInstanceId") is None
    if wants_operations:
        assert group["AuthorizedOperations"] > 0
    (group,) = dialogue.ask({"Groups": [GROUP]})["Groups"]
    assert group.get("AuthorizedOperations", NO_OPERATIONS) == NO_OPERATIONS
    if dialogue.version < 6:
        (group,) = dialogue.ask({"Groups": [ABSENT]})["Groups"]
        assert (group["GroupState"], group["Members"]) == ("Dead", [])


def describe_fails(dialogue: Dialogue) -> None:
    """A group that does not exist, and a user without rights."""
    if dialogue.version >= 6:
        answer = dialogue.ask({"Groups": [ABSENT, GROUP]})
        assert dialogue.errors(answer) == {"GROUP_ID_NOT_FOUND"}
    answer = dialogue.ask_as(dialogue.world.place.nobody, {"Groups": [GROUP]})
    assert dialogue.errors(answer) == {"GROUP_AUTHORIZATION_FAILED"}
    assert answer["Groups"][0]["Members"] == []


def list_succeeds(dialogue: Dialogue) -> None:
    """The group is listed, and is not where another state or type is asked for."""
    filters: list[tuple[dict[str, list[str]], bool]] = [({}, True)]
    if dialogue.has("StatesFilter"):
        filters += [({"StatesFilter": ["Stable"]}, True), ({"StatesFilter": ["Empty"]}, False)]
    if dialogue.has("TypesFilter"):
        filters += [({"TypesFilter": ["classic"]}, True), ({"TypesFilter": ["consumer"]}, False)]
    for body, is_listed in filters:
        listed = {group["GroupId"]: group for group in dialogue.ask(body)["Groups"]}
        assert (GROUP in listed) == is_listed, body
        if is_listed:
            group = listed[GROUP]
            assert group["ProtocolType"] == "consumer"
            assert group.get("GroupState", "Stable") == "Stable"
            assert group.get("GroupType", "classic") == "classic"


def delete_succeeds(dialogue: Dialogue) -> None:
    """Two groups without members."""
    groups = [dialogue.world.name("group") for _ in range(2)]
    for group in groups:
        dialogue.world.commit(group, TOPIC, 0, COMMITTED)
    dialogue.ask({"GroupsNames": groups})


def delete_fails(dialogue: Dialogue) -> None:
    """A group that does not exist, and one with a member."""
    answer = dialogue.ask({"GroupsNames": [ABSENT, GROUP]})
    assert dialogue.errors(answer) == {"GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP"}


def delete_offsets_body(group: str, topic: str, indexes: list[int]) -> dict[str, Any]:
    """A request that forgets committed offsets."""
    entries = [{"PartitionIndex": index} for index in indexes]
    return {"GroupId": group, "Topics": [{"Name": topic, "Partitions": entries}]}


def delete_offsets_succeeds(dialogue: Dialogue) -> None:
    """One that was committed, and one that was not."""
    group = dialogue.world.name("group")
    dialogue.world.commit(group, TOPIC, 1, COMMITTED)
    dialogue.ask(delete_offsets_body(group, TOPIC, [1, 2]))


def delete_offsets_fails(dialogue: Dialogue) -> None:
    """A group and a topic that do not exist, and a topic that the group reads."""
    answer = dialogue.ask(delete_offsets_body(ABSENT, TOPIC, [0]))
    assert dialogue.errors(answer) == {"GROUP_ID_NOT_FOUND"}
    answer = dialogue.ask(delete_offsets_body(GROUP, ABSENT, [0]))
    assert dialogue.errors(answer) == {"UNKNOWN_TOPIC_OR_PARTITION"}
    answer = dialogue.ask(delete_offsets_body(GROUP, TOPIC, [0]))
    assert dialogue.errors(answer) == {"GROUP_SUBSCRIBED_TO_TOPIC"}


APIS: ApiScenarios = {
    "FindCoordinator": Scenarios(find_coordinator_succeeds, find_coordinator_fails, fails_from=1),
    "JoinGroup": Scenarios(join_succeeds, join_fails),
    "SyncGroup": Scenarios(sync_succeeds, sync_fails),
    "Heartbeat": Scenarios(heartbeat_succeeds, heartbeat_fails),
    "LeaveGroup": Scenarios(leave_succeeds, leave_fails),
    "OffsetCommit": Scenarios(commit_succeeds, commit_fails),
    "OffsetFetch": Scenarios(fetch_offsets_succeeds, fetch_offsets_fails),
    "DescribeGroups": Scenarios(describe_succeeds, describe_fails),
    "ListGroups": Scenarios(list_succeeds, None),
    "DeleteGroups": Scenarios(delete_succeeds, delete_fails),
    "OffsetDelete": Scenarios(delete_offsets_succeeds, delete_offsets_fails),
}
