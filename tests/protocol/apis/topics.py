"""Topics and their configs, and the cluster itself."""

from __future__ import annotations

from typing import Any

from tests.protocol.dialogue import ApiScenarios, Dialogue, Scenarios
from tests.protocol.records import CODECS, write_batch
from tests.protocol.schemas import ZERO_UUID
from tests.protocol.world import (
    ABSENT,
    ABSENT_ID,
    REQUEST_TIMEOUT_MS,
    SOFTWARE,
    TOPIC,
    acl,
    records_of,
)

OPERATIONS = "IncludeTopicAuthorizedOperations"
NO_OPERATIONS = -(1 << 31)
TOPIC_RESOURCE, UNKNOWN_RESOURCE = 2, 77
SET, DELETE, APPEND = 0, 1, 2
TOPIC_SOURCE, DEFAULT_SOURCE = 1, 5
BROKER_ENDPOINTS, CONTROLLER_ENDPOINTS, UNKNOWN_ENDPOINTS = 1, 2, 7
CREATE = 5
# From this version on CreateTopics describes what it made.
DESCRIBED_FROM = 5


def check_brokers(dialogue: Dialogue, brokers: list[dict[str, Any]]) -> None:
    """The brokers of an answer: one of them is asked."""
    addresses = {f"{broker['Host']}:{broker['Port']}" for broker in brokers}
    assert dialogue.world.place.address in addresses
    assert all(broker.get("Rack") is None for broker in brokers)


def check_topic(dialogue: Dialogue, topic: dict[str, Any]) -> None:
    """What an answer says of the topic that is there from the beginning."""
    assert topic["Name"] == TOPIC
    assert topic.get("IsInternal", False) is False
    indexes = [partition["PartitionIndex"] for partition in topic["Partitions"]]
    assert sorted(indexes) == list(range(len(CODECS) + 1))
    for partition in topic["Partitions"]:
        assert partition["LeaderId"] >= 0
        assert partition["ReplicaNodes"] == partition["IsrNodes"] == [partition["LeaderId"]]
        assert partition.get("OfflineReplicas", []) == []
        assert partition.get("LeaderEpoch", 0) == 0
    if "TopicId" in topic:
        assert topic["TopicId"] == dialogue.world.topic_id(TOPIC)


def metadata_succeeds(dialogue: Dialogue) -> None:
    """One topic by name, by id, and among all; with what the user may do."""
    everything: list[object] | None = None if dialogue.version >= 1 else []
    requests: list[dict[str, Any]] = [{"Topics": [{"Name": TOPIC}]}, {"Topics": everything}]
    if dialogue.version >= 12:
        by_id = {"TopicId": dialogue.world.topic_id(TOPIC), "Name": None}
        requests.append({"Topics": [by_id]})
    for body in requests:
        answer = dialogue.ask(body)
        check_brokers(dialogue, answer["Brokers"])
        assert answer.get("ControllerId", 0) >= 0
        (topic,) = [topic for topic in answer["Topics"] if topic["Name"] == TOPIC]
        check_topic(dialogue, topic)
        operations = topic.get("TopicAuthorizedOperations", NO_OPERATIONS)
        assert operations == NO_OPERATIONS
        if dialogue.version >= 2:
            assert answer["ClusterId"]
    if dialogue.has(OPERATIONS):
        body = {**requests[0], OPERATIONS: True}
        if dialogue.has("IncludeClusterAuthorizedOperations"):
            body["IncludeClusterAuthorizedOperations"] = True
        answer = dialogue.ask(body)
        assert answer["Topics"][0]["TopicAuthorizedOperations"] > 0
        assert answer.get("ClusterAuthorizedOperations", 1) > 0
    if dialogue.version >= 1:
        answer = dialogue.ask({"Topics": []})
        assert answer["Topics"] == []


def metadata_fails(dialogue: Dialogue) -> None:
    """Topics that do not exist, and a name that none can have."""
    quietly = {"AllowAutoTopicCreation": False} if dialogue.version >= 4 else {}
    answer = dialogue.ask({"Topics": [{"Name": "in valid"}], **quietly})
    assert dialogue.errors(answer) == {"INVALID_TOPIC_EXCEPTION"}
    assert answer["Topics"][0]["Partitions"] == []
    if quietly:
        answer = dialogue.ask({"Topics": [{"Name": ABSENT}, {"Name": TOPIC}], **quietly})
        assert dialogue.errors(answer) == {"UNKNOWN_TOPIC_OR_PARTITION"}
    if dialogue.version >= 12:
        answer = dialogue.ask({"Topics": [{"TopicId": ABSENT_ID, "Name": None}]})
        assert dialogue.errors(answer) == {"UNKNOWN_TOPIC_ID"}
        assert answer["Topics"][0]["Name"] is None


