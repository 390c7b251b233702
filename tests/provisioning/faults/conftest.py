"""A tenant behind the seam."""

import pytest
from celery import current_app

from brokers.metadata import CellStore
from console.base.common import metered
from tests.console.factories import make_tenant
from tests.provisioning.control.world import prepare_cell
from tests.provisioning.faults.seam import Seam, installed
from tests.provisioning.faults.world import World, store_address


@pytest.fixture
def world(transactional_db, monkeypatch):
    """A tenant behind the seam. No meter is waited for."""
    monkeypatch.setattr(metered, "_checks", {})
    prepare_cell()
    cell = CellStore(store_address())
    # Opened here, it is not behind the seam. What other tests left in the cell is not looked after.
    for cluster_id in cell.specs():
        cell.remove_cluster(cluster_id)
    # A worker knows every task.
    current_app.loader.import_default_modules()
    seam = Seam(revision=lambda: cell.specs().revision)
    with installed(seam):
        yield World(make_tenant("Acme"), seam, cell)
