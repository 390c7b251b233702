"""What a machine lacks for a GlusterFS is named, also by a test that needs one."""

import os
import shutil

import pytest

from tests.dfs import needs
from tests.dfs.volume import GlusterVolume


def test_what_a_machine_lacks_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(needs, "FUSE", tmp_path / "fuse")
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "glusterfsd" else name)
    said = ", ".join(needs.missing())
    for need in ("the program glusterfsd", "root", f"{tmp_path}/fuse that may be opened"):
        assert need in said
    assert "the program glusterfs," not in said
    with pytest.raises(AssertionError, match="lacks the program glusterfsd"):
        GlusterVolume(tmp_path / "volume").start()
    assert not (tmp_path / "volume").exists()


def test_a_machine_that_lacks_nothing_is_said_to_lack_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(needs, "FUSE", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    assert needs.missing() == []
