"""Routes of provisioning. The cluster that they name is asleep."""

from __future__ import annotations

from brokers.metadata_records import Acl, QuotaEntity
from console.base.common.actor import Permission, system_actor
from provisioning.administration.acl_ids import acl_id
from provisioning.administration.services import acls, credentials, quotas, topics
from provisioning.cells import cell_store
from provisioning.clusters.services import clusters
from provisioning.models import Cluster
from provisioning.reconciling import service as reconciling
from tests.console.factories import Tenant
from tests.console.scopes import seeing_rows_of
from tests.console.walk.routes import Parameters, Route
from tests.provisioning.control.world import prepare_cell, put_sample, put_status

CLUSTER = "/api/v1/clusters/<id>"
INSIDE = "/api/v1/clusters/<cluster_id>"
TOPIC = f"{INSIDE}/topics/<name>"
DELETED = f"{INSIDE}/deleted-topics/<topic>"
QUOTA = {"user": "walk", "produce_bytes_per_second": 1024}
GROUP = f"{INSIDE}/groups/<group>"
READ, WRITE = Permission.READ, Permission.WRITE
DATA_READ = Permission.DATA_READ
# The status of requests that need brokers of the sleeping cluster.
ASLEEP = frozenset({409})
ACL = {
    "principal": "User:walk",
    "resource_type": "TOPIC",
    "resource_name": "walk",
    "operation": "READ",
}
TEMPLATE = {"template": "producer", "principal": "User:walk", "topic": "walk"}


def make_cluster(tenant: Tenant) -> Cluster:
    """Makes a cluster without an unfinished operation."""
    prepare_cell()
    with seeing_rows_of(tenant.id):
        operation = clusters.create_cluster(
            actor=system_actor(tenant.id), name="walked", deletion_protection=False
        )
        cluster_id = operation.cluster.pk
        reconciling.reconcile_cluster(organization_id=tenant.id, cluster_id=cluster_id)
        put_status(cluster_id, "running")
        reconciling.reconcile_cluster(organization_id=tenant.id, cluster_id=cluster_id)
        put_status(cluster_id, "asleep")
        return Cluster.objects.get(pk=cluster_id)


def nothing_but_a_cell(tenant: Tenant) -> Parameters:
    """Makes a cell, for paths without parameters."""
    prepare_cell()
    return {}


def a_cluster(tenant: Tenant) -> Parameters:
    """Makes a cluster, for paths that end with its id."""
    return {"id": make_cluster(tenant).pk}


def a_deleted_cluster(tenant: Tenant) -> Parameters:
    """Makes a deleted cluster that can be restored."""
    cluster = make_cluster(tenant)
    with seeing_rows_of(tenant.id):
        clusters.delete_cluster(actor=system_actor(tenant.id), cluster=cluster, name="walked")
        reconciling.reconcile_cluster(organization_id=tenant.id, cluster_id=cluster.pk)
        put_status(cluster.pk, "asleep", 2)
        reconciling.reconcile_cluster(organization_id=tenant.id, cluster_id=cluster.pk)
    return {"id": cluster.pk}


def a_suspended_cluster(tenant: Tenant) -> Parameters:
    """Makes a suspended cluster that can be resumed."""
    cluster = make_cluster(tenant)
    with seeing_rows_of(tenant.id):
        clusters.suspend_cluster(actor=system_actor(tenant.id), cluster=cluster)
    return {"id": cluster.pk}


def an_operation(tenant: Tenant) -> Parameters:
    """Makes a finished operation."""
    cluster = make_cluster(tenant)
    with seeing_rows_of(tenant.id):
        return {"id": cluster.operations.get().pk}


def in_a_cluster(tenant: Tenant) -> Parameters:
    """Makes a cluster, for paths of resources within it."""
    return {"cluster_id": make_cluster(tenant).pk}


def a_topic(tenant: Tenant) -> Parameters:
    """Makes a topic."""
    cluster = make_cluster(tenant)
    with seeing_rows_of(tenant.id):
        new_topic = topics.NewTopic("walked-topic")
        topics.create_topic(actor=system_actor(tenant.id), cluster=cluster, new_topic=new_topic)
    return {"cluster_id": cluster.pk, "name": "walked-topic"}


