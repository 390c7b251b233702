"""What closing an organization does to its clusters, and what its archive has of them."""

import io
import json
import zipfile

import pytest

from console.base.accounts.errors import OrganizationClosed
from console.base.accounts.models import Organization
from console.base.accounts.signals import organization_closed
from console.base.common.actor import system_actor
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope
from provisioning.choices import OperationType
from provisioning.clusters.services import clusters
from provisioning.models import Cluster, Operation
from tests.console import cases
from tests.console.browsers import signed_in
from tests.console.clients import content_of

CLOSE = "/organizations/current:close"


def test_every_cluster_goes_protected_ones_too(tenant, api, make_cluster, cluster_id):
    protected = make_cluster(deletion_protection=True)
    pending = api().post("/clusters", {"name": "pending"}).json()["resource_id"]
    gone = make_cluster()
    name = api().get(f"/clusters/{gone}").json()["name"]
    assert api().delete(f"/clusters/{gone}", query={"name": name}).status_code == 202
    browser = signed_in(tenant.owner)
    assert browser.post(CLOSE, {"name": "Acme"}).status_code == 200
    with organization_scope(tenant.id):
        assert not Cluster.objects.all().active().exists()
        for deleted_id in (cluster_id, protected, pending):
            latest = Operation.objects.filter(cluster=deleted_id).latest("created_at")
            assert latest.type == OperationType.DELETE_CLUSTER
        assert Operation.objects.filter(cluster=gone, type="delete_cluster").count() == 1


def test_the_worker_finishes_the_end(tenant, cluster_id, reconcile):
    browser = signed_in(tenant.owner)
    browser.post(CLOSE, {"name": "Acme"})
    reconcile(cluster_id)
    assert browser.get(f"/clusters/{cluster_id}").json()["status"]["phase"] == "deleted"


def test_a_closed_organization_gets_no_cluster_and_none_back(tenant, cluster_id):
    """A request that began before the organization was closed is refused once it has its row."""
    with organization_scope(tenant.id):
        actor = system_actor(tenant.id)
        clusters.delete_every_cluster(actor=actor)
        Operation.objects.update(state="succeeded")
        Organization.objects.update(closed_at=now())
        with pytest.raises(OrganizationClosed):
            clusters.create_cluster(actor=actor, name="late")
        with pytest.raises(OrganizationClosed):
            clusters.undelete_cluster(actor=actor, cluster=Cluster.objects.get(pk=cluster_id))


def test_a_listener_is_registered_once(tenant, cluster_id):
    with organization_scope(tenant.id):
        organization_closed.send(sender=Organization, actor=system_actor(tenant.id))
        assert Operation.objects.filter(cluster=cluster_id, type="delete_cluster").count() == 1


def test_the_archive_has_topics_and_acls(api, tenant, cluster_id):
    assert api().post("/clusters", {"name": "pending"}).status_code == 202
    path = f"/clusters/{cluster_id}"
    topic = {"name": "orders", "partitions": 3, "configs": {"retention.ms": "60000"}}
    assert api().post(f"{path}/topics", topic).status_code == 201
    acl = {
        "principal": "User:a",
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "pattern_type": "LITERAL",
        "operation": "READ",
        "permission": "ALLOW",
    }
    assert api().post(f"{path}/acls", acl).status_code == 201
    response = api().get("/organizations/current/export")
    with zipfile.ZipFile(io.BytesIO(content_of(response))) as file:
        (shown,) = map(json.loads, file.read("topics.jsonl").splitlines())
        (entry,) = map(json.loads, file.read("acls.jsonl").splitlines())
        credentials = file.read("provisioning_credential.jsonl")
    assert (shown["cluster_id"], shown["name"], shown["partitions"]) == (cluster_id, "orders", 3)
    assert shown["configs"] == {"retention.ms": "60000"}
    assert (entry["principal"], entry["resource_name"]) == ("User:a", "orders")
    assert b"verifier" not in credentials
    cases.assert_problem(api(None).get("/organizations/current/export"), 401)
