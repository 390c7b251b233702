"""The fixture of these tests: a tenant behind the seam."""

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
    """A tenant behind the seam. The fixture removes the checks of metering, which would wait for
    meters that nothing runs here.
    """
    monkeypatch.setattr(metered, "_checks", {})
    prepare_cell()
    cell = CellStore(store_address())
    # This store is opened before the seam is installed, so that its calls are not counted. Clusters
    # that other tests left in the cell would be swept along with the world's own.
    for cluster_id in cell.specs():
        cell.remove_cluster(cluster_id)
    # The world runs tasks as a worker does, which has imported all of them.
    current_app.loader.import_default_modules()
    seam = Seam(revision=lambda: cell.specs().revision)
    with installed(seam):
        yield World(make_tenant("Acme"), seam, cell)
