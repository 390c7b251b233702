"""Groups, messages and the live tail of a cluster whose broker runs, and of one that sleeps."""

import asyncio
import base64
import json
import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from confluent_kafka import Consumer
from django.test import AsyncClient

from brokers.metadata_records import BrokerStatus
from console.base.accounts.models import ApiKey
from console.base.common.api.renderers import JSONRenderer
from console.base.common.clock import now
from console.base.common.concurrency import concurrency
from console.base.common.tenancy import organization_scope
from provisioning import kafka
from provisioning.administration.api import streams
from provisioning.administration.services import messages
from provisioning.kafka import NewRecord
from tests.console import cases
from tests.provisioning.control.world import put_sample, put_status, running_broker
from tests.provisioning.kafka.clients import settings as client_settings

LIMIT_S = 60
T0_MS = 1_700_000_000_000
COMMITTED = {
    "topic": "t",
    "partition": 0,
    "committed": 1,
    "end": 3,
    "lag": 2,
    "lag_seconds": 4.5,
}
GROUP = {
    "group": "billing",
    "state": "Empty",
    "type": "classic",
    "protocol": "range",
    "coordinator": 0,
    "members": [],
    "partitions": [COMMITTED],
    "lag": 2,
    "lag_seconds": 4.5,
}


@pytest.fixture
def topic(api, path, awake):
    """A topic of two partitions that the broker serves."""
    made = api().post(f"{path}/topics", {"name": "t", "partitions": 2})
    assert made.json()["status"]["conditions"][0]["status"] == "true", made.content
    return f"{path}/topics/t"


def join(access, group, topic):
    """Joins a group as a member that reads one record and commits its offset."""
    settings = client_settings(access.connection) | {"group.id": group, "client.id": "app"}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([topic])
    while (message := consumer.poll(0.2)) is None or message.error():
        pass
    consumer.commit(message, asynchronous=False)
    return consumer


def test_a_created_topic_is_served_when_the_call_returns(api, path, awake, topic):
    shown = api().get(topic).json()
    assert shown["status"]["partitions_led"] == 2
    leaders = api().get(f"{topic}/partitions").json()["items"]
    assert {leader["leader"] for leader in leaders} == {0}
    assert api().post(f"{topic}/partitions", {"count": 3}).json()["status"]["partitions_led"] == 3


def test_a_group_is_shown_live_with_lag(api, path, awake, topic):
    for n in range(4):
        assert api().post(f"{topic}/messages", {"value": str(n), "partition": 0}).status_code == 201
    member = join(awake, "billing", "t")
    # A broker knows the time of a record a moment after it was asked for its status.
    wait_until(lambda: api().get(f"{path}/groups/billing").json()["lag_seconds"] is not None)
    (listed,) = api().get(f"{path}/groups").json()["items"]
    shown = api().get(f"{path}/groups/billing").json()
    member.close()
    assert (shown["state"], shown["sampled_at"], shown["lag"]) == ("Stable", None, "3")
    assert listed["group"] == "billing"
    assert shown["lag_seconds"] >= 0
    (seen,) = shown["members"]
    assert (seen["client_id"], len(seen["assignments"])) == ("app", 2)
    # The other one is assigned, and nothing is committed of it.
    partition, other = shown["partitions"]
    assert (partition["committed"], partition["end"], partition["lag"]) == ("1", "4", "3")
    assert (other["committed"], other["end"], other["lag"]) == (None, "0", "0")
    cases.assert_problem(api().get(f"{path}/groups/none"), 404, "not_found")


def test_internal_topics_are_listed_and_nothing_else(api, path, awake, topic):
    api().post(f"{topic}/messages", {"value": "x", "partition": 0})
    join(awake, "billing", "t").close()
    listed = api().get(f"{path}/topics", query={"internal": "true"}).json()["items"]
    internal = f"{path}/topics/__consumer_offsets"
    names = [item["name"] for item in listed if item["internal"]]
    assert names == ["__consumer_offsets"]
    calls = (
        api().get(f"{internal}/messages"),
        api().get(f"{internal}/messages/stream"),
        api().post(f"{internal}/messages", {"value": "x", "partition": 0}),
    )
    for refused in calls:
        document = cases.assert_problem(refused, 422, "kafka_refused")
        assert document["kafka_error"] == "TOPIC_AUTHORIZATION_FAILED"
        assert "internal" in document["detail"]
    before = {"partitions": [{"partition": 0, "before_offset": -1}]}
    cases.assert_problem(api().post(f"{internal}:delete-records", before), 422, "kafka_refused")
    for changed in (
        api().patch(internal, {"configs": {"cleanup.policy": "delete"}}),
        api().post(f"{internal}/partitions", {"count": 100}),
        api().delete(internal),
    ):
        document = cases.assert_problem(changed, 422, "validation_failed")
        assert "internal" in document["errors"][0]["detail"]