def describe_partitions_succeeds(dialogue: Dialogue) -> None:
    """Whole, and page by page."""
    answer = dialogue.ask({"Topics": [{"Name": TOPIC}]})
    (topic,) = answer["Topics"]
    check_topic(dialogue, topic)
    assert topic["TopicAuthorizedOperations"] > 0
    assert answer["NextCursor"] is None
    page = {"Topics": [{"Name": TOPIC}], "ResponsePartitionLimit": 4}
    answer = dialogue.ask(page)
    cursor = {"TopicName": TOPIC, "PartitionIndex": 4}
    assert answer["NextCursor"] == cursor
    answer = dialogue.ask({**page, "Cursor": cursor})
    indexes = [partition["PartitionIndex"] for partition in answer["Topics"][0]["Partitions"]]
    assert indexes == [4, 5]


def describe_partitions_fails(dialogue: Dialogue) -> None:
    """A topic that does not exist."""
    answer = dialogue.ask({"Topics": [{"Name": ABSENT}, {"Name": TOPIC}]})
    assert dialogue.errors(answer) == {"UNKNOWN_TOPIC_OR_PARTITION"}


def new_topic(
    name: str, partitions: int = 2, replicas: int = 1, **changes: object
) -> dict[str, Any]:
    """An entry about a topic that shall be created."""
    configs = [{"Name": "retention.ms", "Value": "60000"}]
    sizes = {"NumPartitions": partitions, "ReplicationFactor": replicas}
    return {"Name": name, **sizes, "Configs": configs, **changes}


def create_body(*topics: dict[str, Any], validate_only: bool = False) -> dict[str, Any]:
    """A request that creates topics."""
    return {
        "Topics": list(topics),
        "timeoutMs": REQUEST_TIMEOUT_MS,
        "validateOnly": validate_only,
    }


def create_succeeds(dialogue: Dialogue) -> None:
    """Two topics, which are described in the answer; then one that is only checked."""
    names = [dialogue.world.name("topic") for _ in range(2)]
    answer = dialogue.ask(create_body(*map(new_topic, names)))
    for topic in answer["Topics"]:
        assert topic["ErrorMessage"] is None
        assert topic.get("TopicId") != ZERO_UUID
        if dialogue.version >= DESCRIBED_FROM:
            assert (topic["NumPartitions"], topic["ReplicationFactor"]) == (2, 1)
            configs = {config["Name"]: config for config in topic["Configs"]}
            retention = configs["retention.ms"]
            assert (retention["Value"], retention["ConfigSource"]) == ("60000", TOPIC_SOURCE)
            assert configs["cleanup.policy"]["ConfigSource"] == DEFAULT_SOURCE
    for topic in answer["Topics"]:
        if "TopicId" in topic:
            assert topic["TopicId"] == dialogue.world.topic_id(topic["Name"])
    if dialogue.version >= DESCRIBED_FROM:
        create_without_sight(dialogue)
    checked = dialogue.world.name("topic")
    dialogue.ask(create_body(new_topic(checked), validate_only=True))
    answer = dialogue.world.ask("Metadata", {"Topics": None})
    assert checked not in {topic["Name"] for topic in answer["Topics"]}


def create_without_sight(dialogue: Dialogue) -> None:
    """A user who may create a topic, and may not see its configs."""
    world, name = dialogue.world, dialogue.world.name("topic")
    right = {"Principal": f"User:{world.place.nobody.user}", "Operation": CREATE}
    world.ask("CreateAcls", {"Creations": [{**acl(name), **right}]})
    made: dict[str, Any] = {}

    def is_made() -> bool:
        answer = dialogue.ask_as(world.place.nobody, create_body(new_topic(name)))
        made.update(answer["Topics"][0])
        return bool(made["ErrorCode"] == 0)

    world.expect(is_made, f"somebody may create {name}")
    error = world.place.codec.errors[made["TopicConfigErrorCode"]]
    assert error == "TOPIC_AUTHORIZATION_FAILED"
    assert (made["NumPartitions"], made["ReplicationFactor"]) == (-1, -1)
    assert not made["Configs"]


