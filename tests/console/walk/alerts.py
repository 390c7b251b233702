"""Routes of alerts."""

from __future__ import annotations

from typing import Any

from console.alerts.services import create_alert
from console.base.common.actor import Permission, system_actor
from console.base.common.tenancy import organization_scope
from tests.console.factories import Tenant
from tests.console.walk.provisioning import make_cluster
from tests.console.walk.routes import Parameters, Route

READ, WRITE = Permission.READ, Permission.WRITE
ALERT = "/api/v1/alerts/<id>"


def an_alert(tenant: Tenant) -> Parameters:
    """Makes an alert of a cluster that is asleep."""
    cluster = make_cluster(tenant)
    with organization_scope(tenant.id):
        alert = create_alert(
            actor=system_actor(tenant.id),
            cluster_id=cluster.pk,
            name="walked",
            kind="connections",
            threshold=1,
            for_s=0,
        )
    return {"id": alert.pk}


NEW: dict[str, Any] = {
    "cluster_id": "cl_aaaaaaaaaaaaaaaaaaaa",
    "name": "walk",
    "kind": "connections",
    "threshold": 1,
}
ROUTES = [
    Route("GET", "/api/v1/alerts", READ, parameters=an_alert, in_project=True),
    # No cluster has this id, so every actor gets a 422.
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