def test_offsets_are_planned_moved_and_refused(api, path, awake, topic):
    for n in range(4):
        api().post(f"{topic}/messages", {"value": str(n), "partition": 0})
    reset = f"{path}/groups/billing/reset-offsets"
    member = join(awake, "billing", "t")
    document = cases.assert_problem(api().post(reset, {"to": "earliest"}), 409, "group_active")
    assert "current state is Stable" in document["detail"]
    assert document["kafka_error"] == "NON_EMPTY_GROUP"
    member.close()
    expected = [{"topic": "t", "partition": 0, "current": "1", "target": "3", "lag_after": "1"}]
    body = {"to": "shift", "shift": 2, "dry_run": True}
    assert api().post(reset, body).json() == {"dry_run": True, "items": expected}
    assert api().get(f"{path}/groups/billing").json()["lag"] == "3"
    assert api().post(reset, {"to": "shift", "shift": 2}).json()["items"] == expected
    assert api().get(f"{path}/groups/billing").json()["lag"] == "1"
    query = {"action": "group.reset_offsets"}
    (entry,) = api().get("/audit-log", query=query).json()["items"]
    assert entry["target"]["name"] == "billing"
    assert entry["detail"]["offsets"] == {"t-0": {"from": 1, "to": 3}}
    body = {"to": "timestamp", "timestamp": "2001-01-01T00:00:00Z", "topics": [{"topic": "t"}]}
    targets = [item["target"] for item in api().post(reset, body).json()["items"]]
    assert targets == ["0", "0"]
    cases.assert_problem(api().post(reset, {"to": "offset"}), 422, "validation_failed")
    cases.assert_problem(api().post(reset, {"to": "moon"}), 422, "validation_failed")
    missing = {"to": "earliest", "topics": [{"topic": "no-such"}]}
    cases.assert_problem(api().post(reset, missing), 404, "not_found")


def test_a_group_goes_where_another_stands(api, path, awake, topic):
    for n in range(4):
        api().post(f"{topic}/messages", {"value": str(n), "partition": 0})
    member = join(awake, "old", "t")
    member.close()
    reset = f"{path}/groups/new/reset-offsets"
    expected = [{"topic": "t", "partition": 0, "current": None, "target": "1", "lag_after": "3"}]
    planned = api().post(reset, {"to": {"group": "old"}, "dry_run": True}).json()
    assert planned == {"dry_run": True, "items": expected}
    cases.assert_problem(api().get(f"{path}/groups/new"), 404, "not_found")
    assert api().post(reset, {"to": {"group": "old"}}).json()["items"] == expected
    assert api().get(f"{path}/groups/new").json()["lag"] == "3"
    none = api().post(reset, {"to": {"group": "nobody"}})
    assert cases.assert_problem(none, 422, "kafka_refused")["kafka_error"] == "INVALID_REQUEST"
    elsewhere = {"to": {"group": "old"}, "topics": [{"topic": "t", "partitions": [1]}]}
    cases.assert_problem(api().post(reset, elsewhere), 422, "kafka_refused")
    for bad in ({"group": ""}, {"group": "a\0"}, {"groups": "old"}, 7):
        document = cases.assert_problem(api().post(reset, {"to": bad}), 422, "validation_failed")
        assert document["errors"][0]["pointer"] == "/to"


def test_an_empty_group_is_deleted(api, path, awake, topic):
    api().post(f"{topic}/messages", {"value": "x", "partition": 0})
    group = f"{path}/groups/billing"
    member = join(awake, "billing", "t")
    cases.assert_problem(api().delete(group), 409, "group_active")
    member.close()
    assert api().delete(group).status_code == 204
    cases.assert_problem(api().get(group), 404, "not_found")
    cases.assert_problem(api().delete(group), 404, "not_found")
    assert api().get(f"{path}/groups").json()["items"] == []


