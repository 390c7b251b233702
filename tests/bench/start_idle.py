"""Process start to first served request, and resident memory when idle.

Both sides start over storage that exists already: Kafka's is formatted, ours was written by an
earlier start. `value` is the start after an orderly stop, as when a sleeping cluster wakes; the
first start and the start after a kill are in `details`.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from tests.bench import machine, proc
from tests.bench.report import Report, progress, spread
from tests.bench.rounds import Samples, beside_earlier, median
from tests.bench.sides import (
    BEFORE,
    BROKER_CPU,
    FRESHET,
    FRESHET_PYTHON,
    GENERATOR_CPU,
    chosen,
    open_side,
    rotated,
    work_folder,
)

SIDES = ("freshet", "kafka1")
ROUNDS = 5


def run(
    rounds: int | None = None, only: Sequence[str] | None = None, before: str | None = None
) -> Report:
    """Runs the bench: each round starts every side three times."""
    rounds = rounds or ROUNDS
    names = chosen(SIDES, only, before)
    limits = machine.limits(work_folder(), GENERATOR_CPU, BROKER_CPU)
    samples: Samples = {name: defaultdict(list) for name in names}
    for number in range(rounds):
        for name in rotated(names, number):
            _play_round(name, samples[name])
            figures = {key: round(values[-1], 1) for key, values in samples[name].items()}
            progress(f"round {number + 1} of {rounds}: {name}: {figures}")
    return _report(rounds, samples, limits, before)


def _play_round(name: str, samples: dict[str, list[float]]) -> None:
    side = open_side(name)
    try:
        samples["first_ms"].append(1000 * side.start())
        side.stop()
        samples["restart_ms"].append(1000 * side.start())
        proc.wait_for_rest(side.pids)
        samples["rss_mb"].append(proc.resident_mib(side.pids))
        samples["private_mb"].append(proc.private_mib(side.pids))
        samples["start_cpu_ms"].append(1000 * proc.usage(side.pids).cpu_seconds)
        side.kill()
        samples["after_kill_ms"].append(1000 * side.start())
    finally:
        side.close()


def _report(rounds: int, samples: Samples, limits: dict[str, Any], before: str | None) -> Report:
    details: dict[str, Any] = {
        "rss_mb": median(samples, FRESHET, "rss_mb", 1),
        "rounds": rounds,
        "sides": {
            name: {key: spread(values) for key, values in figures.items()}
            for name, figures in samples.items()
        },
        "machine": limits,
    }
    if FRESHET in samples:
        details["machine"]["python_alone_ms"] = _python_alone_ms()
    return Report(
        bench="start_idle",
        value=median(samples, FRESHET, "restart_ms", 1),
        unit="ms",
        peer=median(samples, "kafka1", "restart_ms", 1),
        details=details,
        earlier=beside_earlier(samples, before, median(samples, BEFORE, "restart_ms", 1)),
    )


def _python_alone_ms() -> float:
    """The same interpreter doing nothing: what no Python program can go below."""
    command = [shutil.which("taskset") or "taskset", "-c", BROKER_CPU, str(FRESHET_PYTHON)]
    samples = []
    for _ in range(10):
        began = time.monotonic()
        subprocess.run([*command, "-P", "-c", "pass"], check=True)
        samples.append(1000 * (time.monotonic() - began))
    return round(statistics.median(samples), 1)
