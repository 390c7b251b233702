"""Damaged batches through the REST interface: they are skipped, named, and deleted on request."""

import asyncio
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from django.test import AsyncClient

from console.base.common.models import AuditEntry
from provisioning import kafka
from provisioning.administration.api import streams
from provisioning.cell.status.picture import Picture
from provisioning.cell.status.reader import read_on
from tests.console import cases
from tests.provisioning.control.damaging import store_damaged
from tests.provisioning.control.test_awake import read_events
from tests.provisioning.control.world import access_of, running_broker
from tests.provisioning.kafka.clients import settings

VALUES = ["a", "b", "c", "d", "e"]
DAMAGED = {"partition": 0, "first_offset": "2", "next_offset": "3", "reason": "undecodable"}


@pytest.fixture
def topic(api, path, cluster_id):
    """The address of a topic whose batches at the offsets 2 and 4 are damaged."""
    with running_broker(cluster_id) as broker:
        api().post(f"{path}/topics", {"name": "t"})
        store_damaged(broker, cluster_id, "t", VALUES, [2, 4])
        yield f"{path}/topics/t"


def first_words(page):
    return [record["value"]["text"].split()[0] for record in page["items"]]


def skip(api, topic, first_offset, **body):
    return api().post(
        f"{topic}:skip-damaged", {"partition": 0, "first_offset": first_offset, **body}
    )


def test_a_page_names_what_it_skips(api, topic):
    page = api().get(f"{topic}/messages", query={"from": "oldest"}).json()
    assert first_words(page) == ["a", "b", "d"]
    second = {**DAMAGED, "first_offset": "4", "next_offset": "5"}
    assert page["damaged"] == [DAMAGED, second]
    assert (page["stopped"], page["next_cursor"]) == ("end", None)
    newest = api().get(f"{topic}/messages", query={"limit": 1}).json()
    query = {"limit": 2, "cursor": newest["next_cursor"]}
    older = api().get(f"{topic}/messages", query=query).json()
    assert (first_words(newest), first_words(older)) == (["d"], ["b", "a"])
    assert second in newest["damaged"]
    assert sorted(newest["damaged"] + older["damaged"], key=str) == [DAMAGED, second]


def test_the_log_begins_behind_a_damaged_batch_once_its_owner_confirms(api, topic, in_tenant):
    planned = skip(api, topic, 2)
    assert planned.status_code == 200, planned.content
    expected = {**DAMAGED, "log_start": "0", "records_before": "2", "skipped": False}
    assert planned.json() == expected
    page = api().get(f"{topic}/messages", query={"from": "oldest"}).json()
    assert first_words(page) == ["a", "b", "d"]
    assert not AuditEntry.objects.filter(action="topic.skip_damaged").exists()

    done = skip(api, topic, 2, confirm=True)
    assert done.json() == {**expected, "skipped": True}, done.content
    page = api().get(f"{topic}/messages", query={"from": "oldest"}).json()
    assert first_words(page) == ["d"]
    assert [batch["first_offset"] for batch in page["damaged"]] == ["4"]
    (entry,) = AuditEntry.objects.filter(action="topic.skip_damaged")
    assert entry.target_id.endswith("/t")
    assert entry.detail == {"partition": 0, "first_offset": 2, "next_offset": 3, "log_start": 0}


@pytest.mark.parametrize("confirm", [False, True])
def test_another_batch_than_the_one_that_was_shown_is_not_skipped(api, topic, confirm):
    for first_offset, reason in ((1, "can be decoded"), (3, "can be decoded")):
        problem = cases.assert_problem(
            skip(api, topic, first_offset, confirm=confirm), 409, "not_damaged"
        )
        assert reason in problem["detail"]
    assert skip(api, topic, 2, confirm=True).status_code == 200
    problem = cases.assert_problem(skip(api, topic, 2, confirm=confirm), 409, "not_damaged")
    assert "begins at 3 by now" in problem["detail"]
    assert skip(api, topic, 4, confirm=True).status_code == 200
    problem = cases.assert_problem(skip(api, topic, 5, confirm=confirm), 409, "not_damaged")
    assert "no record is left" in problem["detail"]


def test_what_cannot_be_skipped_is_refused(api, topic, cluster_id):
    problem = cases.assert_problem(skip(api, topic, 99), 422, "kafka_refused")
    assert problem["kafka_error"] == "OFFSET_OUT_OF_RANGE"
    body = {"partition": 7, "first_offset": 2}
    cases.assert_problem(api().post(f"{topic}:skip-damaged", body), 404, "not_found")
    for wrong in ({}, {"partition": 0}, {"partition": 0, "first_offset": -1}):
        cases.assert_problem(api().post(f"{topic}:skip-damaged", wrong), 422, "validation_failed")
    internal = topic.removesuffix("t") + "__consumer_offsets"
    refused = api().post(f"{internal}:skip-damaged", {"partition": 0, "first_offset": 0})
    cases.assert_problem(refused, 404, "not_found")
    access = access_of(cluster_id)
    kafka.reset_offsets(access, "g", kafka.Target("earliest"), partitions={"t": [0]})
    refused = api().post(f"{internal}:skip-damaged", {"partition": 0, "first_offset": 0})
    cases.assert_problem(refused, 422, "kafka_refused")