def test_a_large_value_is_cut_on_a_page_and_read_whole_alone(api, awake, topic):
    value = "x" * 200_000
    assert api().post(f"{topic}/messages", {"value": value, "partition": 0}).status_code == 201
    (cut,) = api().get(f"{topic}/messages").json()["items"]
    shown = (cut["value"]["size"], len(cut["value"]["text"]), cut["value"]["truncated"])
    assert shown == (200_000, 65_536, True)
    query = {"from": "offset", "offset": cut["offset"], "partition": 0, "limit": 1, "whole": True}
    (whole,) = api().get(f"{topic}/messages", query=query).json()["items"]
    assert (whole["value"]["text"], whole["value"]["truncated"]) == (value, False)


def test_messages_are_produced_and_browsed(api, awake, topic):
    body = {
        "key": "k",
        "value": {"base64": base64.b64encode(b"\xff").decode()},
        "headers": [{"key": "h", "value": "1"}, {"key": "h"}],
        "partition": 1,
    }
    produced = api().post(f"{topic}/messages", body)
    assert produced.status_code == 201
    assert (produced.json()["partition"], produced.json()["offset"]) == (1, "0")
    for n in range(5):
        api().post(f"{topic}/messages", {"value": str(n), "partition": 0})
    newest = api().get(f"{topic}/messages", query={"limit": 2}).json()
    assert [item["value"]["text"] for item in newest["items"]] == ["4", "3"]
    assert newest["stopped"] == "limit"
    query = {"limit": 2, "cursor": newest["next_cursor"]}
    older = api().get(f"{topic}/messages", query=query).json()
    assert [item["value"]["text"] for item in older["items"]] == ["2", "1"]
    query = {"from": "offset", "offset": 3, "partition": 0}
    page = api().get(f"{topic}/messages", query=query).json()
    assert [item["offset"] for item in page["items"]] == ["3", "4"]
    assert (page["next_cursor"], page["stopped"]) == (None, "end")
    query = {"from": "timestamp", "timestamp": str(T0_MS), "partition": 1}
    (first,) = api().get(f"{topic}/messages", query=query).json()["items"]
    assert first["value"] == {"base64": "/w==", "text": None, "size": 1, "truncated": False}
    assert [header["key"] for header in first["headers"]] == ["h", "h"]
    assert api().get(f"{topic}/messages", query={"from": "oldest"}).json()["items"][0] == first


def test_a_filter_finds_records_and_says_how_far_it_looked(api, awake, topic):
    for n in range(6):
        value = json.dumps({"n": n, "state": "done" if n % 2 else "open"})
        api().post(f"{topic}/messages", {"value": value, "partition": 0, "key": f"k-{n}"})
    query = {"filter": "value.state = done and value.n > 1", "from": "oldest"}
    page = api().get(f"{topic}/messages", query=query).json()
    assert [item["key"]["text"] for item in page["items"]] == ["k-3", "k-5"]
    assert page["stopped"] == "end"
    assert page["scanned"]["records"] == 6
    assert page["scanned"]["partitions"][0] == {
        "partition": 0,
        "position": "6",
        "begin": "0",
        "end": "6",
    }
    newest = api().get(f"{topic}/messages", query={"filter": "K-4"}).json()
    assert [item["offset"] for item in newest["items"]] == ["4"]


def test_a_page_has_its_place_until_its_answer_is_written(api, topic, tenant, monkeypatch):
    seen = []
    render = JSONRenderer.render

    def rendered(*arguments, **options):
        seen.append(messages._reads._running[tenant.id])
        return render(*arguments, **options)

    monkeypatch.setattr(JSONRenderer, "render", rendered)
    assert api().get(f"{topic}/messages").status_code == 200
    assert (seen, messages._reads._running[tenant.id]) == ([1], 0)


def encoded(text):
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"from": "moon"}, "?from"),
        ({"from": "offset"}, "?offset"),
        ({"limit": 0}, "?limit"),
        ({"limit": 501}, "?limit"),
        ({"cursor": "???"}, "?cursor"),
        ({"cursor": encoded('{"0": 1e999}')}, "?cursor"),
        ({"cursor": encoded("[" * 20_000)}, "?cursor"),
        ({"from": "timestamp", "timestamp": "soon"}, "?timestamp"),
        ({"filter": "value.a = "}, "?filter"),
        ({"filter": " "}, "?filter"),
        ({"scan_bytes_max": 10**9}, "?scan_bytes_max"),
        ({"whole": True}, "?whole"),
        ({"whole": True, "from": "offset", "offset": 1, "limit": 1}, "?whole"),
        ({"from": "offset", "offset": str(2**63)}, "?offset"),
        ({"from": "timestamp", "timestamp": "²"}, "?timestamp"),
    ],
)
def test_what_cannot_be_browsed_is_pointed_to(api, path, query, pointer):
    response = api().get(f"{path}/topics/t/messages", query=query)
    document = cases.assert_problem(response, 422, "validation_failed")
    assert document["errors"][0]["pointer"] == pointer


