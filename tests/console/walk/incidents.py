"""Routes of incidents."""

from __future__ import annotations

from console.base.common.actor import Permission
from console.base.common.tenancy import organization_scope
from console.incidents.models import Incident
from tests.console.factories import Tenant
from tests.console.walk.routes import Parameters, Route


def an_incident(tenant: Tenant) -> Parameters:
    """Makes an open incident of a cluster of the organization."""
    with organization_scope(tenant.id):
        incident = Incident.objects.create(
            organization_id=tenant.id,
            cluster_id="cl_aaaaaaaaaaaaaaaaaaaa",
            kind="brokers_crashing",
            subject="cl_aaaaaaaaaaaaaaaaaaaa",
            state="open",
            title="Brokers crash",
        )
    return {"id": incident.pk}


ROUTES = [
    Route("GET", "/api/v1/incidents", Permission.READ, parameters=an_incident),
    Route("GET", "/api/v1/incidents/<id>", Permission.READ, parameters=an_incident),
]
