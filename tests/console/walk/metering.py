"""Routes of usage."""

from __future__ import annotations

from datetime import date

from console.base.common.actor import Permission
from console.base.common.tenancy import organization_scope
from metering.models import UsageRow
from tests.billing.world import make_cluster
from tests.console.factories import Tenant
from tests.console.walk.routes import Parameters, Route
from tests.metering.console.world import Used, publish_day


def a_row(tenant: Tenant) -> Parameters:
    """Publishes a usage row of a cluster and a day."""
    cluster_id = make_cluster(tenant.id, "cl_aaaaaaaaaaaaaaaaaaaa", "walked")
    publish_day(date(2026, 11, 20), [Used(tenant.id, cluster_id, "ingress_bytes", 5)])
    with organization_scope(tenant.id):
        return {"id": UsageRow.objects.get(granularity="day").pk}


ROUTES = [
    Route("GET", "/api/v1/usage", Permission.READ, parameters=a_row, in_project=True),
    Route("GET", "/api/v1/usage/stored", Permission.READ, in_project=True),
    Route("GET", "/api/v1/usage/rows/<id>", Permission.READ, parameters=a_row, in_project=True),
    Route("GET", "/api/v1/usage/reconciliations", Permission.READ),
]
