"""One GlusterFS for all tests of this folder, and the times of the takeovers that they saw."""

import pytest

from tests.dfs.brokers import MountedCluster, longest_pause_s
from tests.dfs.volume import GlusterVolume

PAUSES: list[str] = []


def pytest_terminal_summary(terminalreporter):
    """Reports how long clients waited, which says more than that all passed."""
    if PAUSES:
        terminalreporter.write_sep("=", "longest pause of any partition, over two mounts")
        for line in PAUSES:
            terminalreporter.write_line(line)


@pytest.fixture
def note_pause(request):
    """Notes the longest pause of a load, under the test's name."""

    def note(load):
        PAUSES.append(f"{longest_pause_s(load):5.2f} s  {request.node.name}")

    return note


@pytest.fixture(scope="session")
def volume(tmp_path_factory):
    """A volume with two mounts that are fit for lanes."""
    with GlusterVolume(tmp_path_factory.mktemp("gluster")) as running:
        yield running


@pytest.fixture
def one_slot(volume, tmp_path):
    """A cluster of one broker, in a folder of the volume that is its own."""
    return MountedCluster(tmp_path, volume.mounts, slots=1)


@pytest.fixture
def three_slots(volume, tmp_path):
    """A cluster of three brokers, likewise."""
    return MountedCluster(tmp_path, volume.mounts, slots=3)