def test_what_kafka_refuses_says_why(api, path, awake):
    config = {"max.message.bytes": "200"}
    api().post(f"{path}/topics", {"name": "small", "configs": config})
    response = api().post(f"{path}/topics/small/messages", {"value": "x" * 1_000})
    document = cases.assert_problem(response, 422, "kafka_refused")
    assert document["kafka_error"] == "MESSAGE_TOO_LARGE"
    response = api().post(f"{path}/topics/none/messages", {"value": "x"})
    cases.assert_problem(response, 404, "not_found")
    response = api().post(f"{path}/topics/small/messages", {"value": 1})
    cases.assert_problem(response, 422, "validation_failed")


def test_a_credential_and_acls_hold_for_clients(api, path, awake, topic):
    made = api().post(f"{path}/credentials", {"name": "app", "role": "none"}).json()
    assert made["status"]["conditions"][0]["reason"] == "Effective"
    connection = kafka.Connection(
        awake.connection.bootstrap, made["password"], username=made["username"]
    )
    client = kafka.Access(kafka.shared_clients(), connection)
    # Without rights it does not even see the topic.
    with pytest.raises(kafka.UnknownPartitionError):
        kafka.produce(client, "t", NewRecord(value=b"x"))
    grant = {"principal": made["principal"], "resource_type": "TOPIC", "resource_name": "t"}
    added = api().post(f"{path}/acls", {**grant, "operation": "WRITE"}).json()
    assert added["status"]["conditions"][0]["reason"] == "Effective"
    # The broker has it: the first attempt succeeds.
    assert produces(client)
    api().delete(f"{path}/acls", query={"principal": made["principal"]})
    wait_until(lambda: not produces(client))


def test_a_credential_that_brokers_do_not_confirm_is_pending(api, path, cluster_id):
    gone = BrokerStatus(slot=0, link="", kafka="127.0.0.1:9", metrics="")
    put_status(cluster_id, "running", brokers=(gone,))
    made = api().post(f"{path}/credentials", {"name": "app", "role": "full"})
    assert made.status_code == 201
    assert made.json()["status"]["conditions"][0]["reason"] == "Pending"


def produces(client):
    try:
        return kafka.produce(client, "t", NewRecord(value=b"x"))["offset"] >= 0
    except kafka.KafkaCallError:
        return False


def wait_until(condition):
    """Waits until the condition holds; the test's own time limit ends it otherwise."""
    pause = threading.Event()
    while not condition():
        pause.wait(0.05)


def test_a_sleeping_clusters_groups_are_the_last_sample(api, path, cluster_id, cell):
    assert api().get(f"{path}/groups").json() == {"items": [], "next_cursor": None}
    put_sample(cluster_id, T0_MS, {"groups": [GROUP]})
    (listed,) = api().get(f"{path}/groups").json()["items"]
    assert listed == api().get(f"{path}/groups/billing").json()
    assert listed["sampled_at"] == "2023-11-14T22:13:20Z"
    as_text = {"committed": "1", "end": "3", "lag": "2"}
    assert (listed["lag"], listed["partitions"]) == ("2", [COMMITTED | as_text])
    # A sample of an earlier release does not say of which kind the group is.
    assert listed["protocol_type"] == ""
    put_sample(cluster_id, T0_MS + 1, {"groups": [GROUP | {"protocol_type": "connect"}]})
    assert api().get(f"{path}/groups/billing").json()["protocol_type"] == "connect"
    cases.assert_problem(api().get(f"{path}/groups/none"), 404, "not_found")
    assert cell.wake(cluster_id) is None


def test_a_sleeping_cluster_is_woken_only_where_asked(api, path, cluster_id, cell):
    for call in (
        api().get(f"{path}/topics/t/messages"),
        api().post(f"{path}/topics/t/messages", {"value": "x"}),
        api().get(f"{path}/topics/t/messages/stream"),
        api().post(f"{path}/groups/g/reset-offsets", {"to": "earliest"}),
        api().delete(f"{path}/groups/g"),
    ):
        cases.assert_problem(call, 409, "cluster_asleep")
    assert cell.wake(cluster_id) is None


