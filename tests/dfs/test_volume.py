"""A GlusterFS of a test: which mounts of it are fit for lanes, and that nothing of it stays."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from brokers.probe.report import probe_folder
from tests.dfs.volume import (
    FIT_OPTIONS,
    FIT_TRANSLATORS,
    GlusterVolume,
)
from tests.supervisor.run import ROOT, wait_until

pytestmark = pytest.mark.full("stores")

# For which a mount remembers: 1 by default, which a busy machine may pass within a promise's test.
LONG_S = 60

HOLD = """
import sys
from pathlib import Path
from tests.dfs.volume import GlusterVolume
with GlusterVolume(Path(sys.argv[1])):
    print("mounted", flush=True)
    sys.stdin.read()
"""


def left_of(folder):
    """Mounts below a folder, and processes that were started with a path in it and still run."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    running = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(folder).encode() in command and b"glusterfs" in command:
            running.append(command)
    return [mount for mount in mounts if mount.startswith(str(folder))] + running


def test_mounts_that_remember_nothing_are_fit(volume):
    report = probe_folder(*volume.mounts)
    assert report.fit, list(report.lines())


@pytest.mark.parametrize(
    ("options", "translators"),
    [
        ({"entry-timeout": LONG_S, "attribute-timeout": LONG_S}, FIT_TRANSLATORS),
        ({**FIT_OPTIONS, "entry-timeout": LONG_S}, FIT_TRANSLATORS),
        (FIT_OPTIONS, {**FIT_TRANSLATORS, "quick-read": {"cache-timeout": LONG_S}}),
        (FIT_OPTIONS, {**FIT_TRANSLATORS, "md-cache": {"md-cache-timeout": LONG_S}}),
    ],
    ids=["names and attributes", "names", "quick-read", "md-cache"],
)
def test_mounts_that_remember_something_are_unfit(tmp_path, options, translators):
    with GlusterVolume(tmp_path / "v", options=options, translators=translators) as running:
        assert not probe_folder(*running.mounts).fit


def test_nothing_of_a_volume_stays(tmp_path):
    """Also where a program still has a file of it open."""
    with GlusterVolume(tmp_path / "v") as running:
        assert len(left_of(running.folder)) > len(running.mounts)
        file = os.open(running.mounts[0] / "open", os.O_CREAT | os.O_WRONLY)
    assert left_of(tmp_path) == []
    with pytest.raises(OSError, match="not connected"):
        os.write(file, b"late")
    with contextlib.suppress(OSError):
        os.close(file)


def test_nothing_of_a_volume_stays_when_its_test_is_killed(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path / "v")]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "mounted\n"
        owner.kill()
    wait_until(lambda: left_of(tmp_path) == [], "all has ended and nothing is mounted")
