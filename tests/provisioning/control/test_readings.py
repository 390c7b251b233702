"""Reading records: whose right it is, and what the audit log says of it."""

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import AsyncClient
from django.test.utils import CaptureQueriesContext

from console.base.accounts.models import ApiKey
from console.base.common.actor import Actor, ActorKind, Permission, Role
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from provisioning import kafka
from provisioning.administration.api import streams
from provisioning.administration.services import readings
from provisioning.administration.services.readings import ReadPart, end_readings, note_reading
from provisioning.models import Cluster, RecordReading
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.conftest import later as later  # noqa: PLC0414 (a fixture)
from tests.console.factories import make_member, make_project_key
from tests.console.test_openapi import FILE
from tests.provisioning.control.world import running_broker
from tests.provisioning.test_read_ranges import record_at

ROOT = Path(__file__).parents[3]
LIMIT_S = 60
RECORDS = 6
MAY_READ = {Role.OWNER, Role.ADMIN, Role.DEVELOPER, Role.READER}


@pytest.fixture
def topic(api, path, awake):
    """A topic with records at offsets 0 to 5 of its one partition; its address."""
    return make_topic(api(), path)


def make_topic(client, path):
    """Makes that topic while the cluster's broker runs; returns its address."""
    topic = f"{path}/topics/t"
    assert client.post(f"{path}/topics", {"name": "t", "partitions": 1}).status_code == 201
    for number in range(RECORDS):
        assert client.post(f"{topic}/messages", {"value": str(number)}).status_code == 201
    return topic


def entries(tenant, action):
    """The entries of an action, oldest first."""
    with organization_scope(tenant.id):
        rows = AuditEntry.objects.filter(organization_id=tenant.id, action=action)
        return list(rows.order_by("created_at", "id"))


def counts_of(entry):
    """What an entry says besides times."""
    times = {"began_at", "ended_at"}
    return {name: value for name, value in entry.detail.items() if name not in times}


def read_page(client, topic, **query):
    response = client.get(f"{topic}/messages", query={"from": "oldest", **query})
    assert response.status_code == 200, response.content
    return response.json()


async def tail(key, topic, events):
    """Watches a topic from its first record until so many records came."""
    headers = {"Authorization": f"Bearer {key}", "Last-Event-ID": streams.write_id({0: 0})}
    address = f"/api/v1{topic}/messages/stream"
    response: Any = await AsyncClient().get(address, headers=headers)
    assert response.status_code == 200, response.content
    seen = 0
    async with asyncio.timeout(LIMIT_S):
        async for part in response.streaming_content:
            seen += part.count(b"event: message")
            if seen >= events:
                break
    await response.streaming_content.aclose()


@pytest.mark.parametrize("role", Role)
def test_a_role_reads_records_or_gets_the_name_of_the_right(tenant, api, cluster_id, role):
    topic = f"/clusters/{cluster_id}/topics/t"
    assert api().post(f"/clusters/{cluster_id}/topics", {"name": "t"}).status_code == 201
    secrets = [tenant.keys[role]]
    if role != Role.MEMBER:
        secrets.append(make_project_key(tenant, tenant.project, role))
    for secret in secrets:
        client = ApiClient(secret)
        for address in ("messages", "messages/stream"):
            response = client.get(f"{topic}/{address}")
            if role in MAY_READ:
                # It got as far as to the cluster, which sleeps.
                assert_problem(response, 409, "cluster_asleep")
            else:
                problem = assert_problem(response, 403, "permission_denied")
                assert problem["detail"].endswith("does not grant data.read.")
        if role != Role.MEMBER:
            # What has no bytes of records is shown to all of them.
            assert client.get(topic).status_code == 200


@pytest.mark.parametrize("role", [Role.VIEWER, Role.BILLING])
def test_a_role_in_a_project_adds_the_right(tenant, cluster_id, role):
    secret = make_project_key(tenant, tenant.project, Role.READER, organization_role=role)
    page = ApiClient(secret).get(f"/clusters/{cluster_id}/topics/t/messages")
    assert_problem(page, 409, "cluster_asleep")


