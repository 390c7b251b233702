"""Groups of a running cluster: from its broker's status, and as of this moment after a change."""

import re
import threading
import urllib.request
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from brokers import Broker
from brokers.metadata_records import BrokerStatus
from console.base.common.clock import now, unix_ms
from provisioning import cells, kafka
from provisioning.administration.services import running_groups
from provisioning.cell.status.kept import KeptPictures
from tests.console import cases
from tests.provisioning.control.world import put_status
from tests.provisioning.kafka.clients import commit, produce_records, settings

LIMIT_S = 60
T0_MS = 1_700_000_000_000
REQUESTS = re.compile(
    r'^kafka_network_requestmetrics_requests_total\{request="(\w+)"\} (\d+)', re.M
)


@pytest.fixture
def topic(api, path, awake):
    """The name of a topic of three partitions that the broker serves."""
    made = api().post(f"{path}/topics", {"name": "t", "partitions": 3})
    assert made.json()["status"]["conditions"][0]["status"] == "true", made.content
    return "t"


@pytest.fixture
def address(cluster_id, awake):
    """The address of the broker's status."""
    status = cells.cell_store().status(cluster_id)
    assert status is not None
    (broker,) = status.brokers
    return broker.metrics


@pytest.fixture
def shown(api, path):
    """Waits until something holds of a group as REST shows it; gives the group.

    Another client's change is seen within a second, and the times of records a moment later.
    """

    def wait(name, holds):
        pause = threading.Event()
        for _ in range(LIMIT_S * 10):
            group = api().get(f"{path}/groups/{name}").json()
            if "group" in group and holds(group):
                return group
            pause.wait(0.1)
        pytest.fail(f"{group}")

    return wait


@contextmanager
def other_process(monkeypatch):
    """Within the block, requests go to a process that has pictures of its own."""
    pictures = KeptPictures()
    with monkeypatch.context() as patch:
        patch.setattr(running_groups, "shared_pictures", lambda: pictures)
        yield