def create_fails(dialogue: Dialogue) -> None:
    """A topic that exists, and what none can have."""
    name = dialogue.world.name("topic")
    unknown = [{"Name": "no.such.config", "Value": "1"}]
    refusals = [
        (new_topic(TOPIC), "TOPIC_ALREADY_EXISTS"),
        (new_topic("in valid"), "INVALID_TOPIC_EXCEPTION"),
        (new_topic(name, partitions=0), "INVALID_PARTITIONS"),
        (new_topic(name, replicas=-2), "INVALID_REPLICATION_FACTOR"),
        (new_topic(name, Configs=unknown), "INVALID_CONFIG"),
    ]
    for topic, error in refusals:
        answer = dialogue.ask(create_body(topic))
        assert dialogue.errors(answer) == {error}
        (result,) = answer["Topics"]
        assert result["ErrorMessage"]
        assert result.get("TopicId", ZERO_UUID) == ZERO_UUID
        assert result.get("NumPartitions", -1) == -1
        assert result.get("Configs", []) == []


def delete_body(dialogue: Dialogue, *topics: dict[str, Any]) -> dict[str, Any]:
    """A request that deletes topics, as entries of the versions that name them by id, too."""
    if dialogue.has("Topics"):
        return {"Topics": list(topics), "TimeoutMs": REQUEST_TIMEOUT_MS}
    names = [topic["Name"] for topic in topics]
    return {"TopicNames": names, "TimeoutMs": REQUEST_TIMEOUT_MS}


def delete_succeeds(dialogue: Dialogue) -> None:
    """By name, and by id."""
    topic = dialogue.world.create_topic()
    answer = dialogue.ask(delete_body(dialogue, {"Name": topic}))
    assert answer["Responses"][0]["Name"] == topic
    if dialogue.has("Topics"):
        topic = dialogue.world.create_topic()
        topic_id = dialogue.world.topic_id(topic)
        answer = dialogue.ask(delete_body(dialogue, {"Name": None, "TopicId": topic_id}))
        assert answer["Responses"][0]["Name"] == topic


def delete_fails(dialogue: Dialogue) -> None:
    """A topic that does not exist."""
    answer = dialogue.ask(delete_body(dialogue, {"Name": ABSENT}))
    assert dialogue.errors(answer) == {"UNKNOWN_TOPIC_OR_PARTITION"}
    if dialogue.has("Topics"):
        answer = dialogue.ask(delete_body(dialogue, {"Name": None, "TopicId": ABSENT_ID}))
        assert dialogue.errors(answer) == {"UNKNOWN_TOPIC_ID"}
        assert answer["Responses"][0]["Name"] is None


def partitions_body(*topics: tuple[str, int], validate_only: bool = False) -> dict[str, Any]:
    """A request for more partitions, as pairs of topic and number."""
    entries = [{"Name": name, "Count": count, "Assignments": None} for name, count in topics]
    return {
        "Topics": entries,
        "TimeoutMs": REQUEST_TIMEOUT_MS,
        "ValidateOnly": validate_only,
    }


def partitions_succeeds(dialogue: Dialogue) -> None:
    """Three instead of one."""
    topic = dialogue.world.create_topic()
    for validate_only in (True, False):
        answer = dialogue.ask(partitions_body((topic, 3), validate_only=validate_only))
        assert answer["Results"][0]["ErrorMessage"] is None
    dialogue.world.wait_led(topic, 3)


def partitions_fails(dialogue: Dialogue) -> None:
    """A topic that does not exist, and one that has as many."""
    answer = dialogue.ask(partitions_body((ABSENT, 3), (TOPIC, 1)))
    assert dialogue.errors(answer) == {"UNKNOWN_TOPIC_OR_PARTITION", "INVALID_PARTITIONS"}
    (result,) = [result for result in answer["Results"] if result["Name"] == TOPIC]
    assert result["ErrorMessage"]


def describe_configs_body(
    name: str, keys: list[str] | None, kind: int = TOPIC_RESOURCE
) -> dict[str, Any]:
    """A request for configs of a resource; None: all of them."""
    resource = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys}
    return {"Resources": [resource], "IncludeSynonyms": True}