def test_waking_waits_for_brokers(api, path, cluster_id, cell):
    """A thread acts as the keeper: it sees the request to wake, and starts the broker."""
    api().post(f"{path}/topics", {"name": "t"})
    revision = cell.wakes().revision
    done, began = threading.Event(), threading.Event()

    def keep():
        began.set()
        cell.watch("wake/", revision, 60)
        with running_broker(cluster_id):
            done.wait(60)

    keeper = threading.Thread(target=keep)
    keeper.start()
    began.wait()
    try:
        query = {"wake": "true"}
        produced = api().post(f"{path}/topics/t/messages", {"value": "x"}, query=query)
        assert produced.status_code == 201, produced.content
    finally:
        done.set()
        keeper.join()


def test_a_cluster_that_does_not_wake_in_time_is_starting(api, path, monkeypatch):
    monkeypatch.setattr("provisioning.clusters.services.brokers.WAKE_TIMEOUT_S", 0.0)
    response = api().get(f"{path}/topics/t/messages", query={"wake": "true"})
    cases.assert_problem(response, 503, "cluster_starting")


def test_brokers_that_do_not_answer_are_unavailable(api, path, cluster_id):
    gone = BrokerStatus(slot=0, link="", kafka="127.0.0.1:9", metrics="")
    put_status(cluster_id, "running", brokers=(gone,))
    cases.assert_problem(api().get(f"{path}/groups"), 503, "unavailable")


async def read_events(stream, count):
    """Reads at least `count` events, if the stream has them, as (kind, data, id)."""
    events, text = [], ""
    async for chunk in stream:
        text += chunk.decode()
        while "\n\n" in text:
            block, text = text.split("\n\n", 1)
            fields = dict(
                line.split(": ", 1) for line in block.splitlines() if not line.startswith(":")
            )
            if fields and fields["event"] != "live":
                events.append((fields["event"], json.loads(fields["data"]), fields.get("id")))
        if len(events) >= count:
            return events
    return events


@pytest.mark.django_db(transaction=True)
def test_the_live_tail_shows_what_arrives_and_ends_with_its_client(api, path, awake, topic, tenant):
    address = f"/api/v1{topic}/messages/stream"
    headers = {"Authorization": f"Bearer {tenant.key}", "Accept": "text/event-stream"}

    async def watch():
        response: Any = await AsyncClient().get(address, headers=headers)
        assert response.status_code == 200
        assert response["Content-Type"] == "text/event-stream"
        stream = response.streaming_content
        assert b"event: live" in await anext(stream)
        # From this event on no record is missed.
        await sync_to_async(produce)()
        events = await read_events(stream, 2)
        # That of an earlier test may take a moment to see that its broker is gone.
        await sync_to_async(wait_until)(lambda: len(threads()) == 1)
        await stream.aclose()
        return events

    def produce():
        for number in range(2):
            kafka.produce(awake, "t", NewRecord(value=str(number).encode(), partition=0))

    events = asyncio.run(watch())
    values = [int(data["value"]["text"]) for kind, data, _ in events if kind == "message"]
    assert values == [0, 1]
    _, data, name = events[0]
    assert dict(streams.positions_of(name) or {})[0] == int(data["offset"]) + 1
    wait_until(lambda: not threads())
    assert concurrency().used("live_tails", tenant.id) == 0


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "live-tail"]


@pytest.mark.django_db(transaction=True)
def test_a_tail_goes_on_where_an_earlier_one_ended(api, path, awake, topic, tenant):
    for n in range(5):
        kafka.produce(awake, "t", NewRecord(value=str(n).encode(), partition=0))
    headers = {
        "Authorization": f"Bearer {tenant.key}",
        "Last-Event-ID": streams.write_id({0: 2, 1: 0}),
    }

    async def watch():
        response: Any = await AsyncClient().get(f"/api/v1{topic}/messages/stream", headers=headers)
        stream = response.streaming_content
        events = await read_events(stream, 3)
        await stream.aclose()
        return events

    events = asyncio.run(watch())
    assert [data["value"]["text"] for _, data, _ in events] == ["2", "3", "4"]