def requests(address):
    """Kafka requests that the broker has answered, by kind."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=LIMIT_S) as answer:
        return dict(REQUESTS.findall(answer.read().decode()))


def numbers(group):
    """Offsets and lag by partition, which REST writes as texts."""
    return {
        (entry["topic"], entry["partition"]): tuple(
            None if entry[name] is None else int(entry[name])
            for name in ("committed", "end", "lag")
        )
        for entry in group["partitions"]
    }


def test_pages_of_groups_ask_for_nothing_by_kafka_and_read_no_record(
    api, path, awake, topic, address, shown
):
    produce_records(awake, topic, [(0, b"x", T0_MS + 1000 * n) for n in range(10)])
    commit(awake, "billing", {(topic, 0): 4, (topic, 1): 0})
    group = shown("billing", lambda group: group["lag_seconds"] is not None)
    assert numbers(group) == {(topic, 0): (4, 10, 6), (topic, 1): (0, 0, 0)}
    assert (group["state"], group["members"], int(group["lag"])) == ("Empty", [], 6)
    # The age of the first record that waits, to some minutes.
    expected_s = (unix_ms(now()) - T0_MS) / 1000 - 4
    assert group["lag_seconds"] == pytest.approx(expected_s, abs=300)
    assert group["partitions"][1]["lag_seconds"] == 0.0
    before = requests(address)
    assert "Fetch" not in before
    for _ in range(10):
        assert api().get(f"{path}/groups/billing").json()["lag_seconds"] > 0
        (listed,) = api().get(f"{path}/groups").json()["items"]
        assert numbers(listed) == numbers(group)
    assert requests(address) == before


def test_a_group_is_as_its_members_and_kafka_say(api, path, awake, topic, shown):
    produce_records(awake, topic, [(n % 3, b"x", T0_MS) for n in range(12)])
    consumer = Consumer(
        settings(awake.connection)
        | {"group.id": "members", "client.id": "app", "enable.auto.commit": False}
        | {"auto.offset.reset": "earliest", "group.instance.id": "static-1"}
    )
    consumer.subscribe([topic])
    while (message := consumer.poll(0.2)) is None or message.error():
        pass
    consumer.commit(message, asynchronous=False)
    group = shown("members", lambda group: any(p["committed"] for p in group["partitions"]))
    asked = kafka.describe_group(awake, "members")
    names = {"group", "state", "type", "protocol_type", "protocol", "members"}
    of_kafka = {name: value for name, value in asked.items() if name in names}
    assert {name: group[name] for name in names} == of_kafka
    (partition,) = asked["partitions"]
    committed = numbers(group)[partition["topic"], partition["partition"]]
    assert committed == (partition["committed"], partition["end"], partition["lag"])
    # What is assigned and has no commit waits from the log start.
    assert sorted(lag for _, _, lag in numbers(group).values()) == [3, 4, 4]
    consumer.close()


def test_moved_offsets_are_shown_at_once_by_every_process(
    api, path, awake, topic, shown, monkeypatch
):
    """Also before the broker knows the times of what waits behind them."""
    made = api().post(f"{path}/topics", {"name": "wide", "partitions": 100})
    assert made.status_code == 201, made.content
    records = [(n, b"x", T0_MS + 1000 * k) for n in range(100) for k in range(5)]
    produce_records(awake, "wide", records)
    commit(awake, "moved", {("wide", n): 4 for n in range(100)})
    shown("moved", lambda group: int(group["lag"]) == 100 and group["lag_seconds"] is not None)
    reset = f"{path}/groups/moved/reset-offsets"
    with other_process(monkeypatch):
        for offset, lag in ((1, 400), (3, 200), (0, 500)):
            api().get(f"{path}/groups/moved")
            with monkeypatch.context() as here:
                here.setattr(running_groups, "shared_pictures", KeptPictures)
                assert api().post(reset, {"to": "offset", "offset": offset}).status_code == 200
            assert int(api().get(f"{path}/groups/moved").json()["lag"]) == lag
            (listed,) = api().get(f"{path}/groups").json()["items"]
            assert int(listed["lag"]) == lag
    # A moment later its age is known again.
    shown("moved", lambda group: int(group["lag"]) == 500 and group["lag_seconds"] is not None)


def test_a_deleted_group_is_gone_at_once_for_every_process(
    api, path, awake, topic, shown, monkeypatch
):
    commit(awake, "goes", {(topic, 0): 0})
    commit(awake, "stays", {(topic, 0): 0})
    shown("goes", lambda _: True)
    with other_process(monkeypatch):
        assert len(api().get(f"{path}/groups").json()["items"]) == 2
        with monkeypatch.context() as here:
            here.setattr(running_groups, "shared_pictures", KeptPictures)
            assert api().delete(f"{path}/groups/goes").status_code == 204
        listed = api().get(f"{path}/groups").json()["items"]
        assert [item["group"] for item in listed] == ["stays"]
        cases.assert_problem(api().get(f"{path}/groups/goes"), 404, "not_found")


def test_where_the_status_cannot_be_read_groups_are_asked_for(api, path, cluster_id, awake, topic):
    """As where a network policy lets nobody through: what waits has no age then."""
    produce_records(awake, topic, [(0, b"x", T0_MS)])
    commit(awake, "billing", {(topic, 0): 0, (topic, 1): 0})
    bootstrap = awake.connection.bootstrap
    unreached = BrokerStatus(slot=0, link="", kafka=bootstrap, metrics="127.0.0.1:1")
    put_status(cluster_id, "running", brokers=(unreached,))
    group = api().get(f"{path}/groups/billing").json()
    assert numbers(group) == {(topic, 0): (0, 1, 1), (topic, 1): (0, 0, 0)}
    assert [entry["lag_seconds"] for entry in group["partitions"]] == [None, 0.0]
    assert api().get(f"{path}/groups").json()["items"] == [group]
    cases.assert_problem(api().get(f"{path}/groups/none"), 404, "not_found")


def test_a_group_that_the_status_has_in_part_is_asked_for(api, path, awake, topic):
    """A broker cuts names in its status that are longer than 1,024 bytes."""
    names = ["n" * 1024, "n" * 1025]
    for name in names:
        commit(awake, name, {(topic, 0): 0})
    listed = api().get(f"{path}/groups").json()["items"]
    assert [item["group"] for item in listed] == names
    for name in names:
        assert api().get(f"{path}/groups/{name}").json()["group"] == name


def test_the_broker_of_another_cluster_at_the_address_shows_nothing(
    api, path, cluster_id, awake, topic
):
    """An address is used again, and the status says so only once the keeper has noticed."""
    commit(awake, "ours", {(topic, 0): 0})
    with Broker(listener={"metrics": "127.0.0.1:0"}) as neighbour:
        admin = AdminClient({"bootstrap.servers": neighbour.bootstrap})
        admin.create_topics([NewTopic("t", 1)])["t"].result(LIMIT_S)
        places = ConsumerGroupTopicPartitions("theirs", [TopicPartition("t", 0, 0)])
        admin.alter_consumer_group_offsets([places])["theirs"].result(LIMIT_S)
        moved = BrokerStatus(
            slot=0,
            link="",
            kafka=awake.connection.bootstrap,
            metrics=neighbour.metrics_address or "",
        )
        put_status(cluster_id, "running", brokers=(moved,))
        items = api().get(f"{path}/groups").json()["items"]
        assert [item["group"] for item in items] == ["ours"]
        cases.assert_problem(api().get(f"{path}/groups/theirs"), 404, "not_found")