def test_what_brokers_report_can_be_skipped_though_it_can_be_decoded(
    api, topic, cluster_id, report_damage
):
    """Kafka's own clients may end at a batch of which librdkafka gives records."""
    report_damage((cluster_id, "t", 0, 1), (cluster_id, "another", 0, 3))
    (partition,) = api().get(f"{topic}/partitions").json()["items"]
    assert partition["damaged_first_offset"] == "1"
    answer = skip(api, topic, 1, confirm=True).json()
    assert (answer["reason"], answer["records_before"], answer["skipped"]) == (
        "reported",
        "1",
        True,
    )
    page = api().get(f"{topic}/messages", query={"from": "oldest"}).json()
    assert first_words(page) == ["d"]
    # The report is old by now; the log itself is asked.
    cases.assert_problem(skip(api, topic, 1), 409, "not_damaged")
    cases.assert_problem(skip(api, topic, 3), 409, "not_damaged")


def test_a_report_is_of_one_topic_and_not_of_the_next_one_with_its_name(
    api, topic, store, cluster_id, report_damage
):
    before = store.topic("t").id
    reported = (cluster_id, "t", 0, 1)
    report_damage(reported, topics=[before])

    def reported_offset():
        (partition,) = api().get(f"{topic}/partitions").json()["items"]
        return partition["damaged_first_offset"]

    assert reported_offset() == "1"
    assert skip(api, topic, 1).json()["reason"] == "reported"
    assert api().delete(topic).status_code == 204
    path = topic.rpartition("/")[0]
    assert api().post(path, {"name": "t"}).status_code == 201
    for value in VALUES:
        body = {"value": value, "partition": 0}
        assert api().post(f"{topic}/messages", body).status_code == 201
    # The report of the topic that is gone says nothing of the batch that is there now.
    assert reported_offset() is None
    cases.assert_problem(skip(api, topic, 1), 409, "not_damaged")
    report_damage(reported, topics=[before, "of another batch"])
    assert reported_offset() is None
    # One of the new topic does, and so does one of an earlier release, which names no topic.
    for topics in ([store.topic("t").id], []):
        report_damage(reported, topics=topics)
        assert reported_offset() == "1"
        assert skip(api, topic, 1).json()["reason"] == "reported"


def test_a_brokers_status_says_which_topic_has_a_name_now(api, path, store, cluster_id):
    """The keeper reports damage by this id, and reads on from what it knows of the topic before."""
    picture = Picture()

    def known_id():
        names: dict[str, str | None] = dict(picture.entries("t").values())
        return names.get("t", "no topic of this name")

    with running_broker(cluster_id) as broker:
        assert broker.metrics_address is not None
        pictures = {broker.metrics_address: picture}
        for _ in range(2):
            assert api().post(f"{path}/topics", {"name": "t"}).status_code == 201
            while known_id() != store.topic("t").id:
                assert asyncio.run(read_on(pictures, timeout_s=10))
            # Its offset keeps the name known when the topic is gone.
            offset = TopicPartition("t", 0, 0)
            kafka_settings = settings(access_of(cluster_id).connection)
            consumer = Consumer(kafka_settings | {"group.id": "g"})
            consumer.commit(offsets=[offset], asynchronous=False)
            consumer.close()
            assert api().delete(f"{path}/topics/t").status_code == 204
            while known_id() not in {None, "no topic of this name"}:
                assert asyncio.run(read_on(pictures, timeout_s=10))


def test_a_sleeping_cluster_is_not_asked(api, path, cluster_id):
    api().post(f"{path}/topics", {"name": "t"})
    (partition,) = api().get(f"{path}/topics/t/partitions").json()["items"]
    assert partition["damaged_first_offset"] is None
    cases.assert_problem(skip(api, f"{path}/topics/t", 2), 409, "cluster_asleep")


@pytest.mark.django_db(transaction=True)
def test_a_live_tail_names_what_it_skips(topic, tenant):
    address = f"/api/v1{topic}/messages/stream"
    begin = streams.write_id({0: 0})
    headers = {
        "Authorization": f"Bearer {tenant.key}",
        "Accept": "text/event-stream",
        "Last-Event-ID": begin,
    }

    async def watch():
        response: Any = await AsyncClient().get(address, headers=headers)
        stream = response.streaming_content
        assert b"event: live" in await anext(stream)
        events = await read_events(stream, 5)
        await stream.aclose()
        return events

    events = asyncio.run(watch())
    damaged = [data for kind, data, _ in events if kind == "damaged"]
    assert [batch["first_offset"] for batch in damaged] == ["2", "4"]
    values = [data["value"]["text"][0] for kind, data, _ in events if kind == "message"]
    assert values == ["a", "b", "d"]
    _, _, last = events[-1]
    assert streams.positions_of(last) == {0: 5}
