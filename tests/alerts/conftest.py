"""A tenant, a cell of the tests' own, and a clock."""

from tests.incidents import conftest as incidents

tenant, other_tenant, api = incidents.tenant, incidents.other_tenant, incidents.api
cell, reconcile, later = incidents.cell, incidents.reconcile, incidents.later
make_cluster, cluster_id = incidents.make_cluster, incidents.cluster_id