@pytest.mark.django_db(transaction=True)
def test_a_tail_with_a_filter_counts_what_it_looked_at(api, path, awake, topic, tenant):
    for n in range(5):
        kafka.produce(awake, "t", NewRecord(value=str(n).encode(), partition=0))
    headers = {
        "Authorization": f"Bearer {tenant.key}",
        "Last-Event-ID": streams.write_id({0: 0, 1: 0}),
    }

    async def watch():
        address = f"/api/v1{topic}/messages/stream"
        response: Any = await AsyncClient().get(
            address, query_params={"filter": "value >= 3"}, headers=headers
        )
        events = await read_until_progress(response.streaming_content)
        await response.streaming_content.aclose()
        return events

    events = asyncio.run(watch())
    messages = [data["value"]["text"] for kind, data, _ in events if kind == "message"]
    assert messages == ["3", "4"]
    _, _, name = events[-1]
    assert dict(streams.positions_of(name) or {}) == {0: 5, 1: 0}


async def read_until_progress(stream):
    """Reads events until one says that five records were looked at."""
    events: list[tuple[str, Any, str | None]] = []
    while not events or events[-1][0] != "progress" or events[-1][1]["records"] < 5:
        events += await read_events(stream, 1)
    return events


@pytest.mark.django_db(transaction=True)
def test_a_tail_ends_when_the_brokers_are_others(api, path, awake, topic, tenant, cluster_id):
    headers = {"Authorization": f"Bearer {tenant.key}"}

    async def watch():
        response: Any = await AsyncClient().get(f"/api/v1{topic}/messages/stream", headers=headers)
        put_status(cluster_id, "asleep")
        return await read_events(response.streaming_content, 1)

    assert asyncio.run(watch()) == [("end", {"reason": "brokers_changed"}, None)]


@pytest.mark.django_db(transaction=True)
def test_a_tail_ends_with_the_key_that_opened_it(api, path, awake, topic, tenant):
    headers = {"Authorization": f"Bearer {tenant.key}"}

    def revoke():
        with organization_scope(tenant.id):
            ApiKey.objects.update(revoked_at=now())

    async def watch():
        response: Any = await AsyncClient().get(f"/api/v1{topic}/messages/stream", headers=headers)
        await sync_to_async(revoke)()
        async with asyncio.timeout(LIMIT_S):
            return await read_events(response.streaming_content, 1)

    assert asyncio.run(watch()) == [("end", {"reason": "access_ended"}, None)]


@pytest.mark.django_db(transaction=True)
def test_a_tail_that_a_defect_ends_says_that_it_ended(api, path, awake, topic, tenant, monkeypatch):
    def fail(*_, **__):
        message = "a defect"
        raise RuntimeError(message)

    monkeypatch.setattr(kafka, "tail", fail)
    headers = {"Authorization": f"Bearer {tenant.key}"}

    async def watch():
        response: Any = await AsyncClient().get(f"/api/v1{topic}/messages/stream", headers=headers)
        async with asyncio.timeout(LIMIT_S):
            return await read_events(response.streaming_content, 1)

    assert asyncio.run(watch()) == [("end", {"reason": "failed"}, None)]


def test_a_group_with_a_nul_in_its_name_is_none(api, path, awake, topic):
    """librdkafka would reset the group of the name's beginning."""
    kafka.produce(awake, "t", NewRecord(value=b"1", partition=0))
    join(awake, "a", "t").close()
    body = {"to": "earliest", "topics": [{"topic": "t"}]}
    response = api().post(f"{path}/groups/a%00b/reset-offsets", body)
    cases.assert_problem(response, 404, "not_found")


def test_partitions_that_kafka_cannot_number_are_pointed_to(api, path):
    body = {"to": "earliest", "topics": [{"topic": "t", "partitions": [2**31]}]}
    response = api().post(f"{path}/groups/g/reset-offsets", body)
    document = cases.assert_problem(response, 422, "validation_failed")
    assert document["errors"][0]["pointer"].startswith("/topics/0/partitions")


def test_live_tails_are_limited(api, path, awake, topic, monkeypatch):
    monkeypatch.setattr(streams, "limit_of", lambda *_, **__: 0)
    response = api().get(f"{topic}/messages/stream")
    document = cases.assert_problem(response, 429, "too_many_streams")
    assert document["quota"] == {"name": "live_tails", "limit": 0, "used": 0}


@pytest.mark.parametrize(
    "last_event_id",
    ["", None, "???", "e30", "W10", "bnVsbA", encoded('{"0": 1e999}'), encoded("[" * 20_000)],
)
def test_an_id_that_names_nothing_begins_at_the_end(last_event_id):
    assert streams.positions_of(last_event_id) in (None, {})
