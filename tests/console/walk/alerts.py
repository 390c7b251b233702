"""Routes of alerts."""

from __future__ import annotations

from typing import Any

from console.alerts.services import create_alert
from console.base.common.actor import Permission, system_actor
from console.base.common.tenancy import organization_scope
from tests.console.factories import Tenant
from tests.console.walk.provisioning import made_cluster
from tests.console.walk.routes import Parameters, Route

READ, WRITE = Permission.READ, Permission.WRITE
ALERT = "/api/v1/alerts/<id>"


def an_alert(tenant: Tenant) -> Parameters:
    """An alert of a cluster that sleeps."""
    cluster = made_cluster(tenant)
    with organization_scope(tenant.id):
        made = create_alert(
            actor=system_actor(tenant.id),
            cluster_id=cluster.pk,
            name="walked",
            kind="connections",
            threshold=1,
            for_s=0,
        )
    return {"id": made.pk}


NEW: dict[str, Any] = {
    "cluster_id": "cl_aaaaaaaaaaaaaaaaaaaa",
    "name": "walk",
    "kind": "connections",
    "threshold": 1,
}
ROUTES = [
    Route("GET", "/api/v1/alerts", READ, parameters=an_alert, in_project=True),
    # There is no cluster of this id, for anybody.
    Route(
        "POST",
        "/api/v1/alerts",
        WRITE,
        body=NEW,
        in_project=True,
        elsewhere=422,
        succeeds=frozenset({422}),
    ),
    Route("GET", ALERT, READ, parameters=an_alert, in_project=True),
    Route("PATCH", ALERT, WRITE, body={"threshold": 2}, parameters=an_alert, in_project=True),
    Route("DELETE", ALERT, WRITE, parameters=an_alert, in_project=True),
]