def describe_configs_succeeds(dialogue: Dialogue) -> None:
    """Two by name, and all of them; with their synonyms and what they mean."""
    keys = ["retention.ms", "cleanup.policy"]
    for asked in (keys, None):
        body = describe_configs_body(TOPIC, asked)
        if dialogue.has("IncludeDocumentation"):
            body["IncludeDocumentation"] = True
        (result,) = dialogue.ask(body)["Results"]
        assert (result["ResourceType"], result["ResourceName"]) == (TOPIC_RESOURCE, TOPIC)
        configs = {config["Name"]: config for config in result["Configs"]}
        assert len(configs) == len(result["Configs"])
        assert configs.keys() >= set(keys) if asked is None else configs.keys() == set(keys)
        retention = configs["retention.ms"]
        assert (retention["Value"], retention["ConfigSource"]) == ("-1", TOPIC_SOURCE)
        assert retention["Synonyms"][0] == {
            "Name": "retention.ms",
            "Value": "-1",
            "Source": TOPIC_SOURCE,
        }
        assert not retention["IsSensitive"]
        if dialogue.has("IncludeDocumentation"):
            assert retention["ConfigType"] > 0
            assert retention["Documentation"]
    body = describe_configs_body(TOPIC, keys)
    (result,) = dialogue.ask({**body, "IncludeSynonyms": False})["Results"]
    for config in result["Configs"]:
        assert config["Synonyms"] == []
        assert config.get("Documentation") is None


def describe_configs_fails(dialogue: Dialogue) -> None:
    """A topic that does not exist, a name that none can have, and an unknown kind."""
    refusals = [
        (describe_configs_body(ABSENT, None), "UNKNOWN_TOPIC_OR_PARTITION"),
        (describe_configs_body("in valid", None), "INVALID_TOPIC_EXCEPTION"),
        (describe_configs_body(TOPIC, None, UNKNOWN_RESOURCE), "INVALID_REQUEST"),
    ]
    for body, error in refusals:
        answer = dialogue.ask(body)
        assert dialogue.errors(answer) == {error}
        assert answer["Results"][0]["Configs"] == []


def alter_body(
    name: str, configs: list[dict[str, Any]], kind: int = TOPIC_RESOURCE
) -> dict[str, Any]:
    """A request that changes configs."""
    resource = {"ResourceType": kind, "ResourceName": name, "Configs": configs}
    return {"Resources": [resource], "ValidateOnly": False}


def configs_of(dialogue: Dialogue, topic: str) -> dict[str, Any]:
    """The values of a topic's configs."""
    answer = dialogue.world.ask("DescribeConfigs", describe_configs_body(topic, None))
    return {config["Name"]: config["Value"] for config in answer["Results"][0]["Configs"]}


def expect_configs(dialogue: Dialogue, topic: str, expected: dict[str, str]) -> None:
    """Asserts that a topic has configs."""
    dialogue.world.expect(
        lambda: configs_of(dialogue, topic).items() >= expected.items(), f"{topic}: {expected}"
    )


def alter_succeeds(dialogue: Dialogue) -> None:
    """All of a topic's configs are replaced."""
    topic = dialogue.world.create_topic(retention_ms="1")
    answer = dialogue.ask(alter_body(topic, [{"Name": "max.message.bytes", "Value": "4096"}]))
    assert answer["Responses"][0]["ErrorMessage"] is None
    expect_configs(dialogue, topic, {"max.message.bytes": "4096", "cleanup.policy": "delete"})
    assert configs_of(dialogue, topic)["retention.ms"] != "1"


def alter_fails(dialogue: Dialogue) -> None:
    """A topic that does not exist, and configs that no topic can have."""
    good = {"Name": "max.message.bytes", "Value": "4096"}
    refusals = [
        (alter_body(ABSENT, [good]), "UNKNOWN_TOPIC_OR_PARTITION"),
        (alter_body(TOPIC, [{"Name": "no.such.config", "Value": "1"}]), "INVALID_CONFIG"),
        (alter_body(TOPIC, [{"Name": "retention.ms", "Value": "much"}]), "INVALID_CONFIG"),
    ]
    for body, error in refusals:
        answer = dialogue.ask(body)
        assert dialogue.errors(answer) == {error}
        assert answer["Responses"][0]["ErrorMessage"]


def increment_succeeds(dialogue: Dialogue) -> None:
    """One config is set, one is deleted, one is added to."""
    topic = dialogue.world.create_topic(retention_ms="1")
    changes = [
        {"Name": "retention.ms", "ConfigOperation": DELETE, "Value": None},
        {"Name": "max.message.bytes", "ConfigOperation": SET, "Value": "4096"},
        {"Name": "cleanup.policy", "ConfigOperation": APPEND, "Value": "compact"},
    ]
    answer = dialogue.ask(alter_body(topic, changes))
    assert answer["Responses"][0]["ErrorMessage"] is None
    expect_configs(
        dialogue, topic, {"max.message.bytes": "4096", "cleanup.policy": "delete,compact"}
    )
    assert configs_of(dialogue, topic)["retention.ms"] != "1"


