"""Folders that break one promise each are refused for it, by the probe and by a broker's start."""

import json
import subprocess
import sys

import pytest

from brokers.probe.alone import PREFIX, UnfitError, probe_alone
from brokers.probe.report import probe_folder
from tests.clients.servers import ROOT, BrokerServer
from tests.faulty import faults
from tests.faulty.faults import Faults
from tests.faulty.mount import FaultyFolder

ALONE = [
    (Faults(lies=[faults.RENAME_COPIES]), "renames", "keeps its old name"),
    (Faults(lies=[faults.OLD_CONTENT]), "synced writes", "past the cache"),
    (Faults(lies=[faults.NO_DIRECT]), "synced writes", "EINVAL"),
    (Faults(errors={"fsync": "EIO"}), "synced writes", "EIO"),
    (Faults(errors={"fsyncdir": "EIO"}), "synced writes", "EIO"),
    (Faults(errors={"link": "EPERM"}), "links", "EPERM"),
    (Faults(errors={"rename": "EOPNOTSUPP"}), "renames", "ENOTSUP"),
    (Faults(errors={"create": "EROFS"}), "exclusive creation", "EROFS"),
    (Faults(errors={"mkdir": "EACCES"}), "a folder of its own", "EACCES"),
]

REMEMBERS = faults.REMEMBERS_NAMES
BETWEEN = [
    ([REMEMBERS], "names seen by another process"),
    ([REMEMBERS], "renames seen by another process"),
    ([REMEMBERS, faults.CREATE_OVER], "exclusive creation against another process"),
    ([REMEMBERS, faults.LINK_OVER], "links against another process"),
    ([REMEMBERS, faults.MKDIR_OVER], "exclusive folders against another process"),
    ([faults.OLD_CONTENT], "overwrites seen through another process's open file"),
    ([faults.OLD_CONTENT], "synced writes read by another process"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    at = tmp_path_factory.mktemp("faulty")
    with FaultyFolder(at / "mount", at / "behind") as mounted:
        yield mounted


@pytest.fixture(scope="module")
def second(tmp_path_factory, folder):
    """Another mount of the same folder."""
    with FaultyFolder(tmp_path_factory.mktemp("second") / "mount", folder.behind) as mounted:
        yield mounted


@pytest.fixture(autouse=True)
def healed(folder):
    yield
    folder.heal()
    left = [entry.name for entry in folder.behind.iterdir() if entry.name.startswith(PREFIX)]
    assert left == []


def broken(report):
    return {finding.promise for finding in report.findings if not finding.kept}


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "brokers", "probe", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_folder_of_this_machine_is_fit(tmp_path):
    report = probe_folder(tmp_path / "made" / "for it", None)
    assert report.fit, list(report.lines())
    assert list((tmp_path / "made" / "for it").iterdir()) == []


def test_good_folder_is_fit_by_two_mounts(folder, second):
    second.heal()
    report = probe_folder(folder.path, second.path)
    assert report.fit, list(report.lines())


@pytest.mark.parametrize(("wrong", "promise", "reason"), ALONE)
def test_broken_promise_is_named(folder, wrong, promise, reason):
    folder.fail(wrong)
    with pytest.raises(UnfitError) as refusal:
        probe_alone(folder.path)
    assert refusal.value.promise == promise
    assert reason in refusal.value.reason


@pytest.mark.parametrize(("lies", "promise"), BETWEEN)
def test_promise_broken_between_two_mounts_is_named(folder, second, lies, promise):
    second.fail(Faults(lies=lies))
    assert promise in broken(probe_folder(folder.path, second.path))


def test_full_folder_is_not_unfit(folder):
    folder.fail(Faults(errors={"write": "ENOSPC", "create": "EDQUOT"}))
    probe_alone(folder.path)


def test_another_folder_is_no_second_mount(folder, tmp_path):
    assert broken(probe_folder(folder.path, tmp_path)) == {"the same folder"}


def test_status_and_json_say_what_was_found(folder):
    fit = command(folder.path, "--json")
    assert fit.returncode == 0, fit.stdout + fit.stderr
    assert json.loads(fit.stdout)["fit"]
    folder.fail(Faults(errors={"link": "EPERM"}))
    unfit = command(folder.path)
    assert unfit.returncode == 4
    assert "BROKEN: EPERM" in unfit.stdout
    assert "is UNFIT" in unfit.stdout
    folder.fail(Faults(errors={"mkdir": "EACCES"}))
    assert json.loads(command(folder.path, "--json").stdout)["fit"] is False
    assert command().returncode == 2


def test_broker_does_not_start_on_an_unfit_folder(folder, tmp_path):
    broker = BrokerServer(tmp_path, storage={"dfs": folder.path})
    folder.fail(Faults(errors={"link": "EOPNOTSUPP"}))
    with pytest.raises(AssertionError, match=r"did not start \(1\)"), broker:
        pass
    said = broker.log.read_text()
    assert "is not fit for lanes: links: ENOTSUP" in said
    folder.heal()
    with broker:
        assert broker.stop() == 0
