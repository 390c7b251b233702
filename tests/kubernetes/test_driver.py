"""The conformance suite of drivers for the Kubernetes driver, over a real API server."""

import pytest

from tests.kubernetes.client import Client
from tests.kubernetes.pod_process import Processes
from tests.kubernetes.rig import KubernetesRig
from tests.kubernetes.stand_in_kubelet import StandInKubelet
from tests.provisioning.driver_conformance import DriverConformance

pytestmark = pytest.mark.full


@pytest.fixture
def rig(control_plane, keeper_rights, tmp_path):
    client = Client(control_plane.kubeconfig("stand-in-kubelet"))
    processes = Processes(client, tmp_path / "pods")
    kubelet = StandInKubelet(client, processes, ["node"])
    yield KubernetesRig(tmp_path, keeper_rights, processes)
    kubelet.close()


class TestKubernetesDriver(DriverConformance):
    """The suite over pods, with the rights of an installed keeper and no more."""
