"""The roll-up as it is beside adaptive execution and other partition counts, over two days.

On one day all clusters have as many rows, on the other one of them has half of all rows.

All give one content hash. `value` is the CPU time of adaptive execution over that of none, on the
skewed day.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from spark_usage.jobs.runner import ROWS_PER_PARTITION
from tests.bench.report import Report, progress, spread
from tests.bench.rollup import Sample, adopt_orphans, run_timed
from tests.bench.sides import chosen, rotated, work_folder
from tests.bench.usage_days import DAY, RUN_ID, make_day

SIDES = {
    "as_it_is": {"adaptive": False, "rows_per_partition": ROWS_PER_PARTITION},
    "adaptive": {"adaptive": True, "rows_per_partition": ROWS_PER_PARTITION},
    "few_partitions": {"adaptive": False, "rows_per_partition": 4 * ROWS_PER_PARTITION},
    "many_partitions": {"adaptive": False, "rows_per_partition": ROWS_PER_PARTITION // 10},
}
ROUNDS = 3


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench: each round takes every side over both days."""
    rounds, rows = rounds or ROUNDS, int(os.environ.get("ROWS", "1000000"))
    names = chosen(tuple(SIDES), only)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    adopt_orphans()
    days = {
        "even": make_day(work_folder() / f"usage-even-{rows}", rows),
        "skewed": make_day(work_folder() / f"usage-skewed-{rows}", rows, skewed=True),
    }
    samples: dict[tuple[str, str], list[Sample]] = {}
    hashes: dict[str, set[str]] = {day: set() for day in days}
    for number in range(rounds):
        for day, manifest in days.items():
            for name in rotated(names, number):
                output = manifest.parent / "output"
                shutil.rmtree(output, ignore_errors=True)
                command = [
                    *(sys.executable, "-m", "tests.bench.rollup_as", json.dumps(SIDES[name])),
                    *("--day", DAY.isoformat(), "--run-id", RUN_ID),
                    *("--manifest", str(manifest), "--output", str(output)),
                ]
                sample = run_timed(command)
                samples.setdefault((day, name), []).append(sample)
                report = json.loads((output / "report.json").read_text())
                hashes[day].add(report["content_sha256"])
                progress(
                    f"{day}: {name}: {sample.wall_seconds:.1f} s, {sample.cpu_seconds:.1f} CPU"
                )
    if any(len(contents) > 1 for contents in hashes.values()):
        message = f"the same files gave different results: {hashes}"
        raise RuntimeError(message)
    figures: dict[str, Any] = {
        f"{day}/{name}": {
            "wall_seconds": spread([sample.wall_seconds for sample in taken]),
            "cpu_seconds": spread([sample.cpu_seconds for sample in taken]),
        }
        for (day, name), taken in samples.items()
    }

    def cpu(name: str) -> float | None:
        of_side = figures.get(f"skewed/{name}")
        return None if of_side is None else float(of_side["cpu_seconds"]["median"])

    return Report(
        bench="rollup_shapes",
        value=cpu("adaptive"),
        unit="CPU s",
        peer=cpu("as_it_is"),
        details={"rounds": rounds, "rows": rows, "sides": figures},
    )
