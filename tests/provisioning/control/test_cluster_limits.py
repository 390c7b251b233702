"""The limits of a cluster: REST is held to them, and brokers learn of them within moments."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from brokers.errors import LimitReachedError
from brokers.metadata import CellStore
from brokers.metadata_records import Acl, ClusterLimits, QuotaEntity
from console.base.common.actor import Actor, ActorKind, Role
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from console.base.limits import services
from console.base.limits.models import LimitRequest
from provisioning.cells import cluster_store
from provisioning.clusters.services.limits import NAMES
from tests.console import cases

ACL = Acl(
    resource_type="TOPIC",
    resource_name="orders",
    pattern_type="LITERAL",
    principal="User:alice",
    host="*",
    operation="READ",
    permission="ALLOW",
)


@pytest.fixture
def topics(cluster_id):
    return f"/clusters/{cluster_id}/topics"


@pytest.fixture
def limits():
    """Sets default limits of this process."""
    defaults = config().limits
    before = {name: getattr(defaults, name) for name in NAMES}

    def put(**values):
        for name, value in values.items():
            object.__setattr__(defaults, name, value)

    yield put
    put(**before)


def refused(response):
    return cases.assert_problem(response, 403, "limit_reached")["quota"]


def refusal(call):
    """Limit, value and use of a call that was refused; None for one that was not."""
    try:
        call()
    except LimitReachedError as error:
        return error.name, error.limit, error.used
    return None


def test_topics_are_made_up_to_the_limit(api, topics, limits):
    limits(topics=3)
    made = [api().post(topics, {"name": f"t-{number}"}).status_code for number in range(5)]
    assert made == [201] * 3 + [403] * 2
    assert api().post(topics, {"name": "t-0"}).status_code == 409, "the name says more"
    quota = {"name": "topics", "limit": 3, "used": 3}
    for query in ({}, {"validate_only": "true"}):
        assert refused(api().post(topics, {"name": "more"}, query=query)) == quota
    # A limit below what exists refuses only what is new.
    limits(topics=1)
    changed = api().patch(f"{topics}/t-0", {"configs": {"retention.ms": "5000"}})
    assert changed.status_code == 200
    assert refused(api().post(topics, {"name": "more"})) == {**quota, "limit": 1}


def test_topics_of_clients_count(api, topics, cluster_id, limits):
    limits(partitions=10)
    assert api().post(topics, {"name": "mine", "partitions": 4}).status_code == 201
    cluster_store(cluster_id).create_topic("by-a-client", partitions=5)
    quota = {"name": "partitions", "limit": 10, "used": 9}
    assert refused(api().post(topics, {"name": "more", "partitions": 2})) == quota
    grow = f"{topics}/mine/partitions"
    for query in ({}, {"validate_only": "true"}):
        assert refused(api().post(grow, {"count": 6}, query=query)) == quota
    batch = {"items": [{"name": "a"}, {"name": "b"}]}
    for query in ({}, {"validate_only": "true"}):
        assert refused(api().post(topics, batch, query=query)) == quota
    assert [topic.name for topic in cluster_store(cluster_id).topics()] == ["by-a-client", "mine"]


def test_topics_that_come_back_need_room(api, topics, cluster_id, limits):
    limits(partitions=10)
    made = api().post(topics, {"name": "back", "partitions": 6}).json()
    assert api().delete(f"{topics}/back").status_code == 204
    assert api().post(topics, {"name": "more", "partitions": 5}).status_code == 201
    undelete = f"/clusters/{cluster_id}/deleted-topics/{made['id']}:undelete"
    for query in ({}, {"validate_only": "true"}):
        quota = refused(api().post(undelete, query=query))
        assert quota == {"name": "partitions", "limit": 10, "used": 5}
    limits(partitions=11)
    assert api().post(undelete).status_code == 200
    # Of deleted topics as many can be restored as there may be; the first ones go.
    for name in ("back", "more"):
        assert api().delete(f"{topics}/{name}").status_code == 204
    deleted = f"/clusters/{cluster_id}/deleted-topics"
    assert len(api().get(deleted).json()["items"]) == 2
    last = {"name": "last", "partitions": 6}
    assert api().post(topics, last).status_code == 201
    assert api().delete(f"{topics}/last").status_code == 204
    kept = {item["name"] for item in api().get(deleted).json()["items"]}
    assert kept == {"last", "more"}


def test_users_of_clients_count_as_credentials(api, cluster_id, limits):
    limits(credentials=2)
    cluster_store(cluster_id).set_user("alice", "a-password-of-hers")
    cluster_store(cluster_id).set_user("__freshet", "the-password-of-the-service")
    credentials = f"/clusters/{cluster_id}/credentials"
    made = api().post(credentials, {"name": "app", "role": "producer"})
    assert made.status_code == 201
    quota = {"name": "credentials", "limit": 2, "used": 2}
    body = {"name": "more", "role": "none"}
    for query in ({}, {"validate_only": "true"}):
        assert refused(api().post(credentials, body, query=query)) == quota
    # Rotation replaces a credential, and the replaced one does not count while it lasts.
    path = f"{credentials}/{made.json()['id']}"
    assert api().post(f"{path}:rotate", {"overlap_s": 3600}).status_code == 201
    assert refused(api().post(credentials, body)) == quota
    limits(credentials=3)
    assert api().post(credentials, body).status_code == 201
    shown = api().get("/limits", query={"cluster_id": cluster_id}).json()["items"]
    assert next(item for item in shown if item["name"] == "credentials")["used"] == 3


def test_a_reconcile_writes_the_limits_that_brokers_enforce(
    api, tenant, cluster_id, limits, reconcile
):
    store = cluster_store(cluster_id)
    defaults = config().limits
    assert store.limits() == ClusterLimits(**{name: getattr(defaults, name) for name in NAMES})
    body = {"limit": "groups", "wanted": 5_000, "reason": "Many apps.", "cluster_id": cluster_id}
    request_id = api().post("/limit-requests", body).json()["id"]
    with organization_scope(tenant.id):
        actor = Actor(ActorKind.STAFF, "usr_staff", tenant.id, Role.VIEWER)
        request = LimitRequest.objects.get(pk=request_id)
        services.grant_limit(actor=actor, request=request)
    reconcile(cluster_id)
    assert store.limits().groups == 5_000
    limits(acls=7)
    reconcile(cluster_id)
    assert store.limits().acls == 7


def test_additions_of_several_processes_do_not_pass_a_limit_together(cluster_id):
    """Each thread has a store of its own, as each web process has."""
    location = config().cell.metadata
    limits = ClusterLimits(topics=4, acls=4, credentials=4, quotas=4)

    def add(number):
        store = CellStore(location).cluster(cluster_id)
        name = f"n-{number}"
        entry = replace(ACL, resource_name=name)
        quota = QuotaEntity(user=name), {"producer_byte_rate": 1}
        calls = (
            lambda: store.create_topic(name, limits=limits),
            lambda: store.add_acls([entry], limits=limits),
            lambda: store.set_user(name, "a-password-of-ours", limits=limits),
            lambda: store.set_quota(*quota, limits=limits),
        )
        return [refusal(call) for call in calls]

    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(add, range(8)))
    names = ("topics", "acls", "credentials", "quotas")
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        assert sorted(map(str, column)) == sorted([*["None"] * 4, *[str((name, 4, 4))] * 4])
    store = cluster_store(cluster_id)
    stored = (store.topics(), store.list_acls(), store.list_users(), store.quotas())
    assert [len(records) for records in stored] == [4, 4, 4, 4]