def test_pages_are_two_entries_however_many_they_are(tenant, topic, later):
    key = tenant.keys[Role.READER]
    reader = ApiClient(key)
    for offset in (0, 1, 4):
        assert len(read_page(reader, topic, limit=1, **{"from": "offset"}, offset=offset)["items"])
    page = read_page(reader, topic, filter="value = 3")
    assert [item["offset"] for item in page["items"]] == ["3"]
    with organization_scope(tenant.id):
        key_id = ApiKey.objects.get(role=Role.READER).pk

    [began] = entries(tenant, readings.BEGAN)
    assert (began.actor_kind, began.actor_id) == (ActorKind.API_KEY, key_id)
    assert began.target_id == topic.removeprefix("/clusters/").replace("/topics/", "/")
    assert entries(tenant, readings.READ) == []
    # As long as somebody reads on, nothing is over.
    later(minutes=9)
    assert end_readings() == 0
    later(minutes=2)
    assert end_readings() == 1
    assert end_readings() == 0
    [read] = entries(tenant, readings.READ)
    assert counts_of(read) == {
        "pages": 4,
        "records": 4,
        "records_read": 3 + RECORDS,
        "offsets": {"t-0": ["0-1", "3-4"]},
    }
    assert read.detail["began_at"] <= read.detail["ended_at"] <= now().isoformat()
    for entry in (began, read):
        assert (entry.actor_id, entry.target_type) == (key_id, "topic")
        assert entry.target_id == began.target_id
        assert entry.request_id == began.request_id != "-"
    # Reading on begins anew.
    read_page(reader, topic)
    assert len(entries(tenant, readings.BEGAN)) == 2


def test_a_page_costs_one_statement(tenant, topic):
    reader = ApiClient(tenant.key)
    read_page(reader, topic)
    with CaptureQueriesContext(connection) as queries:
        read_page(reader, topic)
    tables = ("provisioning_recordreading", "common_auditentry")
    assert len([query for query in queries if any(name in query["sql"] for name in tables)]) == 1


def test_who_never_pauses_is_in_the_log_every_hour(tenant, topic, later):
    reader = ApiClient(tenant.key)
    for _ in range(8):
        read_page(reader, topic, limit=1)
        assert end_readings() == 0
        later(minutes=8)
    assert end_readings() == 1
    [read] = entries(tenant, readings.READ)
    assert read.detail["pages"] == 8


def test_each_reader_has_an_entry(tenant, topic, later):
    member = make_member(tenant, "reads@acme.example", Role.DEVELOPER)
    account = make_project_key(tenant, tenant.project, Role.READER)
    for client in (signed_in(member.user), ApiClient(account), ApiClient(tenant.key)):
        read_page(client, topic)
        read_page(client, topic)
    kinds = {(entry.actor_kind, entry.actor_id) for entry in entries(tenant, readings.BEGAN)}
    assert len(kinds) == 3
    assert (ActorKind.SESSION, member.user_id) in kinds
    later(minutes=11)
    assert end_readings() == 3
    assert {(entry.actor_kind, entry.actor_id) for entry in entries(tenant, readings.READ)} == kinds


def test_a_page_that_shows_nothing_of_the_log_counts_too(tenant, topic, later):
    read_page(ApiClient(tenant.key), topic, filter="nothing like it")
    later(minutes=11)
    assert end_readings() == 1
    [read] = entries(tenant, readings.READ)
    assert counts_of(read) == {"pages": 1, "records_read": RECORDS, "offsets": {}}


def test_what_shows_no_records_is_no_reading(tenant, topic, api, path):
    for address in (topic, f"{topic}/partitions", f"{path}/groups", f"{path}/first-steps"):
        assert api().get(address).status_code == 200
    assert_problem(api().get(f"{path}/topics/none/messages"), 404)
    assert entries(tenant, readings.BEGAN) == []


def test_an_owner_finds_who_read_a_topic(tenant, topic, later, api):
    read_page(ApiClient(tenant.keys[Role.DEVELOPER]), topic)
    later(minutes=11)
    assert end_readings() == 1
    target = topic.removeprefix("/clusters/").replace("/topics/", "/")
    query = {"target_id": target, "action": readings.READ}
    [item] = api().get("/audit-log", query=query).json()["items"]
    assert item["detail"]["offsets"] == {"t-0": [f"0-{RECORDS - 1}"]}


@pytest.mark.django_db(transaction=True)
def test_a_live_tail_is_audited_from_its_start_to_its_end(tenant, api, path, cluster_id, later):
    with running_broker(cluster_id):
        assert api().post(f"{path}/topics", {"name": "t", "partitions": 1}).status_code == 201
        for number in range(RECORDS):
            assert (
                api().post(f"{path}/topics/t/messages", {"value": str(number)}).status_code == 201
            )
        key = tenant.keys[Role.READER]
        asyncio.run(tail(key, f"{path}/topics/t", RECORDS))
    [began] = entries(tenant, readings.BEGAN)
    later(minutes=11)
    assert end_readings() == 1
    [read] = entries(tenant, readings.READ)
    assert read.actor_id == began.actor_id
    assert counts_of(read) == {
        "live_tails": 1,
        "records": RECORDS,
        "records_read": RECORDS,
        "offsets": {"t-0": [f"0-{RECORDS - 1}"]},
    }


