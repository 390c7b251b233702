"""Makes tenants with one resource of each kind, and knows the texts that only they have.

The first tenant sends requests with ids of the second one: nothing that names the second one may be
in an answer, and no row of it may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime

from django.apps import apps
from django.db import connection
from django.db.models import Model
from psycopg import sql

from billing.budgets.changes import create_budget
from billing.services import numbers
from billing.services.documents import store_document
from billing.services.issuing import issue_month
from billing.services.store import document_store
from brokers.metadata import ClusterStore
from brokers.metadata_records import Acl, QuotaEntity
from console.alerts.services import create_alert
from console.base.accounts import services as accounts
from console.base.accounts.choices import PrincipalType
from console.base.accounts.models import Organization, UserSession
from console.base.common.actor import Actor, Role, system_actor
from console.base.common.tenancy import system_scope
from console.base.limits import services as limits
from console.incidents.models import Incident
from metering.models import UsageRow
from provisioning.administration.acl_ids import acl_id
from provisioning.administration.services import credentials
from provisioning.administration.services.quotas import ShownQuota
from provisioning.cells import cell_store
from provisioning.clusters.services import clusters
from provisioning.models import Cluster
from provisioning.reconciling import service as reconciling
from tests.billing.world import invoices_of
from tests.console.browsers import signed_in
from tests.console.clients import ApiClient
from tests.console.factories import Tenant, make_member, make_tenant
from tests.console.fuzzing.described import lists, parameters_of
from tests.console.scopes import seeing_rows_of
from tests.metering.console.world import Used, name_topic, publish_day
from tests.provisioning.control.world import prepare_cell, put_sample, put_status

# Members of queries and bodies that take an id or a name of a tenant's resource.
NAMED = {
    "actor",
    "client_id",
    "cluster_id",
    "cursor",
    "organization_id",
    "principal",
    "principal_id",
    "project_id",
    "resource_id",
    "service_account_id",
    "target_id",
    "topic_id",
    "user",
}
TOPIC_IDS = {"acme": "aa" * 16, "globex": "bb" * 16}
SAMPLE_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Planted:
    """A tenant with one resource of each kind; the names that it chose begin with `word`."""

    tenant: Tenant
    word: str
    # The collection's name in paths → the id of an item in it: `clusters` → `cl_…`.
    ids: dict[str, str]
    # A member of queries and bodies → a value of the tenant's: `project_id` → `prj_…`.
    members: Mapping[str, str]
    # The path of each list with more than one item → the cursor behind its first item.
    cursors: Mapping[str, str] = field(default_factory=dict)

    @property
    def idempotency_key(self) -> str:
        """The Idempotency-Key with which the tenant made its last project."""
        return f"{self.word}-idempotency-key"

    def cursor_of(self, path: str) -> str:
        """Returns a cursor of a list, or of another list if that one has only one item."""
        return self.cursors.get(path, self.cursors["/api/v1/api-keys"])

    @property
    def store(self) -> ClusterStore:
        """The metadata of the tenant's cluster."""
        return cell_store().cluster(self.ids["clusters"])

    def marks(self) -> set[str]:
        """Returns texts that only this tenant has: ids of its rows, names that it chose, secrets.

        Ids of at most 12 characters are left out, as others may have them too.
        """
        marks = {self.word, self.tenant.id, self.tenant.owner.pk, TOPIC_IDS[self.word]}
        marks |= set(self.tenant.keys.values()) | set(self.cursors.values())
        marks |= {name for name in self.ids.values() if len(name) > 12}
        with seeing_rows_of(self.tenant.id):
            for model in _tables_of_tenants():
                rows = model._base_manager.filter(organization_id=self.tenant.id)
                marks |= {pk for pk in map(str, rows.values_list("pk", flat=True)) if len(pk) > 12}
        return marks

    def rows(self) -> dict[str, str]:
        """Returns a digest of the tenant's rows by table."""
        tables = [model._meta.db_table for model in _tables_of_tenants()]
        digest = sql.SQL(
            "SELECT {}, md5(string_agg(r::text, chr(10) ORDER BY r::text)) FROM {} r"
            " WHERE organization_id = {}"
        )
        queries = [digest.format(t, sql.Identifier(t), self.tenant.id) for t in tables]
        with system_scope(), connection.cursor() as cursor:
            cursor.execute(sql.SQL(" UNION ALL ").join(queries))
            return dict(cursor.fetchall())

    def metadata(self) -> dict[str, object]:
        """Returns all that the metadata store has of the tenant's cluster."""
        cell, store = cell_store(), self.store
        cluster_id = self.ids["clusters"]
        return {
            "spec": cell.spec(cluster_id),
            "wake": cell.wake(cluster_id),
            "topics": store.topics(),
            "configs": store.topic_configs(),
            "deleted topics": store.deleted_topics(),
            "acls": store.list_acls(),
            "users": store.list_users(),
            "quotas": store.quotas(),
            "traffic": store.traffic_limit(),
        }

    def mend(self) -> None:
        """Makes again what a request deleted from the metadata, which have no transactions."""
        plant_metadata(self.store, self.word)
        deleted = [
            topic for topic in self.store.deleted_topics() if topic.name == f"{self.word}-gone"
        ]
        self.ids["deleted-topics"] = self.ids["orphaned-topics"] = deleted[0].id


