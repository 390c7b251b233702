"""Fixtures: a tenant, a cell of the tests' own, and a clock that can be moved on."""

import pytest
from django.utils import timezone

from tests.console import conftest as console
from tests.provisioning.control import conftest as control

tenant, other_tenant, api = console.tenant, console.other_tenant, console.api
cell, reconcile = control.cell, control.reconcile
make_cluster, cluster_id = control.make_cluster, control.cluster_id
report_damage = control.report_damage


@pytest.fixture
def later(monkeypatch):
    """Returns a function that sets the clock to the test's beginning plus a duration."""
    begun = timezone.now()

    def move_clock(passed):
        monkeypatch.setattr(timezone, "now", lambda: begun + passed)

    return move_clock
