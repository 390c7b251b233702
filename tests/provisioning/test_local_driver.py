"""The conformance suite of drivers for the driver of local processes."""

import os
import signal

import pytest

from brokers.secrets import super_password
from provisioning.cell.drivers.local import LocalDriver
from provisioning.cell.drivers.slot import LocalOptions
from tests.provisioning.driver_conformance import DriverConformance, Rig, plan_of
from tests.provisioning.survivors import kill_survivors


class LocalRig(Rig):
    """Runs real brokers over folders of the test."""

    def __init__(self, folder):
        self.folder = folder
        self.run = folder / "run"
        for name in ("dfs", "bucket"):
            (folder / name).mkdir()

    def driver(self):
        return LocalDriver(self.run, LocalOptions())

    def plan(self, cluster_id, scale=1, **sections):
        password = super_password(bytes(32), cluster_id)
        settings = {
            "storage": {
                "dfs": self.folder / "dfs",
                "bucket": self.folder / "bucket",
                "metadata": self.folder / "metadata.sqlite",
                "cluster": cluster_id,
            },
            "listener": {"kafka": "127.0.0.1:0", "sasl": ["PLAIN"]},
            "security": {"users": [{"name": "__freshet", "password": password}]},
            "topics": {"offsets_partitions": 4},
            "threads": {"runtime": 1},
            **sections,
        }
        return plan_of(cluster_id, scale, settings)

    def crash(self, broker):
        os.kill(broker.pid, signal.SIGKILL)

    async def abandon(self, driver):
        await driver.close()


@pytest.fixture
def rig(tmp_path):
    rig = LocalRig(tmp_path)
    yield rig
    kill_survivors(rig.run)


class TestLocalDriver(DriverConformance):
    """The suite over local processes."""