def plant_tenant(name: str, *, document: bool = True) -> Planted:
    """Makes a tenant with one resource of each kind, within the caller's transaction.

    Without `document` the invoice has no PDF yet.
    """
    tenant, word = make_tenant(name), name.lower()
    actor = system_actor(tenant.id)
    # A session of the owner, for the collection `sessions`.
    signed_in(tenant.owner)
    session = UserSession.objects.filter(user=tenant.owner).latest("created_at").pk
    cluster = _plant_cluster(tenant, word)
    with seeing_rows_of(tenant.id):
        ids = {
            **_plant_accounts(tenant, actor, word),
            **_plant_in_cluster(actor, cluster, word),
            **_plant_money(tenant, actor, cluster, word, document=document),
            "clusters": cluster.pk,
            "operations": cluster.operations.latest("created_at").pk,
            "alerts": _plant_alert(actor, cluster, word),
            "incidents": _plant_incident(tenant, cluster, word),
            "limit-requests": limits.request_limit(
                actor=actor, limit="api_keys", requested=1000, reason=f"{word} grows"
            ).pk,
            "sessions": session,
        }
    planted = Planted(tenant=tenant, word=word, ids=ids, members=_member_values(tenant, word, ids))
    return replace(planted, cursors=_read_cursors(planted))


def _member_values(tenant: Tenant, word: str, ids: Mapping[str, str]) -> dict[str, str]:
    """Returns a value of the tenant's for each member in `NAMED` except `cursor`."""
    credential = f"User:{ids['credentials']}"
    values = {
        "cluster_id": ids["clusters"],
        "resource_id": ids["clusters"],
        "target_id": ids["clusters"],
        "project_id": ids["projects"],
        "organization_id": tenant.id,
        "service_account_id": ids["service-accounts"],
        "principal_id": ids["service-accounts"],
        "actor": ids["api-keys"],
        "topic_id": TOPIC_IDS[word],
        "client_id": f"{word}-client",
        "principal": credential,
        "user": ids["credentials"],
    }
    assert set(values) == NAMED - {"cursor"}
    return values


def _read_cursors(planted: Planted) -> dict[str, str]:
    """Reads each list as its owner; returns by path the cursor behind its first item."""
    client = ApiClient(planted.tenant.key)
    key = {"Idempotency-Key": planted.idempotency_key}
    created = client.post("/projects", {"name": f"{planted.word}-other"}, headers=key)
    assert created.status_code == 201, created.content
    cursors = {}
    for path in lists():
        address = path
        for name, collection in parameters_of(path).items():
            address = address.replace(f"{{{name}}}", planted.ids[collection])
        answer = client.get(address.removeprefix("/api/v1"), query={"limit": 1})
        if answer.status_code == 200 and answer.json()["next_cursor"]:
            cursors[path] = answer.json()["next_cursor"]
    return cursors


def _plant_cluster(tenant: Tenant, word: str) -> Cluster:
    """Makes a cluster that is asleep."""
    prepare_cell()
    with seeing_rows_of(tenant.id):
        operation = clusters.create_cluster(
            actor=system_actor(tenant.id),
            name=f"{word}-cluster",
            labels={"team": f"{word}-team"},
            deletion_protection=False,
        )
        cluster_id = operation.cluster.pk
        reconciling.reconcile_cluster(organization_id=tenant.id, cluster_id=cluster_id)
        put_status(cluster_id, "running")
        reconciling.reconcile_cluster(organization_id=tenant.id, cluster_id=cluster_id)
        put_status(cluster_id, "asleep")
        return Cluster.objects.get(pk=cluster_id)


def _plant_accounts(tenant: Tenant, actor: Actor, word: str) -> dict[str, str]:
    member = make_member(tenant, f"member@{word}-mail.example", Role.VIEWER)
    invitation = accounts.create_invitation(
        actor=actor, email=f"invited@{word}-mail.example", role=Role.VIEWER
    )
    project = accounts.create_project(actor=actor, name=f"{word}-project")
    account = accounts.create_service_account(actor=actor, name=f"{word}-account")
    binding = accounts.create_role_binding(
        actor=actor,
        principal_type=PrincipalType.SERVICE_ACCOUNT,
        principal_id=account.pk,
        project_id=project.pk,
        role=Role.VIEWER,
    )
    key = accounts.create_api_key(actor=actor, name=f"{word}-key", role=Role.VIEWER)
    return {
        "members": member.pk,
        "invitations": invitation.pk,
        "projects": project.pk,
        "service-accounts": account.pk,
        "role-bindings": binding.pk,
        "api-keys": key.key.pk,
    }


