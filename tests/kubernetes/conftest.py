"""One Kubernetes for all tests of this folder. Each test removes the objects that it creates."""

from pathlib import Path

import pytest

from tests.kubernetes import installation
from tests.kubernetes.applying import install_rights, token_of
from tests.kubernetes.client import Client
from tests.kubernetes.control_plane import ControlPlane, Servers
from tests.kubernetes.stand_in_kubelet import Marking, StandInKubelet

TOOLS = Path(__file__).parents[2] / ".tools" / "bin"


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory):
    """A control plane without nodes."""
    missing = [name for name in ("etcd", "kube") if not (TOOLS / name).exists()]
    assert not missing, f"no {missing} in {TOOLS}: run .ci/servers {' '.join(missing)}"
    folder = tmp_path_factory.mktemp("kubernetes") / "servers"
    plane = ControlPlane(folder, Servers(TOOLS))
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="session")
def admin(control_plane):
    """A client with all rights."""
    client = Client(control_plane.kubeconfig("admin"))
    yield client
    client.close()


@pytest.fixture
def marked_nodes(control_plane):
    """Three nodes whose pods are marked as running once they are bound, without a process."""
    client = Client(control_plane.kubeconfig("stand-in-kubelet"))
    marking = Marking(client)
    kubelet = StandInKubelet(client, marking, ["node-0", "node-1", "node-2"])
    yield marking
    kubelet.close()


@pytest.fixture(scope="session")
def keeper_rights(control_plane, admin, tmp_path_factory):
    """The kubeconfig of an installed keeper's service account, which has only the rights it needs.

    Its installation stays for later tests.
    """
    folder = installation.copy(tmp_path_factory.mktemp("installed") / "kubernetes")
    kubeconfigs = []

    def keeper():
        token = token_of(admin, installation.SYSTEM, "keeper")
        kubeconfigs.append(control_plane.kubeconfig_of("installed-keeper", token))
        return Client(kubeconfigs[0])

    install_rights(admin, keeper, installation.demo(folder))
    return kubeconfigs[0]


@pytest.fixture(scope="session")
def overlays(tmp_path_factory):
    """All objects of each overlay, by the overlay's name."""
    folder = installation.copy(tmp_path_factory.mktemp("install") / "kubernetes")
    return {"production": installation.production(folder), "demo": installation.demo(folder)}


@pytest.fixture(scope="session", params=["production", "demo"])
def overlay(overlays, request):
    """The objects of one overlay; a test with it runs for each overlay."""
    return overlays[request.param]
