"""A node's namespaces: who reaches whom, and that nothing outlives the process that made them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gateway.cells import until
from tests.kubernetes.pods.network import TUNABLES, Network
from tests.kubernetes.pods.packages import ROOT

pytestmark = pytest.mark.full

MAKE = """
import sys
from tests.kubernetes.pods.network import Network

with Network() as network:
    print(network.pods, flush=True)
    sys.stdin.read()
"""


def routes():
    return subprocess.run(["ip", "route"], check=True, capture_output=True, text=True).stdout


def test_a_node_reaches_us_and_has_settings_of_its_own():
    before = {name: Path(f"/proc/sys/{name}").read_text() for name in TUNABLES}
    with Network() as network:
        assert f"{network.pods} via {network.inside}" in routes()
        assert network.outside in network.run("ip", "route", "get", network.outside)
        for name, value in TUNABLES.items():
            assert network.run("cat", f"/proc/sys/{name}").strip() == value
        mounts = network.run("cat", "/proc/mounts")
        assert "/run/containerd tmpfs" in mounts
    assert network.pods not in routes()
    assert {name: Path(f"/proc/sys/{name}").read_text() for name in TUNABLES} == before
    assert "/run/containerd tmpfs" not in Path("/proc/mounts").read_text()


def test_a_node_ends_with_who_made_it():
    with subprocess.Popen(
        [sys.executable, "-c", MAKE],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as maker:
        assert maker.stdout is not None
        pods = maker.stdout.readline().strip()
        assert pods in routes()
        maker.kill()
    until(lambda: pods not in routes(), "the way to the pods is gone")
