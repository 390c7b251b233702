"""An actor with only a role in a project sees that project's usage and part of the costs."""

from datetime import UTC, date, datetime

import pytest

from console.base.accounts.models import Organization
from console.base.common.actor import Role
from console.base.common.tenancy import organization_scope
from metering.models import UsageRow
from provisioning.choices import Intent
from provisioning.models import Cluster
from tests.billing.world import make_cluster
from tests.console.cases import assert_problem
from tests.console.factories import make_project, make_project_key
from tests.metering.console.world import Used, publish_day

GIB = 2**30
DAY = date(2026, 11, 20)
SPAN = {"from": "2026-11-20T00:00:00Z", "to": "2026-11-21T00:00:00Z"}
OWN, FOREIGN = "cl_aaaaaaaaaaaaaaaaaaaa", "cl_bbbbbbbbbbbbbbbbbbbb"


@pytest.fixture
def narrow(api, tenant, monkeypatch):
    """A client that sees one of two projects, each of which has a cluster with usage."""
    moment = datetime(2026, 11, 21, 12, tzinfo=UTC)
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment)
    project = make_project(tenant)
    make_cluster(tenant.id, OWN, "own")
    make_cluster(tenant.id, FOREIGN, "foreign")
    with organization_scope(tenant.id):
        Organization.objects.update(created_at=datetime(2026, 10, 1, tzinfo=UTC))
        Cluster.objects.filter(pk=OWN).update(project=project)
    publish_day(
        DAY,
        [
            Used(tenant.id, OWN, "ingress_bytes", 40 * GIB),
            Used(tenant.id, FOREIGN, "ingress_bytes", 70 * GIB),
        ],
    )
    return api(make_project_key(tenant, project, Role.VIEWER))


@pytest.mark.parametrize("group_by", ["none", "cluster", "topic", "principal"])
@pytest.mark.parametrize("granularity", ["hour", "day", "month"])
def test_usage_is_that_of_the_projects_clusters(narrow, granularity, group_by):
    query = {**SPAN, "granularity": granularity, "group_by": group_by}
    items = narrow.get("/usage", query=query).json()["items"]
    assert {item["quantity"] for item in items} <= {str(40 * GIB)}
    assert {item["cluster_id"] for item in items} <= {OWN, None}
    if granularity != "hour":
        assert items


def test_usage_of_another_projects_cluster_looks_absent(api, narrow, tenant):
    foreign = narrow.get("/usage", query={**SPAN, "cluster_id": FOREIGN}).json()
    absent = narrow.get("/usage", query={**SPAN, "cluster_id": "cl_" + "c" * 20}).json()
    assert foreign == absent
    with organization_scope(tenant.id):
        rows = {row.cluster_id: row.pk for row in UsageRow.objects.filter(granularity="day")}
    assert narrow.get(f"/usage/rows/{rows[OWN]}").status_code == 200
    assert_problem(narrow.get(f"/usage/rows/{rows[FOREIGN]}"), 404, "not_found")


def test_costs_are_the_part_of_the_projects_clusters(api, narrow):
    whole, part = api().get("/costs").json(), narrow.get("/costs").json()
    own = [line for line in whole["lines"] if line["cluster_id"] == OWN]
    assert own
    assert len(whole["lines"]) > len(own)
    assert part["lines"] == own
    assert part["total_minor"] == sum(line["amount_minor"] for line in own)
    for kind in ("by_cluster", "by_topic", "by_principal"):
        assert FOREIGN not in str(part[kind])
        assert sum(row["amount_minor"] for row in part[kind]) == part["total_minor"]


def test_usage_of_a_purged_cluster_stays_its_projects(narrow, tenant):
    with organization_scope(tenant.id):
        Cluster.objects.filter(pk=OWN).update(intent=Intent.PURGED)
    items = narrow.get("/usage", query=SPAN).json()["items"]
    assert {item["cluster_id"] for item in items} == {OWN}


def test_who_has_no_role_anywhere_sees_no_usage(api, tenant, narrow):
    nobody = api(tenant.keys[Role.MEMBER])
    assert nobody.get("/usage", query=SPAN).json()["items"] == []
    costs = nobody.get("/costs").json()
    assert (costs["lines"], costs["total_minor"]) == ([], 0)