def a_deleted_topic(tenant: Tenant) -> Parameters:
    """Makes a deleted topic that can be restored."""
    topic = a_topic(tenant)
    store = cell_store().cluster(topic["cluster_id"])
    store.delete_topic(topic["name"])
    (deleted,) = store.deleted_topics()
    return {"cluster_id": topic["cluster_id"], "topic": deleted.id}


def a_quota(tenant: Tenant) -> Parameters:
    """Makes a quota of a user."""
    cluster = make_cluster(tenant)
    with seeing_rows_of(tenant.id):
        quota = quotas.set_quota(
            actor=system_actor(tenant.id),
            cluster=cluster,
            entity=QuotaEntity(user="walk"),
            values={"connections": 1},
        )
    return {"cluster_id": cluster.pk, "id": quota.id}


def a_credential(tenant: Tenant) -> Parameters:
    """Makes a credential."""
    cluster = make_cluster(tenant)
    with seeing_rows_of(tenant.id):
        created = credentials.create_credential(
            actor=system_actor(tenant.id), cluster=cluster, name="walked", role="full"
        )
    return {"cluster_id": cluster.pk, "id": created.credential.pk}


def an_acl(tenant: Tenant) -> Parameters:
    """Makes an entry of the access control list."""
    cluster = make_cluster(tenant)
    entry = Acl(**ACL)
    with seeing_rows_of(tenant.id):
        acls.create_acls(actor=system_actor(tenant.id), cluster=cluster, acls=[entry])
    return {"cluster_id": cluster.pk, "id": acl_id(entry)}


def a_group(tenant: Tenant) -> Parameters:
    """Writes the sample of a consumer group, as the keeper does before a cluster goes to sleep."""
    cluster = make_cluster(tenant)
    group: dict[str, object] = {
        "group": "walked-group",
        "state": "Empty",
        "type": "classic",
        "protocol": "",
        "coordinator": None,
        "members": [],
        "partitions": [],
        "lag": 0,
        "lag_seconds": 0.0,
    }
    put_sample(cluster.pk, 1_700_000_000_000, {"groups": [group]})
    return {"cluster_id": cluster.pk, "group": "walked-group"}