def increment_fails(dialogue: Dialogue) -> None:
    """A topic that does not exist, and changes that none can have."""
    good = {"Name": "max.message.bytes", "ConfigOperation": SET, "Value": "4096"}
    refusals = [
        (alter_body(ABSENT, [good]), "UNKNOWN_TOPIC_OR_PARTITION"),
        (alter_body(TOPIC, [{**good, "Value": "much"}]), "INVALID_CONFIG"),
        (alter_body(TOPIC, [{**good, "ConfigOperation": APPEND}]), "INVALID_CONFIG"),
    ]
    for body, error in refusals:
        answer = dialogue.ask(body)
        assert dialogue.errors(answer) == {error}
        assert answer["Responses"][0]["ErrorMessage"]


def log_dirs_succeeds(dialogue: Dialogue) -> None:
    """The size of a partition with records; of all partitions, and of one topic's."""
    topic = dialogue.world.create_topic(2)
    batch = write_batch(records_of("sized"))
    dialogue.world.produce(topic, 1, batch)
    for asked in ([{"Topic": topic, "Partitions": [0, 1]}], None):
        (result,) = dialogue.ask({"Topics": asked})["Results"]
        assert result["LogDir"].startswith("/")
        (entry,) = [entry for entry in result["Topics"] if entry["Name"] == topic]
        sizes = {entry["PartitionIndex"]: entry["PartitionSize"] for entry in entry["Partitions"]}
        assert sizes == {0: 0, 1: len(batch)}
        assert all(not entry["IsFutureKey"] for entry in entry["Partitions"])
        assert all(entry["OffsetLag"] == 0 for entry in entry["Partitions"])


def log_dirs_fails(dialogue: Dialogue) -> None:
    """A user without rights. Partitions that do not exist are left out."""
    answer = dialogue.ask_as(dialogue.world.place.nobody, {"Topics": None})
    assert dialogue.errors(answer) == {"CLUSTER_AUTHORIZATION_FAILED"}
    assert answer["Results"] == []


def cluster_succeeds(dialogue: Dialogue) -> None:
    """The brokers, and what the user may do."""
    for operations in (False, True):
        answer = dialogue.ask({"IncludeClusterAuthorizedOperations": operations})
        check_brokers(dialogue, answer["Brokers"])
        assert answer["ClusterId"]
        assert answer["ErrorMessage"] is None
        assert answer.get("EndpointType", BROKER_ENDPOINTS) == BROKER_ENDPOINTS
        assert not any(broker.get("IsFenced") for broker in answer["Brokers"])
        assert (answer["ClusterAuthorizedOperations"] == NO_OPERATIONS) == (not operations)


def cluster_fails(dialogue: Dialogue) -> None:
    """Endpoints of controllers, which are not here, and of a kind that does not exist."""
    for kind, error in (
        (CONTROLLER_ENDPOINTS, "MISMATCHED_ENDPOINT_TYPE"),
        (UNKNOWN_ENDPOINTS, "UNSUPPORTED_ENDPOINT_TYPE"),
    ):
        answer = dialogue.ask({"EndpointType": kind})
        assert dialogue.errors(answer) == {error}
        assert answer["ErrorMessage"]
        assert answer["Brokers"] == []


def api_versions_succeeds(dialogue: Dialogue) -> None:
    """The same in every version, and each API once."""
    body = SOFTWARE if dialogue.version >= 3 else {}
    answer = dialogue.ask(body)
    assert {entry["ApiKey"] for entry in answer["ApiKeys"]} >= {0, 1, 2, 3, 18}
    for entry in answer["ApiKeys"]:
        assert 0 <= entry["MinVersion"] <= entry["MaxVersion"]
        # Librdkafka needs the old ones of Produce to be there (KAFKA-18659).
        assert entry["ApiKey"] != 0 or entry["MinVersion"] == 0


def api_versions_fails(dialogue: Dialogue) -> None:
    """A name of the client that none can have."""
    answer = dialogue.ask({"ClientSoftwareName": "in valid", "ClientSoftwareVersion": "1"})
    assert dialogue.errors(answer) == {"INVALID_REQUEST"}
    assert answer["ApiKeys"] == []