def test_many_ranges_are_joined_and_the_entry_says_so(tenant, cluster_id, later):
    with organization_scope(tenant.id):
        cluster = Cluster.objects.get(pk=cluster_id)
    actor = Actor(ActorKind.API_KEY, "key_a", tenant.id, Role.READER)
    for number in range(12):
        ranges = [(0, at, at) for at in range(number * 1_000, (number + 1) * 1_000, 10)]
        with organization_scope(tenant.id):
            read = ReadPart(pages=1, records=len(ranges), records_read=len(ranges), ranges=ranges)
            note_reading(actor=actor, cluster=cluster, topic="t", read=read)
            assert len(RecordReading.objects.get().ranges) <= readings.RANGES_MAX
    later(minutes=11)
    assert end_readings() == 1
    [read] = entries(tenant, readings.READ)
    offsets = read.detail["offsets"]["t-0"]
    assert len(offsets) == readings.RANGES_SHOWN
    assert read.detail["offsets_joined"] is True
    assert (offsets[0].split("-")[0], offsets[-1].split("-")[-1]) == ("0", "11990")
    assert read.detail["records"] == 1_200


@pytest.mark.django_db(transaction=True)
def test_readers_and_sweeps_at_once_lose_no_page(tenant, cluster_id, monkeypatch):
    """A sweep that ends readings between any two pages."""
    monkeypatch.setattr(readings, "PAUSE", timedelta())
    with organization_scope(tenant.id):
        cluster = Cluster.objects.get(pk=cluster_id)
    actor = Actor(ActorKind.API_KEY, "key_a", tenant.id, Role.READER)

    def read(worker):
        try:
            for number in range(20):
                at = worker * 100 + number
                with organization_scope(tenant.id):
                    page = ReadPart(pages=1, records=1, records_read=1, ranges=[(0, at, at)])
                    note_reading(actor=actor, cluster=cluster, topic="t", read=page)
                if worker == 0:
                    end_readings()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(4)))
    end_readings()
    read_entries = entries(tenant, readings.READ)
    assert sum(entry.detail["pages"] for entry in read_entries) == 80
    assert len(entries(tenant, readings.BEGAN)) == len(read_entries) > 1


def test_readings_of_another_organization_are_not_seen(tenant, other_tenant, cluster_id):
    with organization_scope(tenant.id):
        cluster = Cluster.objects.get(pk=cluster_id)
        actor = Actor(ActorKind.API_KEY, "key_a", tenant.id, Role.READER)
        note_reading(actor=actor, cluster=cluster, topic="t", read=ReadPart(pages=1))
        assert RecordReading.objects.count() == 1
    with organization_scope(other_tenant.id):
        assert RecordReading.objects.count() == 0


def test_a_tail_that_cannot_note_what_it_read_notes_it_later(tenant, cluster_id, monkeypatch):
    with organization_scope(tenant.id):
        cluster = Cluster.objects.get(pk=cluster_id)
    actor = Actor(ActorKind.API_KEY, "key_a", tenant.id, Role.READER)
    access: Any = None
    stream = streams.Stream(actor, cluster, access, "t", None)
    stream._read.add(kafka.TailBatch([record_at(0, 4)], {0: 5}, records_read=2))

    def fail(**kwargs):
        raise OperationalError

    with monkeypatch.context() as patched:
        patched.setattr(streams, "note_reading", fail)
        with pytest.raises(OperationalError):
            stream._note_read()
    stream._note_read()
    stream.close()
    with organization_scope(tenant.id):
        reading = RecordReading.objects.get()
    assert (reading.records, reading.records_read, reading.ranges) == (1, 2, [[0, 4, 4]])


def schemas_in(value, components):
    """The names of all schemas that a part of the OpenAPI file has in it, at any depth."""
    names, waiting = set(), [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            name = str(part.get("$ref", "")).removeprefix("#/components/schemas/")
            if name in components and name not in names:
                names.add(name)
                waiting.append(components[name])
            waiting += part.values()
    return names


def test_every_operation_that_shows_bytes_of_records_takes_the_right_to_read_them():
    document = json.loads(FILE.read_text())
    components = document["components"]["schemas"]
    permissions = {
        f"{method} {path}": operation["x-permission"]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method != "parameters" and "Message" in schemas_in(operation["responses"], components)
    }
    messages = "get /api/v1/clusters/{cluster_id}/topics/{name}/messages"
    assert permissions == {messages: "data.read", f"{messages}/stream": "data.read"}


def test_nothing_else_reads_records_for_people():
    readers = {
        str(file.relative_to(ROOT))
        for folder in ("billing", "console", "metering", "provisioning")
        for file in (ROOT / folder).rglob("*.py")
        if re.search(
            r"kafka\.(browse|tail)\(|provisioning\.kafka\.(pages|tail|ranges)\b", file.read_text()
        )
    }
    assert {name for name in readers if not name.startswith("provisioning/kafka/")} == {
        "provisioning/administration/api/streams.py",
        "provisioning/administration/services/messages.py",
    }


def test_reading_is_apart_from_looking_and_changing():
    for role in Role:
        may = Actor(ActorKind.API_KEY, "key_a", "org_a", role).may(Permission.DATA_READ)
        assert may is (role in MAY_READ)
