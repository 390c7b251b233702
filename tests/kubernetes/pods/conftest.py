"""One Kubernetes with real pods, one image and one etcd for all tests of this folder."""

import itertools

import pytest

from tests.etcd import running_etcd
from tests.kubernetes.image.build import build
from tests.kubernetes.pods import needs
from tests.kubernetes.pods.cluster import RunningCluster
from tests.kubernetes.pods.world import PodCell

LACKS = needs.missing()
# Numbers for the names of cells, each of which has its own part of etcd.
NUMBERS = itertools.count()


def pytest_ignore_collect():
    """Leaves out these tests where the machine cannot run pods."""
    return True if LACKS else None


def pytest_terminal_summary(terminalreporter):
    """Reports that these tests did not run, so that nobody believes they passed."""
    if LACKS:
        terminalreporter.write_sep("=", "tests of real pods did not run", yellow=True)
        terminalreporter.write_line(f"this machine lacks {', '.join(LACKS)}")


@pytest.fixture(scope="session")
def image():
    """Freshet's image of this checkout, with only what broker pods need."""
    return build(brokers=True)


@pytest.fixture(scope="session")
def kubernetes(image):
    """A real Kubernetes with one node."""
    with RunningCluster(image.archive) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def etcd(kubernetes, tmp_path_factory):
    """The etcd of the cells, which this machine and pods can reach."""
    with running_etcd(tmp_path_factory.mktemp("etcd"), kubernetes.network.outside) as server:
        yield server


@pytest.fixture
def cell(kubernetes, image, etcd, tmp_path):
    """A cell without a keeper."""
    pod_cell = PodCell(tmp_path / f"cell-{next(NUMBERS)}", kubernetes, image, etcd)
    yield pod_cell
    pod_cell.close()
