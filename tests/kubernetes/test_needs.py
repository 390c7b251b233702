"""Tests of real pods run where the machine has what they need, and report it where not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.kubernetes.pods import needs

ROOT = Path(__file__).parents[2]


def test_what_a_machine_lacks_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(needs, "CGROUPS", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "nsenter" else name)
    said = ", ".join(needs.missing())
    for need in ("the program nsenter", "root", "cgroups that may be written"):
        assert need in said
    assert "the program ip" not in said


def test_a_cgroup_tree_of_either_version_is_known(monkeypatch, tmp_path):
    monkeypatch.setattr(needs, "CGROUPS", tmp_path)
    for name in needs.CONTROLLERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").touch()
    assert needs.cgroup_trees() == sorted(tmp_path / name for name in needs.CONTROLLERS)
    assert needs.unwritable_cgroups() == []
    (tmp_path / "cgroup.controllers").touch()
    assert needs.cgroup_trees() == [tmp_path]


def test_a_machine_that_lacks_something_reports_that_nothing_ran(tmp_path):
    command = [sys.executable, "-m", "pytest", "-q", "tests/kubernetes/pods"]
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "tests of real pods did not run" in run.stdout, run.stdout + run.stderr
    assert "this machine lacks the program apt-get" in run.stdout
    assert run.returncode == 5, "no test was found"
