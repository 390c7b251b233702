"""Clusters: the common cases of REST, what is shown, changes and their conflicts, deletion."""

import uuid

import pytest

from brokers.errors import UnavailableError
from brokers.metadata import CellStore
from console.base.accounts.choices import AccountStatus
from console.base.accounts.services.organizations import set_account_status
from console.base.common.errors import Conflict
from provisioning.clusters.services import clusters
from tests.console import cases
from tests.console.queries import count_queries
from tests.provisioning.control.world import failing, put_status


class TestClusters(cases.ListCases, cases.CreateCases, cases.UpdateCases):
    path = "/clusters"
    update_body = {"name": "renamed", "labels": {"team": "checkout"}}

    def body(self):
        return {"name": f"c-{uuid.uuid4().hex[:8]}", "region": "local"}

    @pytest.fixture
    def item(self, owner, make_cluster):
        return owner.get(f"/clusters/{make_cluster()}").json()

    @pytest.fixture
    def others(self, make_cluster):
        return [make_cluster() for _ in range(2)]

    @pytest.mark.usefixtures("others")
    def test_list_pages_repeat_and_hide_nothing(self, owner, collection, item):
        everything = [cluster["id"] for cluster in owner.get(collection).json()["items"]]
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = owner.get(collection, query={"limit": 1, "cursor": cursor}).json()
            seen += [cluster["id"] for cluster in page["items"]]
            cursor = page["next_cursor"]
        assert seen == everything
        assert len(set(seen)) == 3


def test_a_new_cluster_is_provisioned_then_runs_then_sleeps(api, reconcile, cell):
    answer = api().post("/clusters", {"name": "orders", "region": "local"})
    operation = answer.json()
    assert (operation["type"], operation["state"], operation["error"]) == (
        "create_cluster",
        "queued",
        None,
    )
    assert operation["request_id"] == answer.headers["X-Request-Id"]
    cluster_id = operation["resource_id"]
    path, operations = f"/clusters/{cluster_id}", f"/operations/{operation['id']}"
    assert api().get(path).json()["status"]["phase"] == "provisioning"
    assert reconcile(cluster_id) is True
    assert cell.wake(cluster_id) is not None
    assert api().get(operations).json()["state"] == "running"
    put_status(cluster_id, "starting")
    assert api().get(path).json()["status"]["phase"] == "provisioning"
    put_status(cluster_id, "running")
    assert api().get(path).json()["status"]["phase"] == "running"
    assert reconcile(cluster_id) is False
    finished = api().get(operations, query={"wait": 30}).json()
    assert (finished["state"], finished["progress"]) == ("succeeded", 100)
    put_status(cluster_id, "asleep")
    assert api().get(path).json()["status"]["phase"] == "asleep"


def test_a_cluster_says_where_clients_connect(api, cluster_id):
    shown = api().get(f"/clusters/{cluster_id}").json()
    plain, tls = shown["endpoints"]
    assert shown["bootstrap_servers"] == plain["bootstrap_servers"]
    # The ports of the slots are not for clients that bootstrap.
    assert plain["bootstrap_servers"] == "127.0.0.1:9092"
    assert tls["bootstrap_servers"].endswith(".kafka.localhost:9443")
    assert shown["spec"] == {
        "idle_timeout_s": 300,
        "scale": {"min": 0, "max": 1},
        "schedules": [],
    }
    assert shown["deletion_protection"] is False


def test_the_cell_gets_the_whole_specification(cell, make_cluster, tenant):
    cluster_id = make_cluster(name="Big Orders_1", idle_timeout_s=60)
    spec = cell.spec(cluster_id)
    assert (spec.name, spec.organization_id, spec.state) == ("Big Orders_1", tenant.id, "active")
    assert (spec.generation, spec.scale, spec.idle_timeout_ms) == (1, 1, 60_000)
    assert spec.host.startswith("big-orders-1-")
    assert len(spec.ports) == 4


def test_what_changes_reaches_the_cell(api, cluster_id, cell, reconcile):
    changed = api().patch(f"/clusters/{cluster_id}", {"spec": {"idle_timeout_s": 10}})
    assert changed.status_code == 200
    assert changed.json()["generation"] == 2
    assert changed["ETag"] == '"2"'
    assert changed.json()["status"]["observed_generation"] == 1
    assert reconcile(cluster_id) is False
    assert (cell.spec(cluster_id).generation, cell.spec(cluster_id).idle_timeout_ms) == (2, 10_000)


def test_a_change_that_changes_nothing_is_none(api, cluster_id):
    assert api().patch(f"/clusters/{cluster_id}", {"labels": {}}).json()["generation"] == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": ""}, "/name"),
        ({"name": "-x"}, "/name"),
        ({"name": "x" * 64}, "/name"),
        ({"name": "x", "idle_timeout_s": 1}, "/idle_timeout_s"),
        ({"name": "x", "spec": {"idle_timeout_s": 1}}, "/spec/idle_timeout_s"),
        ({"name": "x", "labels": {"a" * 64: "b"}}, "/labels"),
        ({"name": "x", "labels": {"a\0": "b"}}, "/labels"),
        ({"name": "x", "labels": {"\ud800": "b"}}, "/labels"),
        ({"name": "x", "labels": {str(n): "" for n in range(33)}}, "/labels"),
    ],
)
def test_what_cannot_be_is_pointed_to(api, body, pointer):
    document = cases.assert_problem(api().post("/clusters", body), 422, "validation_failed")
    assert document["errors"][0]["pointer"] == pointer


