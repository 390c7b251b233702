"""Records that go by REST are metered for the key or member that asked, through to the costs.

The broker, the agent and the ingest are real. What they come to is held against the batches that
lie on storage, which are read without the engine.
"""

import asyncio
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import AsyncClient

from billing.catalog import Catalog, MeterPrice
from billing.models import PriceVersion
from brokers.secrets import SUPER_USER
from console.base.accounts.models import ApiKey
from console.base.accounts.principals import names_of_principals
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from metering.agent.source import CellSource
from metering.services.ingest import ingest_usage
from provisioning import kafka
from provisioning.administration.api import streams
from tests.brokers.logscan import LogScan
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import make_member, make_project, make_project_key
from tests.metering.console.meter import Meter
from tests.provisioning.control.world import access_of, running_broker

# Each byte costs a cent, and none is free.
A_CENT_A_BYTE = Decimal(2**30) / 100
LIMIT_S = 60
SERVICE = f"User:{SUPER_USER}"


class OneCluster(CellSource):
    """The cell of the tests, of which all tests share the metadata, with one of its clusters."""

    def __init__(self, cluster_id):
        cell = config().cell
        super().__init__(metadata=cell.metadata, dfs=cell.dfs, bucket=cell.bucket)
        self.cluster_id = cluster_id

    def specs(self):
        return {self.cluster_id: super().specs()[self.cluster_id]}


@pytest.fixture
def dear(monkeypatch):
    """Prices at which the bytes of a few records cost something."""
    prices = {
        meter: MeterPrice(meter, A_CENT_A_BYTE, "GiB", free_units=0, free_unit="GiB")
        for meter in ("ingress_bytes", "egress_bytes")
    }
    prices |= {
        meter: MeterPrice(meter, Decimal(0), unit, free_units=0, free_unit=unit)
        for meter, unit in (
            ("storage_byte_minutes", "GiB-month"),
            ("partition_minutes", "partition-hour"),
        )
    }
    catalog = Catalog("prv_dear", "USD", prices)
    monkeypatch.setattr(PriceVersion, "catalog", lambda _: catalog)


@pytest.fixture
def keys(tenant):
    """The principal of the key of each role."""
    with organization_scope(tenant.id):
        rows = ApiKey.objects.filter(service_account=None)
        return {row.role: f"ApiKey:{row.pk}" for row in rows}


def log_bytes(cluster_id, tmp_path):
    """Bytes of all batches of the topic `t`, by a walk over what lies on storage."""
    settings = config().cell
    bucket = Path(settings.bucket.removeprefix("file://"))
    scan = LogScan(settings.dfs, bucket, copied_metadata(tmp_path), cluster_id)
    return sum(batch.size for batch in scan.batches("t", 0))


def copied_metadata(tmp_path):
    """A copy of the cell's metadata, made by a process of its own.

    Python's SQLite is another library than the engine's: to open a file that the engine has open in
    this process would take its locks away.
    """
    copy = tmp_path / "metadata.sqlite"
    original = config().cell.metadata.removeprefix("sqlite://")
    backup = (
        "import sqlite3, sys; of = map(sqlite3.connect, sys.argv[1:]); next(of).backup(next(of))"
    )
    subprocess.run([sys.executable, "-c", backup, original, copy], check=True)
    return copy


def meter_all(cluster_id, tmp_path):
    """Runs the meter over what the cluster's broker left, and takes its files in; all rows."""
    meter = Meter(
        OneCluster(cluster_id),
        tmp_path / "progress",
        str(tmp_path / "usage"),
        cell=config().cell.id,
    )
    meter.run_pass(now())
    assert ingest_usage(store=meter.store).damaged == 0
    return meter.rows()


def by_principal(rows, meter, *, billed):
    sums: dict[str, int] = {}
    for row in rows:
        if (row["meter"], row["billed"]) == (meter, billed) and row["principal"]:
            sums[row["principal"]] = sums.get(row["principal"], 0) + row["quantity"]
    return sums


async def watch_all(topic, key, records):
    """Tails the topic from its beginning until so many records were shown."""
    headers = {"Authorization": f"Bearer {key}", "Last-Event-ID": streams.write_id({0: 0})}
    response: Any = await AsyncClient().get(f"/api/v1{topic}/messages/stream", headers=headers)
    assert response.status_code == 200
    stream = response.streaming_content
    text = ""
    async with asyncio.timeout(LIMIT_S):
        async for chunk in stream:
            text += chunk.decode()
            if text.count("event: message") == records:
                break
    await stream.aclose()


