"""What processes used, from `/proc`: all of it is counted by the kernel, none of it sampled."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.report import progress

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

# At rest: less than this share of a CPU over a second.
REST_SHARE = 0.04
REST_WINDOW_SECONDS = 1.0
REST_SECONDS_MAX = 60.0


@dataclass(frozen=True)
class Usage:
    """Use of several processes together since they began."""

    cpu_seconds: float
    written_bytes: int

    def since(self, before: Usage) -> Usage:
        """What was used between two readings."""
        return Usage(
            self.cpu_seconds - before.cpu_seconds, self.written_bytes - before.written_bytes
        )


def usage(pids: Sequence[int]) -> Usage:
    """CPU time (user and system) and bytes sent to block devices. See proc(5)."""
    cpu_ticks = 0
    written = 0
    for pid in pids:
        # The command's name, in parentheses, may hold anything; fields are counted after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        cpu_ticks += int(fields[11]) + int(fields[12])
        written += _value(Path(f"/proc/{pid}/io"), "write_bytes:")
    return Usage(cpu_ticks / TICKS_PER_SECOND, written)


def resident_mib(pids: Sequence[int]) -> float:
    """Resident memory, shared pages counted in each process."""
    return sum(_value(Path(f"/proc/{pid}/status"), "VmRSS:") for pid in pids) / 1024


def forget_peak(pids: Sequence[int]) -> None:
    """Has `peak_resident_mib` begin anew. See proc(5), clear_refs."""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_resident_mib(pids: Sequence[int]) -> float:
    """The most resident memory that the processes had since they began, or since `forget_peak`."""
    return sum(_value(Path(f"/proc/{pid}/status"), "VmHWM:") for pid in pids) / 1024


def private_mib(pids: Sequence[int]) -> float:
    """Memory that would be free if the processes were gone."""
    total = 0
    for pid in pids:
        rollup = Path(f"/proc/{pid}/smaps_rollup")
        total += _value(rollup, "Private_Clean:") + _value(rollup, "Private_Dirty:")
    return total / 1024


def stolen_seconds() -> float:
    """CPU seconds that the machine's CPUs had to wait for, where it is a virtual one (steal)."""
    cpus = Path("/proc/stat").read_text().splitlines()[0].split()
    return int(cpus[8]) / TICKS_PER_SECOND


def wait_for_rest(pids: Sequence[int]) -> bool:
    """Waits until the processes do next to nothing; `False` if they still work after a minute.

    What they put off while under load is then done, and counted.
    """
    clock = threading.Event()
    deadline = time.monotonic() + REST_SECONDS_MAX
    before = usage(pids)
    while time.monotonic() < deadline:
        clock.wait(REST_WINDOW_SECONDS)
        now = usage(pids)
        if now.since(before).cpu_seconds < REST_SHARE * REST_WINDOW_SECONDS * len(pids):
            return True
        before = now
    progress(f"processes {pids} did not come to rest")
    return False


def _value(file: Path, key: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1])
    message = f"{file} has no {key}"
    raise ValueError(message)