def test_operations_of_what_can_be_no_id_are_refused(api):
    response = api().get("/operations", query={"resource_id": "cl_\0"})
    document = cases.assert_problem(response, 422, "validation_failed")
    assert document["errors"][0]["pointer"] == "?resource_id"


def test_an_unknown_region_is_refused(api):
    cases.assert_problem(
        api().post("/clusters", {"name": "x", "region": "moon"}), 422, "unknown_region"
    )


def test_names_are_unique_among_an_organizations_clusters(api, make_cluster, other_tenant):
    taken, other = make_cluster(name="orders"), make_cluster(name="other")
    cases.assert_problem(api().post("/clusters", {"name": "orders"}), 409, "name_taken")
    cases.assert_problem(api().patch(f"/clusters/{other}", {"name": "orders"}), 409, "name_taken")
    assert api(other_tenant.key).post("/clusters", {"name": "orders"}).status_code == 202
    assert api().get(f"/clusters/{taken}").json()["name"] == "orders"


def test_the_limit_of_clusters_is_refused_with_its_quota(api, settings, make_cluster):
    make_cluster()
    limits = settings.FRESHET.limits
    object.__setattr__(limits, "clusters", 1)
    try:
        document = cases.assert_problem(api().post("/clusters", {"name": "x"}), 403)
    finally:
        object.__setattr__(limits, "clusters", 20)
    assert document["quota"] == {"name": "clusters", "limit": 1, "used": 1}


def test_deleted_clusters_that_can_be_restored_have_a_limit(api, settings, make_cluster, reconcile):
    cluster_id = make_cluster(name="orders", deletion_protection=False)
    assert api().delete(f"/clusters/{cluster_id}", query={"name": "orders"}).status_code == 202
    limits = settings.FRESHET.limits
    object.__setattr__(limits, "deleted_clusters", 1)
    try:
        document = cases.assert_problem(api().post("/clusters", {"name": "x"}), 403)
        assert document["quota"] == {"name": "deleted_clusters", "limit": 1, "used": 1}
        # One that is restored makes room.
        reconcile(cluster_id)
        put_status(cluster_id, "asleep", 2)
        assert reconcile(cluster_id) is False
        assert api().post(f"/clusters/{cluster_id}:undelete").status_code == 202
        assert api().post("/clusters", {"name": "x"}).status_code == 202
    finally:
        object.__setattr__(limits, "deleted_clusters", 100)


def test_validate_only_makes_nothing(api):
    response = api().post("/clusters", {"name": "x"}, query={"validate_only": "true"})
    assert response.status_code == 200
    assert api().get("/clusters").json()["items"] == []


def test_a_cell_that_does_not_answer_is_unknown(api, cluster_id):
    with failing("status", UnavailableError("no /srv/cell/metadata.sqlite"), owner=CellStore):
        response = api().get(f"/clusters/{cluster_id}")
    assert "/srv" not in response.text
    shown = response.json()
    assert shown["status"]["phase"] == "unknown"
    assert shown["status"]["conditions"][0]["reason"] == "CellUnreachable"


def test_wake_and_sleep(api, cluster_id, reconcile, cell):
    waking = api().post(f"/clusters/{cluster_id}:wake")
    assert waking.status_code == 202
    assert reconcile(cluster_id) is True
    assert cell.wake(cluster_id).by.split()[0] == "control-plane"
    document = cases.assert_problem(
        api().post(f"/clusters/{cluster_id}:wake"), 409, "operation_in_progress"
    )
    assert document["operation_id"] == waking.json()["id"]
    put_status(cluster_id, "running")
    reconcile(cluster_id)
    assert api().get(f"/operations/{waking.json()['id']}").json()["state"] == "succeeded"
    sleeping = api().post(f"/clusters/{cluster_id}:sleep").json()
    assert reconcile(cluster_id) is True
    assert cell.spec(cluster_id).idle_timeout_ms == 1_000
    cases.assert_problem(
        api().patch(f"/clusters/{cluster_id}", {"labels": {"a": "b"}}),
        409,
        "operation_in_progress",
    )
    put_status(cluster_id, "asleep", 2)
    assert reconcile(cluster_id) is True
    assert api().get(f"/operations/{sleeping['id']}").json()["state"] == "succeeded"
    reconcile(cluster_id)
    spec = cell.spec(cluster_id)
    assert (spec.generation, spec.idle_timeout_ms) == (3, 300_000)


