"""Checks whether a machine has what real pods need."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PROGRAMS = ("apt-get", "dpkg", "cc", "ip", "nsenter", "openssl", "setpriv", "unshare")
CGROUPS = Path("/sys/fs/cgroup")
# The controllers that a kubelet needs, where each has a tree of its own (cgroup version 1).
CONTROLLERS = ("cpu", "cpuset", "memory", "pids")


def missing() -> list[str]:
    """What this machine lacks for real pods, as texts for people; empty where it lacks nothing."""
    lacks = [f"the program {name}" for name in PROGRAMS if shutil.which(name) is None]
    if os.geteuid() != 0:
        lacks.append("root")
    elif not _may_make_namespaces():
        lacks.append("the right to make namespaces (CAP_SYS_ADMIN)")
    if trees := unwritable_cgroups():
        lacks.append(f"cgroups that may be written ({', '.join(map(str, trees))})")
    return lacks


def cgroup_trees() -> list[Path]:
    """The folders in which cgroups are made: one, or with version 1 one for each controller."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [tree for tree in sorted(CGROUPS.glob("*")) if (tree / "cgroup.procs").exists()]


def unwritable_cgroups() -> list[Path]:
    """The trees in which no cgroup can be made, and the controllers without a tree."""
    trees = cgroup_trees()
    lacking = [tree for tree in trees if not os.access(tree, os.W_OK)]
    if trees != [CGROUPS]:
        names = {tree.name for tree in trees}
        lacking += [CGROUPS / name for name in CONTROLLERS if name not in names]
    return lacking


def _may_make_namespaces() -> bool:
    effective = next(
        line.split()[1]
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("CapEff:")
    )
    sys_admin, net_admin = 21, 12
    bits = int(effective, 16)
    return bool(bits >> sys_admin & 1 and bits >> net_admin & 1)
