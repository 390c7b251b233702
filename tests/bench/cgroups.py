"""Cgroups that bound or weigh the CPU of processes, of either version."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from tests.kubernetes.pods.needs import cgroup_trees

# The kernel takes a moment to forget processes that have ended.
REMOVE_TRIES = 50
REMOVE_WAIT_S = 0.1


def make_cgroup(name: str, *choices: Mapping[str, str]) -> Path | None:
    """A new cgroup of this process's runs, with the first of the choices that its tree knows.

    A choice is what to write into which of the cgroup's files. `None` where this machine allows no
    cgroup, or the CPU is not among its controllers.
    """
    for tree in cgroup_trees():
        folder = tree / f"freshet-bench-{os.getpid()}-{name}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            if any(_set(folder, choice) for choice in choices):
                return folder
            folder.rmdir()
    return None


def _set(folder: Path, choice: Mapping[str, str]) -> bool:
    if not all((folder / file).exists() for file in choice):
        return False
    with contextlib.suppress(OSError):
        for file, value in choice.items():
            (folder / file).write_text(value)
        return True
    return False


def remove_cgroup(folder: Path) -> None:
    """Removes a cgroup whose processes have ended. Raises `RuntimeError` where one is left."""
    for _ in range(REMOVE_TRIES):
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        threading.Event().wait(REMOVE_WAIT_S)
    message = f"{folder} cannot be removed: a process is left in it"
    raise RuntimeError(message)
