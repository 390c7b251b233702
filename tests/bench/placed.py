"""Processes that share a CPU as pods share a node's: each has what its manifest requests.

A node hands out CPU that is scarce in the ratio of the requests, to one cgroup for each pod; what a
pod leaves is anybody's. So one tenant's broker does not take CPU of another's, nor of the gateway.
Without cgroups the processes have equal priority, whatever they are; `placed_by` says which it was.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from provisioning.cell.drivers.kubernetes.options import Resources
from provisioning.deliverables import kubernetes
from tests.bench.cgroups import make_cgroup, remove_cgroup

MANIFESTS = Path(kubernetes.__file__).parent / "base"
BROKER = "broker"
# Where each other program's manifest is.
FILES = {
    "gateway": "gateway.yaml",
    "keeper": "keeper.yaml",
    "agent": "agents.yaml",
    "web": "web.yaml",
}
# What a core is in `cpu.shares` of version 1, and in `cpu.weight` of version 2.
SHARES_OF_CORE, WEIGHT_OF_CORE = 1024, 100
SHARES_MIN, WEIGHT_MIN = 2, 1


class Pods:
    """The cgroups of a bench's processes, as a context manager that begins before they do.

    It removes the cgroups in the end, when they have ended.
    """

    def __init__(self) -> None:
        self._folders: dict[str, Path] = {}
        self._lacking = False

    @property
    def placed_by(self) -> str:
        """`cgroup`, or `nothing` where this machine allows none."""
        return "nothing" if self._lacking else "cgroup"

    def place(self, program: str, pid: int, name: str = "") -> None:
        """Moves a process to a pod of its own: of `broker` or a program of `FILES`.

        `name` tells the pods of one program apart.
        """
        cores = requested_cores(program)
        pod = f"{program}-{name}" if name else program
        folder = make_cgroup(
            pod,
            {"cpu.weight": str(max(WEIGHT_MIN, round(cores * WEIGHT_OF_CORE)))},
            {"cpu.shares": str(max(SHARES_MIN, round(cores * SHARES_OF_CORE)))},
        )
        if folder is None:
            self._lacking = True
            return
        self._folders[pod] = folder
        (folder / "cgroup.procs").write_text(str(pid))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for folder in self._folders.values():
            remove_cgroup(folder)
        self._folders.clear()


def requested_cores(program: str) -> float:
    """How many cores the pods of a program request."""
    if program == BROKER:
        return _cores(Resources().cpu)
    manifests: list[dict[str, Any]] = list(
        yaml.safe_load_all((MANIFESTS / FILES[program]).read_text(encoding="utf-8"))
    )
    specs = [manifest["spec"] for manifest in manifests]
    (pod,) = [spec["template"]["spec"] for spec in specs if "replicas" in spec]
    return _cores(pod["containers"][0]["resources"]["requests"]["cpu"])


def _cores(quantity: str) -> float:
    milli = quantity.removesuffix("m")
    return float(milli) / 1000 if milli != quantity else float(quantity)