def plant_metadata(store: ClusterStore, word: str) -> None:
    """Makes a topic, a deleted topic, an ACL entry and a quota, unless they exist."""
    topic, deleted_topic = f"{word}-topic", f"{word}-gone"
    names = {current.name for current in store.topics()}
    if topic not in names:
        store.create_topic(topic, partitions=1)
    if deleted_topic not in {deleted.name for deleted in store.deleted_topics()}:
        if deleted_topic not in names:
            store.create_topic(deleted_topic, partitions=1)
        store.delete_topic(deleted_topic)
    if entry_of(word) not in store.list_acls():
        store.add_acls([entry_of(word)])
    entity = QuotaEntity(user=f"{word}-user")
    if entity not in {quota.entity for quota in store.quotas()}:
        store.set_quota(entity, {"max_connections": 1.0})


def entry_of(word: str) -> Acl:
    """Returns the entry of a tenant's access control list."""
    return Acl(
        principal=f"User:{word}",
        resource_type="TOPIC",
        resource_name=f"{word}-topic",
        operation="READ",
    )


def _plant_group(cluster_id: str, word: str) -> str:
    """Writes the sample of a consumer group, as the keeper does before a cluster goes to sleep."""
    group = f"{word}-group"
    state = {"group": group, "state": "Empty", "type": "classic", "protocol": ""}
    members: dict[str, object] = {"coordinator": None, "members": [], "partitions": []}
    members |= {"lag": 0, "lag_seconds": 0.0}
    put_sample(cluster_id, SAMPLE_MS, {"groups": [{**state, **members}]})
    return group


def _plant_in_cluster(actor: Actor, cluster: Cluster, word: str) -> dict[str, str]:
    store = cell_store().cluster(cluster.pk)
    plant_metadata(store, word)
    credential = credentials.create_credential(
        actor=actor, cluster=cluster, name=f"{word}-credential", role="full"
    )
    deleted_id = store.deleted_topics()[0].id
    return {
        "topics": f"{word}-topic",
        "deleted-topics": deleted_id,
        "orphaned-topics": deleted_id,
        "acls": acl_id(entry_of(word)),
        "quotas": ShownQuota(QuotaEntity(user=f"{word}-user"), {}).id,
        "credentials": credential.credential.pk,
        "groups": _plant_group(cluster.pk, word),
    }


def _plant_money(
    tenant: Tenant, actor: Actor, cluster: Cluster, word: str, *, document: bool
) -> dict[str, str]:
    budget = create_budget(
        actor=actor, name=f"{word}-budget", amount_minor=100, thresholds=[50], action="notify"
    )
    ours = Organization.objects.filter(pk=tenant.id)
    ours.update(created_at=datetime(2026, 8, 1, tzinfo=UTC))
    topic_id = TOPIC_IDS[word]
    used = Used(tenant.id, cluster.pk, "ingress_bytes", 5, topic_id, f"User:{word}")
    publish_day(date(2026, 11, 20 if word == "acme" else 21), [used])
    name_topic(tenant.id, cluster.pk, f"{word}-topic", topic_id)
    issue_month(
        month=date(2026, 9, 1), by="fuzzing", organization_id=tenant.id, close_early="to plant"
    )
    numbers.confirm_blocks(document_store())
    (invoice,) = invoices_of(tenant.id)
    if document:
        pdf = f"%PDF-1.7 {word}".encode()
        store_document(organization_id=tenant.id, invoice_id=invoice.pk, pdf=pdf)
    row = UsageRow.objects.get(organization_id=tenant.id, granularity="day")
    return {"budgets": budget.pk, "invoices": invoice.pk, "rows": row.pk}


def _plant_alert(actor: Actor, cluster: Cluster, word: str) -> str:
    alert = create_alert(
        actor=actor,
        cluster_id=cluster.pk,
        name=f"{word}-alert",
        kind="connections",
        threshold=1,
        for_s=0,
    )
    return alert.pk


def _plant_incident(tenant: Tenant, cluster: Cluster, word: str) -> str:
    incident = Incident.objects.create(
        organization_id=tenant.id,
        cluster_id=cluster.pk,
        kind="brokers_crashing",
        subject=cluster.pk,
        state="open",
        title=f"Brokers of {word} crash",
    )
    return str(incident.pk)


def _tables_of_tenants() -> list[type[Model]]:
    """Returns the models whose rows belong to an organization."""
    return [
        model
        for model in apps.get_models()
        if any(field.attname == "organization_id" for field in model._meta.fields)
    ]
