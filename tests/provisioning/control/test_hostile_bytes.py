"""Bytes of a tenant's clients that cannot be decoded: one request fails, the web server goes on."""

import asyncio
import os
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from provisioning import kafka
from provisioning.kafka import NewRecord, calls
from provisioning.kafka.workers import shared_workers
from tests.console import cases
from tests.provisioning.control.test_awake import read_events
from tests.provisioning.kafka.hostile import join_alone, log_in, produce_with_raw_header


@pytest.fixture
def topic(api, path, awake):
    made = api().post(f"{path}/topics", {"name": "t"})
    assert made.json()["status"]["conditions"][0]["status"] == "true", made.content
    return f"{path}/topics/t"


@pytest.fixture
def raw(awake):
    connection = awake.connection
    with closing(log_in(connection.bootstrap, connection.username, connection.password)) as client:
        yield client


@pytest.mark.parametrize("content", [b"\x00", b'{"partitions": [1]}'])
def test_a_group_whose_assignment_cannot_be_decoded_is_shown(api, path, raw, content):
    join_alone(raw, "odd", content)
    group = api().get(f"{path}/groups/odd").json()
    assert (group["state"], group["members"][0]["assignments"]) == ("Stable", [])
    (listed,) = api().get(f"{path}/groups").json()["items"]
    assert listed["group"] == "odd"


def test_a_worker_that_died_is_one_requests_error(api, path, raw, monkeypatch):
    join_alone(raw, "odd", b"\x00")
    monkeypatch.setattr(
        calls, "_describe_carefully", lambda access, call, *a: access.call(call, *a)
    )
    for _ in range(3):
        problem = cases.assert_problem(api().get(f"{path}/groups/odd"), 502, "kafka_unreadable")
        assert "cannot be decoded" in problem["detail"]
    monkeypatch.undo()
    assert api().get(f"{path}/groups/odd").status_code == 200


def test_calls_beyond_the_limit_are_asked_to_come_again(api, path, awake, monkeypatch):
    monkeypatch.setattr(shared_workers(), "calls_max", 0)
    problem = cases.assert_problem(api().get(f"{path}/groups"), 503, "unavailable")
    assert "Too many" in problem["detail"]


def test_a_headers_name_that_is_no_text_is_shown_again_and_again(api, topic, raw):
    for n in range(3):
        produce_with_raw_header(raw, "t", b"%d" % n)
    for _ in range(10):
        page = api().get(f"{topic}/messages", query={"from": "oldest"})
        assert page.status_code == 200, page.content
    for record in page.json()["items"]:
        shown = [(header["key"], header["key_base64"]) for header in record["headers"]]
        assert shown == [("\\xff\\xfe", "//4="), ("text", None)]


@pytest.mark.django_db(transaction=True)
def test_a_live_tail_goes_on_where_its_reader_died_and_says_where_all_do(topic, tenant, awake):
    address = f"/api/v1{topic}/messages/stream"
    headers = {"Authorization": f"Bearer {tenant.key}", "Accept": "text/event-stream"}

    async def watch():
        before = readers()
        response: Any = await AsyncClient().get(address, headers=headers)
        stream = response.streaming_content
        assert b"event: live" in await anext(stream)
        await end_readers(before)
        await sync_to_async(kafka.produce)(awake, "t", NewRecord(value=b"x", partition=0))
        ((kind, data, _),) = await read_events(stream, 1)
        assert (kind, data["value"]["text"]) == ("message", "x")
        ending = asyncio.create_task(end_readers(before, again=True))
        last = (await read_events(stream, 1))[-1]
        ending.cancel()
        return last

    kind, data, _ = asyncio.run(watch())
    assert (kind, data) == ("end", {"reason": "unreadable"})


async def end_readers(before, *, again=False):
    """Kills the worker processes that are not in `before`: once, or until it is cancelled."""
    ended: set[int] = set()
    while again or not ended:
        for process in readers() - before - ended:
            os.kill(process, signal.SIGKILL)
            ended.add(process)
        await asyncio.sleep(0.01)


def readers():
    """The ids of the worker processes that read for this process."""
    server = shared_workers()._server._process
    if server is None:
        return set()
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    return {int(process) for process in children.read_text().split()}
