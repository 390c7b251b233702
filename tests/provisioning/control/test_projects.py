"""Clusters in projects: who may create, move and list them, and what ends with a lost right."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from console.base.accounts import services
from console.base.accounts.models import RoleBinding
from console.base.common.actor import Role, system_actor
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from provisioning.models import Cluster
from tests.console.cases import assert_problem
from tests.console.factories import make_project, make_project_key
from tests.provisioning.control.test_awake import read_events
from tests.provisioning.control.world import running_broker

LIMIT_S = 60


@pytest.fixture
def other(tenant):
    """Another project of the organization."""
    return make_project(tenant)


def ids(response):
    assert response.status_code == 200, response.content
    return {item["id"] for item in response.json()["items"]}


def test_a_cluster_goes_into_the_default_project_or_the_one_that_is_named(
    api, tenant, other, make_cluster
):
    plain, named = make_cluster(), make_cluster(project_id=other.pk)
    assert api().get(f"/clusters/{plain}").json()["project_id"] == tenant.project.pk
    assert api().get(f"/clusters/{named}").json()["project_id"] == other.pk
    assert ids(api().get("/clusters", query={"project_id": other.pk})) == {named}
    assert ids(api().get("/clusters")) == {plain, named}
    assert ids(api().get("/clusters", query={"project_id": "prj_aaaaaaaaaaaaaaaaaaaa"})) == set()


def test_who_develops_one_project_makes_clusters_there_and_sees_no_other(
    api, tenant, other, make_cluster
):
    hidden = make_cluster()
    own = api(make_project_key(tenant, other, Role.DEVELOPER))
    made = own.post("/clusters", {"name": "ours", "project_id": other.pk})
    assert made.status_code == 202, made.content
    assert ids(own.get("/clusters")) == {made.json()["resource_id"]}
    assert ids(own.get("/operations")) == {made.json()["id"]}
    assert_problem(own.get(f"/clusters/{hidden}/topics"), 404, "not_found")
    assert_problem(own.post("/clusters", {"name": "x"}), 403, "permission_denied")


def test_a_project_that_the_caller_may_not_see_is_unknown(api, tenant, other, other_tenant):
    own = api(make_project_key(tenant, other, Role.DEVELOPER))
    projects = [tenant.project.pk, other_tenant.project.pk, "prj_aaaaaaaaaaaaaaaaaaaa"]
    documents = []
    for project_id in projects:
        refused = own.post("/clusters", {"name": "x", "project_id": project_id})
        documents.append(assert_problem(refused, 422, "unknown_project"))
    assert documents[0]["errors"][0]["pointer"] == "/project_id"
    alike = [{**document, "request_id": ""} for document in documents]
    assert alike[0] == alike[1] == alike[2]


def test_a_cluster_is_moved_by_who_may_write_in_both(api, tenant, other, make_cluster):
    cluster_id = make_cluster()
    path, body = f"/clusters/{cluster_id}", {"project_id": other.pk}
    # This key may write in the other project, and only read in the cluster's.
    key = make_project_key(tenant, other, Role.DEVELOPER, organization_role=Role.VIEWER)
    assert_problem(api(key).patch(path, body), 403, "permission_denied")
    # This key may write in the cluster's project, and does not see the other.
    key = make_project_key(tenant, tenant.project, Role.DEVELOPER)
    assert_problem(api(key).patch(path, body), 422, "unknown_project")
    with organization_scope(tenant.id):
        account = RoleBinding.objects.get(project=tenant.project).principal_id
        actor = system_actor(tenant.id)
        fields = {"principal_type": "service_account", "principal_id": account}
        bind = {**fields, "project_id": other.pk}
        services.create_role_binding(actor=actor, role=Role.VIEWER, **bind)
    assert_problem(api(key).patch(path, body), 403, "permission_denied")
    with organization_scope(tenant.id):
        services.create_role_binding(actor=actor, role=Role.DEVELOPER, **bind)
    moved = api(key).patch(path, body)
    assert moved.status_code == 200, moved.content
    assert moved.json()["project_id"] == other.pk
    with organization_scope(tenant.id):
        assert Cluster.objects.get(pk=cluster_id).project_id == other.pk
        entry = AuditEntry.objects.get(action="cluster.update")
    assert set(entry.detail) == {"project_id"}
    assert entry.detail["project_id"]["to"] == other.pk


def test_a_cluster_does_not_go_to_another_organization(api, other_tenant, make_cluster):
    body = {"project_id": other_tenant.project.pk}
    refused = api().patch(f"/clusters/{make_cluster()}", body)
    assert_problem(refused, 422, "unknown_project")


def test_a_project_with_clusters_stays_and_deleted_ones_go_to_the_default_project(
    api, tenant, other, make_cluster, reconcile
):
    cluster_id = make_cluster(project_id=other.pk)
    path = f"/projects/{other.pk}"
    assert_problem(api().delete(path), 409, "project_not_empty")
    name = api().get(f"/clusters/{cluster_id}").json()["name"]
    assert api().delete(f"/clusters/{cluster_id}", query={"name": name}).status_code == 202
    reconcile(cluster_id)
    assert api().delete(path).status_code == 204
    shown = api().get(f"/clusters/{cluster_id}").json()
    assert shown["deleted_at"] is not None
    assert shown["project_id"] == tenant.project.pk


def test_roles_follow_a_cluster_that_moves(api, tenant, other, make_cluster):
    cluster_id = make_cluster()
    viewer = api(make_project_key(tenant, tenant.project, Role.VIEWER))
    assert viewer.get(f"/clusters/{cluster_id}").status_code == 200
    api().patch(f"/clusters/{cluster_id}", {"project_id": other.pk})
    assert_problem(viewer.get(f"/clusters/{cluster_id}"), 404, "not_found")
    assert_problem(viewer.get(f"/clusters/{cluster_id}/topics"), 404, "not_found")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", ["moved", "disabled", "unbound"])
def test_a_live_tail_ends_with_the_right_to_it(api, tenant, other, make_cluster, change):
    cluster_id = make_cluster()
    secret = make_project_key(tenant, tenant.project, Role.READER)

    def end():
        with organization_scope(tenant.id):
            binding = RoleBinding.objects.get()
            account, binding_id = binding.principal_id, binding.pk
        if change == "moved":
            done = api().patch(f"/clusters/{cluster_id}", {"project_id": other.pk})
        elif change == "disabled":
            done = api().patch(f"/service-accounts/{account}", {"disabled": True})
        else:
            done = api().delete(f"/role-bindings/{binding_id}")
        assert done.status_code in {200, 204}, done.content

    async def watch():
        headers = {"Authorization": f"Bearer {secret}"}
        address = f"/api/v1/clusters/{cluster_id}/topics/t/messages/stream"
        response: Any = await AsyncClient().get(address, headers=headers)
        assert response.status_code == 200
        await sync_to_async(end)()
        async with asyncio.timeout(LIMIT_S):
            return await read_events(response.streaming_content, 1)

    with running_broker(cluster_id):
        assert api().post(f"/clusters/{cluster_id}/topics", {"name": "t"}).status_code == 201
        assert asyncio.run(watch()) == [("end", {"reason": "access_ended"}, None)]


@pytest.mark.django_db(transaction=True)
def test_waiting_for_an_operation_ends_with_the_key(api, tenant, monkeypatch):
    from provisioning.clusters.api import clusters  # noqa: PLC0415

    secret = make_project_key(tenant, tenant.project, Role.DEVELOPER)
    made = api(secret).post("/clusters", {"name": "waited"}).json()
    monkeypatch.setattr(clusters, "RENEW_EVERY_S", 0.0)
    monkeypatch.setattr(clusters, "renew_actor", lambda actor: None)
    response = api(secret).get(f"/operations/{made['id']}", query={"wait": 60})
    assert_problem(response, 401, "not_authenticated")