def reassignment_body(topic: str, replicas: list[int] | None) -> dict[str, Any]:
    """A request for other replicas of a topic's first partition; None: as they are."""
    entry = {"PartitionIndex": 0, "Replicas": replicas}
    topics = [{"Name": topic, "Partitions": [entry]}]
    return {"TimeoutMs": REQUEST_TIMEOUT_MS, "Topics": topics}


def reassign_succeeds(dialogue: Dialogue) -> None:
    """To the broker that leads it, which changes nothing."""
    topic = dialogue.world.create_topic()
    (described,) = dialogue.world.ask("Metadata", {"Topics": [{"Name": topic}]})["Topics"]
    leader = described["Partitions"][0]["LeaderId"]
    answer = dialogue.ask(reassignment_body(topic, [leader]))
    assert answer["ErrorMessage"] is None
    assert answer["Responses"][0]["Partitions"][0]["ErrorMessage"] is None


def reassign_fails(dialogue: Dialogue) -> None:
    """A topic that does not exist, no broker, an unknown one, and nothing to cancel."""
    refusals = [
        (reassignment_body(ABSENT, [0]), "UNKNOWN_TOPIC_OR_PARTITION"),
        (reassignment_body(TOPIC, []), "INVALID_REPLICA_ASSIGNMENT"),
        (reassignment_body(TOPIC, [12_345]), "INVALID_REPLICA_ASSIGNMENT"),
        (reassignment_body(TOPIC, None), "NO_REASSIGNMENT_IN_PROGRESS"),
    ]
    for body, error in refusals:
        answer = dialogue.ask(body)
        assert dialogue.errors(answer) == {error}
        assert answer["Responses"][0]["Partitions"][0]["ErrorMessage"]


def reassignments_succeeds(dialogue: Dialogue) -> None:
    """There are none: among all, and of partitions that are named."""
    named = [{"Name": TOPIC, "PartitionIndexes": [0]}]
    for topics in (None, named):
        answer = dialogue.ask({"TimeoutMs": REQUEST_TIMEOUT_MS, "Topics": topics})
        assert answer["Topics"] == []


def reassignments_fails(dialogue: Dialogue) -> None:
    """A user without rights."""
    body = {"TimeoutMs": REQUEST_TIMEOUT_MS, "Topics": None}
    answer = dialogue.ask_as(dialogue.world.place.nobody, body)
    assert dialogue.errors(answer) == {"CLUSTER_AUTHORIZATION_FAILED"}


def elect_body(topic: str | None) -> dict[str, Any]:
    """A request for the election of the preferred leader of a topic's first partition, or all."""
    topics = None if topic is None else [{"Topic": topic, "Partitions": [0]}]
    return {"TopicPartitions": topics, "TimeoutMs": REQUEST_TIMEOUT_MS}


def elect_succeeds(dialogue: Dialogue) -> None:
    """Among all, where those that need none are left out."""
    answer = dialogue.ask(elect_body(None))
    assert answer["ReplicaElectionResults"] == []


def elect_fails(dialogue: Dialogue) -> None:
    """A topic that does not exist, and one that needs no election."""
    for topic, error in ((ABSENT, "UNKNOWN_TOPIC_OR_PARTITION"), (TOPIC, "ELECTION_NOT_NEEDED")):
        answer = dialogue.ask(elect_body(topic))
        assert dialogue.errors(answer) == {error}


APIS: ApiScenarios = {
    "AlterPartitionReassignments": Scenarios(reassign_succeeds, reassign_fails),
    "ListPartitionReassignments": Scenarios(reassignments_succeeds, reassignments_fails),
    "ElectLeaders": Scenarios(elect_succeeds, elect_fails),
    "Metadata": Scenarios(metadata_succeeds, metadata_fails),
    "DescribeTopicPartitions": Scenarios(describe_partitions_succeeds, describe_partitions_fails),
    "CreateTopics": Scenarios(create_succeeds, create_fails),
    "DeleteTopics": Scenarios(delete_succeeds, delete_fails),
    "CreatePartitions": Scenarios(partitions_succeeds, partitions_fails),
    "DescribeConfigs": Scenarios(describe_configs_succeeds, describe_configs_fails),
    "AlterConfigs": Scenarios(alter_succeeds, alter_fails),
    "IncrementalAlterConfigs": Scenarios(increment_succeeds, increment_fails),
    "DescribeLogDirs": Scenarios(log_dirs_succeeds, log_dirs_fails, fails_from=3),
    "DescribeCluster": Scenarios(cluster_succeeds, cluster_fails, fails_from=1),
    "ApiVersions": Scenarios(api_versions_succeeds, api_versions_fails, fails_from=3),
}
