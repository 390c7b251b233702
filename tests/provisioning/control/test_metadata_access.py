"""Where the metadata store has users, the brokers of each cluster are a user of their own."""

import dataclasses

import pytest

from brokers.errors import InvalidError
from brokers.etcd import Etcd
from brokers.etcd_access import PASSWORD_FILE
from brokers.locations import EtcdLocation, metadata_location
from brokers.metadata import CellStore
from brokers.secrets import create_cell_secret, read_cell_secret
from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from console.base.common.transactions import task_transaction
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions
from provisioning.cell.keeper.kubernetes import KubernetesSettings
from provisioning.cell.keeper.plan import cluster_plan
from provisioning.cell.keeper.records import Spec, SpecState
from provisioning.cell.keeper.settings import CellSettings, KeeperSettings, LoopSettings
from provisioning.models import Cluster
from provisioning.reconciling import service as reconciling

pytestmark = pytest.mark.full("stores")

OPTIONS = KubernetesOptions("eu-1", "freshet:0.1", {"hostPath": {"path": "/dfs/{cluster}"}})


@pytest.fixture
def root(tmp_path):
    return tmp_path.name


@pytest.fixture
def cell(settings, guarded_etcd, root, tmp_path):
    """The cell, with its metadata in an etcd that has users."""
    known = config()
    cell = dataclasses.replace(
        known.cell, metadata=guarded_etcd.as_root(root), secret=tmp_path / "secret"
    )
    create_cell_secret(cell.secret)
    settings.FRESHET = dataclasses.replace(known, cell=cell)
    return CellStore(cell.metadata)


@pytest.fixture
def brokers(guarded_etcd, root, tmp_path):
    """Opens etcd as the brokers of a cluster do, with the location and password that they get."""
    options = {"user": "{cluster}", "password_file": tmp_path / PASSWORD_FILE}
    metadata = guarded_etcd.location(root, options)

    def plan(cluster_id):
        own = config().cell
        places = CellSettings(own.metadata, own.dfs, own.bucket, own.secret)
        driver = KubernetesSettings(options=OPTIONS, broker_metadata=metadata)
        keeper = KeeperSettings(places, LoopSettings(tmp_path), driver)
        spec = Spec(cluster_id, 1, SpecState.ACTIVE, 1, 0)
        (plan,) = cluster_plan(spec, keeper, read_cell_secret(own.secret)).brokers
        for name, content in plan.files.items():
            (tmp_path / name).write_bytes(content)
        location = metadata_location(str(plan.settings["storage"]["metadata"]))
        assert isinstance(location, EtcdLocation)
        return Etcd(location)

    return plan


def test_brokers_reach_their_own_keys_until_the_cluster_is_purged(
    make_cluster, brokers, reconcile, root, guarded_etcd
):
    own, other = make_cluster(), make_cluster()
    etcd = brokers(own)
    assert etcd.location.user == own
    assert etcd.range(f"{own}/").entries
    with pytest.raises(InvalidError, match="permission denied"):
        etcd.range(f"{other}/")
    assert brokers(other).range(f"{other}/").entries
    with task_transaction(), system_scope():
        reconciling._remove_data(Cluster.objects.get(pk=own))
    with pytest.raises(InvalidError):
        brokers(own).range(f"{own}/")
    assert brokers(other).range(f"{other}/").entries