@pytest.mark.django_db(transaction=True)
def test_rest_is_metered_for_who_asked_through_to_the_costs(
    tenant, api, cluster_id, path, keys, dear, tmp_path
):
    member = make_member(tenant, "reader@acme.example", Role.READER)
    topic = f"{path}/topics/t"
    with running_broker(cluster_id):
        assert api().post(f"{path}/topics", {"name": "t", "partitions": 1}).status_code == 201
        for number in range(3):
            made = api().post(f"{topic}/messages", {"value": f"record {number}"})
            assert made.status_code == 201, made.content
        # A page of a member; one of a key that a filter leaves empty; a live tail.
        page = signed_in(member.user).get(f"{topic}/messages", query={"from": "oldest"})
        assert len(page.json()["items"]) == 3
        query = {"from": "oldest", "filter": "nothing like it"}
        page = ApiClient(tenant.keys[Role.READER]).get(f"{topic}/messages", query=query)
        assert page.json()["items"] == []
        asyncio.run(watch_all(topic, tenant.keys[Role.DEVELOPER], 3))
        # What the service reads for itself, and what moves no records.
        assert len(kafka.browse(access_of(cluster_id), "t", kafka.Browse("oldest")).records) == 3
        assert api().get(f"{path}/groups").status_code == 200
        assert api().get(topic).status_code == 200
    rows = meter_all(cluster_id, tmp_path)
    size = log_bytes(cluster_id, tmp_path)
    of_member = f"Member:{member.user_id}"
    readers = {of_member, keys[Role.READER], keys[Role.DEVELOPER]}
    assert by_principal(rows, "ingress_bytes", billed=True) == {keys[Role.OWNER]: size}
    assert by_principal(rows, "egress_bytes", billed=True) == dict.fromkeys(readers, size)
    assert by_principal(rows, "egress_bytes", billed=False) == {SERVICE: size}

    names = {
        keys[Role.OWNER]: name_of(tenant, Role.OWNER),
        keys[Role.READER]: name_of(tenant, Role.READER),
        keys[Role.DEVELOPER]: name_of(tenant, Role.DEVELOPER),
        of_member: "reader@acme.example",
    }
    costs = api().get("/costs").json()
    shares = {share["principal"]: share for share in costs["by_principal"]}
    assert {who: share["amount_minor"] for who, share in shares.items()} == {
        keys[Role.OWNER]: size,
        **dict.fromkeys(readers, size),
    }
    assert {who: share["principal_name"] for who, share in shares.items()} == names
    assert costs["total_minor"] == 4 * size
    usage = api().get("/usage", query={"group_by": "principal", "granularity": "minute"}).json()
    shown = {item["principal"]: item["principal_name"] for item in usage["items"]}
    assert shown.items() >= {**names, SERVICE: "Freshet itself"}.items()


def name_of(tenant, role):
    with organization_scope(tenant.id):
        return ApiKey.objects.get(service_account=None, role=role).name


@pytest.mark.django_db(transaction=True)
def test_who_sees_one_project_sees_no_names_of_people(
    tenant, api, cluster_id, path, keys, dear, tmp_path
):
    with running_broker(cluster_id):
        assert api().post(f"{path}/topics", {"name": "t", "partitions": 1}).status_code == 201
        assert api().post(f"{path}/topics/t/messages", {"value": "x"}).status_code == 201
    meter_all(cluster_id, tmp_path)
    narrow = ApiClient(make_project_key(tenant, tenant.project, Role.VIEWER))
    [share] = narrow.get("/costs").json()["by_principal"]
    assert (share["principal"], share["principal_name"]) == (keys[Role.OWNER], None)
    elsewhere = ApiClient(make_project_key(tenant, make_project(tenant), Role.VIEWER))
    assert elsewhere.get("/costs").json()["by_principal"] == []


@pytest.mark.django_db(transaction=True)
def test_a_quota_for_everybody_holds_by_rest_too(tenant, api, cluster_id, path):
    """It has a bucket for each key, and the service's own reads go on."""
    topic = f"{path}/topics/t"
    with running_broker(cluster_id):
        assert api().post(f"{path}/topics", {"name": "t", "partitions": 1}).status_code == 201
        quota = {"user": "", "produce_bytes_per_second": 1}
        made = api().request("PUT", f"{path}/quotas", quota)
        assert made.status_code in {200, 201}, made.content
        while (answer := api().post(f"{topic}/messages", {"value": "x"})).status_code == 201:
            pass
        assert_problem(answer, 429, "quota_used_up")
        assert int(answer.headers["Retry-After"]) > 0
        other = ApiClient(tenant.keys[Role.DEVELOPER])
        assert other.post(f"{topic}/messages", {"value": "x"}).status_code == 201
        kafka.produce(access_of(cluster_id), "t", kafka.NewRecord(value=b"x"))


@pytest.mark.django_db(transaction=True)
def test_a_quota_of_a_key_holds_by_rest(tenant, api, cluster_id, path, keys):
    """By the name that bills and the audit log have for it; nobody else has it."""
    topic = f"{path}/topics/t"
    with running_broker(cluster_id):
        assert api().post(f"{path}/topics", {"name": "t", "partitions": 1}).status_code == 201
        quota = {"user": keys[Role.OWNER], "produce_bytes_per_second": 1}
        made = api().request("PUT", f"{path}/quotas", quota)
        assert made.status_code in {200, 201}, made.content
        while (answer := api().post(f"{topic}/messages", {"value": "x"})).status_code == 201:
            pass
        assert_problem(answer, 429, "quota_used_up")
        other = ApiClient(tenant.keys[Role.DEVELOPER])
        for _ in range(20):
            assert other.post(f"{topic}/messages", {"value": "x"}).status_code == 201


def test_a_name_is_nobodys_of_another_organization(tenant, other_tenant, api, path, in_tenant):
    """A broker that was taken over may write any principal into its lane."""
    made = api().post(f"{path}/credentials", {"name": "app", "role": "none"}).json()
    foreign = f"Member:{other_tenant.owner.pk}"
    own = f"Member:{tenant.owner.pk}"
    asked = [foreign, own, made["principal"], "Member:usr_none", "Others:*", "User:", "Else:x"]
    fixed = {made["principal"]: "app", "Others:*": "Others, counted together"}
    assert names_of_principals(tenant.id, asked, of_people=True) == {
        own: tenant.owner.email,
        **fixed,
    }
    assert names_of_principals(tenant.id, asked, of_people=False) == fixed