def test_deletion_needs_the_name_and_no_protection(api, make_cluster):
    cluster_id = make_cluster(name="orders", deletion_protection=True)
    path = f"/clusters/{cluster_id}"
    cases.assert_problem(api().delete(path), 422, "name_not_confirmed")
    cases.assert_problem(api().delete(path, query={"name": "x"}), 422, "name_not_confirmed")
    cases.assert_problem(api().delete(path, query={"name": "orders"}), 409, "deletion_protected")
    assert api().patch(path, {"deletion_protection": False}).status_code == 200
    assert api().delete(path, body={"name": "orders"}).status_code == 202


def test_a_deleted_cluster_can_be_restored(api, make_cluster, cell, reconcile):
    cluster_id = make_cluster(name="orders")
    path = f"/clusters/{cluster_id}"
    put_status(cluster_id, "running", brokers=())
    deleting = api().delete(path, query={"name": "orders"}).json()
    assert api().get(path).json()["status"]["phase"] == "deleting"
    assert reconcile(cluster_id) is True
    assert cell.spec(cluster_id).state == "deleted"
    put_status(cluster_id, "asleep", 2)
    assert reconcile(cluster_id) is False
    assert api().get(f"/operations/{deleting['id']}").json()["state"] == "succeeded"
    assert api().get(path).json()["status"]["phase"] == "deleted"
    for call in (":wake", ":sleep"):
        cases.assert_problem(api().post(path + call), 409, "cluster_deleted")
    cases.assert_problem(api().patch(path, {"labels": {}}), 409, "cluster_deleted")
    cases.assert_problem(api().post(f"{path}/topics", {"name": "t"}), 409, "cluster_deleted")
    make_cluster(name="orders")
    cases.assert_problem(api().post(f"{path}:undelete"), 409, "name_taken")
    assert api().post(f"{path}:undelete", {"name": "orders-2"}).status_code == 202
    assert reconcile(cluster_id) is False
    restored = api().get(path).json()
    assert (restored["name"], restored["status"]["phase"]) == ("orders-2", "asleep")
    assert cell.spec(cluster_id).state == "active"
    cases.assert_problem(api().post(f"{path}:undelete"), 409, "cluster_not_deleted")


def test_a_deletion_ends_what_was_under_way(api):
    creating = api().post("/clusters", {"name": "x", "deletion_protection": False}).json()
    path = f"/clusters/{creating['resource_id']}"
    assert api().delete(path, query={"name": "x"}).status_code == 202
    assert api().get(f"/operations/{creating['id']}").json()["state"] == "cancelled"


def test_a_suspended_organizations_clusters_do_not_run(api, cluster_id, tenant, reconcile, cell):
    set_account_status(organization_id=tenant.id, status=AccountStatus.SUSPENDED, reason="test")
    reconcile(cluster_id)
    assert cell.spec(cluster_id).state == "suspended"
    shown = api().get(f"/clusters/{cluster_id}").json()
    assert (shown["status"]["phase"], shown["endpoints"]) == ("suspended", [])
    cases.assert_problem(api().post(f"/clusters/{cluster_id}:wake"), 409, "cluster_suspended")
    set_account_status(organization_id=tenant.id, status=AccountStatus.ACTIVE, reason="test")
    reconcile(cluster_id)
    assert cell.spec(cluster_id).state == "active"


def test_another_organizations_cluster_looks_absent(api, cluster_id, other_tenant):
    outsider = api(other_tenant.key)
    path = f"/clusters/{cluster_id}"
    assert outsider.get("/clusters").json()["items"] == []
    for call in (
        outsider.get(path),
        outsider.patch(path, {"name": "x"}),
        outsider.delete(path, query={"name": "x"}),
        outsider.post(f"{path}:wake"),
        outsider.post(f"{path}:sleep"),
        outsider.post(f"{path}:undelete"),
        outsider.get(f"{path}/topics"),
        outsider.post(f"{path}/topics", {"name": "t"}),
        outsider.get(f"{path}/topics/t"),
        outsider.get(f"{path}/credentials"),
        outsider.post(f"{path}/credentials", {"name": "c", "role": "full"}),
        outsider.get(f"{path}/acls"),
        outsider.delete(f"{path}/acls", query={"principal": "User:a"}),
        outsider.get(f"{path}/groups"),
        outsider.post(f"{path}/groups/g/reset-offsets", {"to": "earliest"}),
        outsider.get(f"{path}/topics/t/messages"),
        outsider.get(f"{path}/topics/t/messages/stream"),
    ):
        cases.assert_problem(call, 404, "not_found")


def test_compare_and_swap_stops_who_read_an_older_row(row, cluster_id):
    one, two = row(cluster_id), row(cluster_id)
    clusters.bump_generation(cluster=one, idle_timeout_s=10)
    with pytest.raises(Conflict):
        clusters.bump_generation(cluster=two, idle_timeout_s=20)
    assert row(cluster_id).idle_timeout_s == 10


def test_lists_cost_the_same_however_long(api, make_cluster):
    make_cluster()
    one = count_queries(lambda: api().get("/clusters"))
    make_cluster(), make_cluster()
    assert count_queries(lambda: api().get("/clusters")) == one


def test_regions(api):
    assert api().get("/regions").json()["items"] == [{"id": "local", "name": "local"}]
