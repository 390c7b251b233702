"""Who may watch a live tail: nobody of another organization, and nobody whose access has ended."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from console.base.accounts.models import ApiKey, Membership, Organization
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.concurrency import concurrency
from console.base.common.tenancy import organization_scope
from provisioning.administration.api import streams
from provisioning.kafka.tail import BATCH_S
from provisioning.models import Cluster
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import make_member, make_project, make_project_key
from tests.provisioning.control.world import running_broker

LIMIT_S = 60


@pytest.fixture
def stream(api, cluster_id):
    """A live tail that a broker serves; its address below `/api/v1`."""
    topics = f"/clusters/{cluster_id}/topics"
    with running_broker(cluster_id):
        made = api().post(topics, {"name": "t"})
        assert made.json()["status"]["conditions"][0]["status"] == "true", made.content
        yield f"{topics}/t/messages/stream"


def nameless(response):
    return {**response.json(), "request_id": ""}


def test_another_organizations_tail_is_as_absent_as_none(tenant, other_tenant, stream, cluster_id):
    foreign = ApiClient(other_tenant.key).get(stream)
    absent = ApiClient(other_tenant.key).get(stream.replace(cluster_id, "cl_" + "a" * 20))
    assert_problem(foreign, 404, "not_found")
    assert nameless(foreign) == nameless(absent)
    # Knowing positions does not help either.
    headers = {"Last-Event-ID": streams.write_id({0: 0})}
    assert nameless(ApiClient(other_tenant.key).get(stream, headers=headers)) == nameless(absent)
    assert concurrency().used("live_tails", other_tenant.id) == 0


def watchers(tenant, cluster_id):
    """(client, rows, change) for each way in which access ends; a change of None deletes the rows.

    The last change ends the access of everybody.
    """
    keys = ApiKey.objects.filter(organization_id=tenant.id)
    bound = make_project_key(tenant, tenant.project, Role.READER)
    other = make_project(tenant)
    member = make_member(tenant, "gone@acme.example", Role.READER)
    roles = {role: keys.filter(role=role, service_account=None) for role in Role}
    past = now() - timedelta(seconds=1)
    clusters = Cluster.objects.filter(pk=cluster_id)
    organizations = Organization.objects.filter(pk=tenant.id)
    return [
        (ApiClient(tenant.keys[Role.ADMIN]), roles[Role.ADMIN], {"revoked_at": now()}),
        (ApiClient(tenant.keys[Role.READER]), roles[Role.READER], {"expires_at": past}),
        (ApiClient(tenant.keys[Role.DEVELOPER]), roles[Role.DEVELOPER], {"role": Role.VIEWER}),
        (signed_in(tenant.owner), tenant.owner.sessions.all(), {"expires_at": past}),
        (signed_in(member.user), Membership.objects.filter(pk=member.pk), None),
        (ApiClient(bound), clusters, {"project": other}),
        (ApiClient(tenant.key), organizations, {"allowed_addresses": ["192.0.2.0/24"]}),
    ]


def end_access(tenant, rows, change):
    with organization_scope(tenant.id):
        assert rows.delete()[0] if change is None else rows.update(**change)


async def watch(client, stream):
    """Opens the tail as a client; returns what it streams."""
    browser = AsyncClient()
    browser.cookies = client.client.cookies
    headers = {"Authorization": f"Bearer {client.key}"} if client.key else {}
    response: Any = await browser.get(f"/api/v1{stream}", headers=headers)
    assert response.status_code == 200
    return response.streaming_content


@pytest.mark.django_db(transaction=True)
def test_a_tail_ends_however_access_to_it_ends(tenant, stream, cluster_id, monkeypatch):
    monkeypatch.setattr(streams, "LOOK_EVERY_S", 0.0)

    async def follow(client, rows, change):
        parts = await watch(client, stream)
        assert b"event: live" in await anext(parts)
        # The tail goes on while access stays.
        assert await anext(parts) == b": still live\n\n"
        await sync_to_async(end_access)(tenant, rows, change)
        async with asyncio.timeout(LIMIT_S):
            return [part async for part in parts if part != b": still live\n\n"]

    for client, rows, change in watchers(tenant, cluster_id):
        assert asyncio.run(follow(client, rows, change)) == [
            b'event: end\ndata: {"reason":"access_ended"}\n\n'
        ]
    assert concurrency().used("live_tails", tenant.id) == 0


def test_access_is_checked_often_enough_to_end_within_five_seconds():
    assert streams.LOOK_EVERY_S + BATCH_S <= 5 - 1