ROUTES = [
    Route("GET", "/api/v1/regions", Permission.BELONG),
    Route("GET", "/api/v1/operations", READ, parameters=an_operation, in_project=True),
    Route("GET", "/api/v1/operations/<id>", READ, parameters=an_operation, in_project=True),
    Route("GET", "/api/v1/clusters", READ, parameters=a_cluster),
    Route("POST", "/api/v1/clusters", WRITE, body={"name": "new"}, parameters=nothing_but_a_cell),
    Route("GET", CLUSTER, READ, parameters=a_cluster),
    Route("PATCH", CLUSTER, WRITE, body={"idle_timeout_s": 10}, parameters=a_cluster),
    Route("DELETE", CLUSTER, WRITE, query={"name": "walked"}, parameters=a_cluster),
    Route("POST", f"{CLUSTER}:undelete", WRITE, body={}, parameters=a_deleted_cluster),
    Route("POST", f"{CLUSTER}:wake", WRITE, body={}, parameters=a_cluster),
    Route("POST", f"{CLUSTER}:sleep", WRITE, body={}, parameters=a_cluster),
    Route("POST", f"{CLUSTER}:suspend", WRITE, body={}, parameters=a_cluster),
    Route("POST", f"{CLUSTER}:resume", WRITE, body={}, parameters=a_suspended_cluster),
    Route("GET", f"{INSIDE}/topics", READ, parameters=a_topic),
    Route("POST", f"{INSIDE}/topics", WRITE, body={"name": "new"}, parameters=in_a_cluster),
    Route("GET", TOPIC, READ, parameters=a_topic),
    Route("PATCH", TOPIC, WRITE, body={"configs": {"retention.ms": 1}}, parameters=a_topic),
    Route("DELETE", TOPIC, WRITE, parameters=a_topic),
    Route("GET", f"{TOPIC}/partitions", READ, parameters=a_topic),
    Route("POST", f"{TOPIC}/partitions", WRITE, body={"count": 2}, parameters=a_topic),
    Route("GET", f"{TOPIC}/messages", DATA_READ, parameters=a_topic, succeeds=ASLEEP),
    Route(
        "POST",
        f"{TOPIC}/messages",
        WRITE,
        body={"value": "x"},
        parameters=a_topic,
        succeeds=ASLEEP,
    ),
    Route("GET", f"{TOPIC}/messages/stream", DATA_READ, parameters=a_topic, succeeds=ASLEEP),
    Route(
        "POST",
        f"{TOPIC}:delete-records",
        WRITE,
        body={"partitions": [{"partition": 0, "before_offset": 0}]},
        parameters=a_topic,
        succeeds=ASLEEP,
    ),
    Route(
        "POST",
        f"{TOPIC}:skip-damaged",
        WRITE,
        body={"partition": 0, "first_offset": 0},
        parameters=a_topic,
        succeeds=ASLEEP,
    ),
    Route("GET", f"{INSIDE}/deleted-topics", READ, parameters=a_deleted_topic),
    Route("GET", DELETED, READ, parameters=a_deleted_topic),
    Route("DELETE", DELETED, WRITE, query={"name": "walked-topic"}, parameters=a_deleted_topic),
    Route("POST", f"{DELETED}:undelete", WRITE, body={}, parameters=a_deleted_topic),
    Route("GET", f"{INSIDE}/orphaned-topics", READ, parameters=in_a_cluster),
    Route(
        "POST",
        f"{INSIDE}/orphaned-topics/<topic>:attach",
        WRITE,
        body={},
        parameters=a_deleted_topic,
        succeeds=frozenset({404}),
    ),
    Route("GET", f"{INSIDE}/quotas", READ, parameters=a_quota),
    Route("PUT", f"{INSIDE}/quotas", WRITE, body=QUOTA, parameters=in_a_cluster),
    Route("DELETE", f"{INSIDE}/quotas", WRITE, query={"user": "walk"}, parameters=a_quota),
    Route("GET", f"{INSIDE}/quotas/<id>", READ, parameters=a_quota),
    Route("DELETE", f"{INSIDE}/quotas/<id>", WRITE, parameters=a_quota),
    Route("GET", f"{INSIDE}/credentials", READ, parameters=a_credential),
    Route(
        "POST",
        f"{INSIDE}/credentials",
        WRITE,
        body={"name": "new", "role": "none"},
        parameters=in_a_cluster,
    ),
    Route("GET", f"{INSIDE}/credentials/<id>", READ, parameters=a_credential),
    Route(
        "PATCH",
        f"{INSIDE}/credentials/<id>",
        WRITE,
        body={"name": "renamed"},
        parameters=a_credential,
    ),
    Route("DELETE", f"{INSIDE}/credentials/<id>", WRITE, parameters=a_credential),
    Route(
        "POST",
        f"{INSIDE}/credentials/<id>:rotate",
        WRITE,
        body={"overlap_s": 60},
        parameters=a_credential,
    ),
    Route("GET", f"{INSIDE}/acls", READ, parameters=an_acl),
    Route("POST", f"{INSIDE}/acls", WRITE, body=ACL, parameters=in_a_cluster),
    Route(
        "DELETE", f"{INSIDE}/acls", WRITE, query={"principal": "User:a"}, parameters=in_a_cluster
    ),
    Route("GET", f"{INSIDE}/acls/<id>", READ, parameters=an_acl),
    Route("DELETE", f"{INSIDE}/acls/<id>", WRITE, parameters=an_acl),
    Route("POST", f"{INSIDE}/acls:batch", WRITE, body={"items": [ACL]}, parameters=in_a_cluster),
    Route("POST", f"{INSIDE}/acls:apply-template", WRITE, body=TEMPLATE, parameters=in_a_cluster),
    Route("GET", "/api/v1/acl-templates", READ),
    Route("GET", "/api/v1/metrics", READ, parameters=a_cluster, in_project=True),
    Route("GET", f"{INSIDE}/metrics", READ, parameters=in_a_cluster),
    Route("GET", f"{INSIDE}/first-steps", READ, parameters=in_a_cluster),
    Route("GET", f"{INSIDE}/unbilled-traffic", READ, parameters=in_a_cluster),
    Route("GET", f"{INSIDE}/groups", READ, parameters=a_group),
    Route("GET", GROUP, READ, parameters=a_group),
    Route("DELETE", GROUP, WRITE, parameters=a_group, succeeds=ASLEEP),
    Route(
        "POST",
        f"{GROUP}/reset-offsets",
        WRITE,
        body={"to": "earliest"},
        parameters=a_group,
        succeeds=ASLEEP,
    ),
]
