"""Groups whose names have characters that mean something in a path."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from console.programs.cli.client import segment
from tests.console import cases
from tests.provisioning.control.world import access_of, put_sample, running_broker
from tests.provisioning.kafka.clients import settings

# Some of these would have the same address if a `/` in a name were read as one of the path.
NAMES = ["a/b", "a", "a/reset-offsets", "reset-offsets", "a%2Fb", "a%b", "%", "/", "//", "a/"]
MORE_NAMES = [".", "..", "~..", "../groups", "a?b#c", "a b", "é/ü", "a\nb", "a;b=c&d+e:f"]
T0_MS = 1_700_000_000_000


@pytest.fixture
def awake(api, path, cluster_id):
    """Starts the broker, with a topic `t` of three records; gives the control plane's access."""
    with running_broker(cluster_id):
        assert api().post(f"{path}/topics", {"name": "t", "partitions": 1}).status_code == 201
        for _ in range(3):
            assert api().post(f"{path}/topics/t/messages", {"value": "x"}).status_code == 201
        yield access_of(cluster_id)


def commit(access, group, offset):
    """Commits an offset of the topic's one partition as a group."""
    consumer = Consumer(settings(access.connection) | {"group.id": group})
    consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    consumer.close()


def test_any_group_is_shown_moved_and_deleted(api, path, awake):
    names = [*NAMES, *MORE_NAMES]
    for name in names:
        commit(awake, name, 1)
    listed = api().get(f"{path}/groups", query={"limit": 100}).json()["items"]
    assert {item["group"] for item in listed} == set(names)
    for name in names:
        group = f"{path}/groups/{segment(name)}"
        shown = api().get(group).json()
        assert (shown["group"], shown["lag"]) == (name, "2")
        moved = api().post(f"{group}/reset-offsets", {"to": "latest"})
        assert [item["target"] for item in moved.json()["items"]] == ["3"]
        assert api().get(group).json()["lag"] == "0"
    left = set(names)
    for name in names:
        assert api().delete(f"{path}/groups/{segment(name)}").status_code == 204
        left.remove(name)
        items = api().get(f"{path}/groups", query={"limit": 100}).json()["items"]
        assert {item["group"] for item in items} == left
        cases.assert_problem(api().get(f"{path}/groups/{segment(name)}"), 404, "not_found")


def test_the_audit_log_names_such_a_group(api, path, cluster_id, awake):
    commit(awake, "a/b", 1)
    assert api().delete(f"{path}/groups/a%2Fb").status_code == 204
    entry = api().get("/audit-log", query={"action": "group.delete"}).json()["items"][0]
    assert entry["target"]["id"] == f"{cluster_id}/a/b"


def test_a_sleeping_clusters_groups_may_have_any_name(api, path, cluster_id):
    seen = {"state": "Empty", "type": "classic", "protocol": "", "coordinator": 0, "members": [],
            "partitions": [], "lag": 0, "lag_seconds": 0.0}  # fmt: skip
    groups = [{**seen, "group": name} for name in NAMES]
    put_sample(cluster_id, T0_MS, {"groups": groups})
    for name in NAMES:
        assert api().get(f"{path}/groups/{segment(name)}").json()["group"] == name
    cases.assert_problem(api().get(f"{path}/groups/a/b"), 404, "not_found")
    cases.assert_problem(api().post(f"{path}/groups/a%2Freset-offsets"), 405, "method_not_allowed")
    for name in NAMES:
        reset = f"{path}/groups/{segment(name)}/reset-offsets"
        cases.assert_problem(api().post(reset, {"to": "latest"}), 409, "cluster_asleep")
