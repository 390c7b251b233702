"""How long a start takes as the log grows: after an orderly stop, and after a kill under load.

The log grows in steps; at each the broker is stopped and started, and killed under load and
started, several times. `GIB=100` goes beyond what the disk of a small machine has: from
`SPARSE_FROM_GIB` on the bodies of Freshet's objects, which no start reads, are given back to the
file system. Kafka's files cannot be thinned out so, and it goes as far as `PEER_GIB`. `value` is
the start after a kill at the largest size, `peer` kafka1's at its largest; `growth` in `details` is
that over the one at the smallest. A start ends when every partition reports its end.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.bench.cpu_per_gib import ROLL_AFTER_MS, wait_until_settled
from tests.bench.generators import Load, Producing, run_light
from tests.bench.report import Report, progress, ratio
from tests.bench.rounds import Figures, Rounds, beside_earlier, median, summarize_sides
from tests.bench.sides import BEFORE, FRESHET, FreshetSide, Side, chosen, kind_of, running
from tests.bench.topics import create_topic, start_and_open

SIDES = ("freshet", "kafka1")
PEER = "kafka1"
ROUNDS = 1
TOPIC = "growth"
PARTITIONS = 100
RECORD_BYTES = 16 * 1024
GIB_MAX = 16
PEER_GIB = 4
SPARSE_FROM_GIB = 8
STARTS = 3
LOAD_RATE = 1_000
LOAD_SECONDS = 12
KILL_AFTER_S = 3.0
# Bytes that stay of an object's file: its head, and its end with the footer.
HEAD_BYTES = 64 * 1024
END_BYTES = 4 * 1024 * 1024
GIB = 2**30


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    before: str | None = None,
) -> Report:
    """Runs the bench. `scale` has the log grow less."""
    names = chosen(SIDES, only, before)
    largest = float(os.environ.get("GIB") or GIB_MAX)
    sizes = {FRESHET: _steps(largest * scale), PEER: _steps(min(largest, PEER_GIB) * scale)}
    turns = Rounds("recovery_growth", names, rounds or ROUNDS, {"sizes": sizes})
    samples = turns.play(lambda name: _measure(name, sizes[kind_of(name)]))

    def at(name: str, size: float) -> float | None:
        return median(samples, name, f"killed_{size:g}_gib_ms")

    return Report(
        bench=turns.bench,
        value=at(FRESHET, sizes[FRESHET][-1]),
        unit="ms",
        peer=at(PEER, sizes[PEER][-1]),
        details={
            "rounds": turns.count,
            "sizes_gib": sizes,
            "growth": {
                name: ratio(at(name, grown[-1]), at(name, grown[0]))
                for name, grown in ((name, sizes[kind_of(name)]) for name in names)
            },
            "sides": summarize_sides(samples),
            "machine": turns.limits,
        },
        earlier=beside_earlier(samples, before, at(BEFORE, sizes[FRESHET][-1])),
    )


def _steps(largest: float) -> list[float]:
    """Sizes up to the largest, each four times the one before."""
    sizes = [largest]
    while sizes[0] > largest / 16 and sizes[0] > 1:
        sizes.insert(0, sizes[0] / 4)
    return sizes


def _measure(name: str, sizes: Sequence[float]) -> Figures:
    figures: Figures = {}
    grown = 0.0
    with running(name, [f"lane.roll_after_ms = {ROLL_AFTER_MS}"]) as side:
        create_topic(side, TOPIC, PARTITIONS)
        for size in sizes:
            while grown < size:
                piece = min(1.0, size - grown)
                records = round(piece * GIB / RECORD_BYTES)
                run_light(Load(side.bootstrap, TOPIC, records, RECORD_BYTES))
                grown += piece
                if isinstance(side, FreshetSide) and sizes[-1] > SPARSE_FROM_GIB:
                    wait_until_settled(side)
                    _thin_out(side.folder / "bucket")
            wait_until_settled(side)
            stopped = [_start_after_stop(side) for _ in range(STARTS)]
            killed = [_start_after_kill(side) for _ in range(STARTS)]
            figures[f"stopped_{size:g}_gib_ms"] = statistics.median(stopped)
            figures[f"killed_{size:g}_gib_ms"] = statistics.median(killed)
            figures[f"killed_worst_{size:g}_gib_ms"] = max(killed)
            progress(f"  {name} at {size:g} GiB: stopped {stopped}, killed {killed} ms")
        return figures


def _start_after_stop(side: Side) -> float:
    side.stop()
    return _opened_ms(side)


def _opened_ms(side: Side) -> float:
    return round(1000 * start_and_open(side, {TOPIC: PARTITIONS}), 1)


def _start_after_kill(side: Side) -> float:
    load = Load(side.bootstrap, TOPIC, LOAD_RATE * LOAD_SECONDS, 1024, rate=LOAD_RATE)
    producing = Producing(load)
    try:
        threading.Event().wait(KILL_AFTER_S)
        side.kill()
        return _opened_ms(side)
    finally:
        # What is still to be sent is of no interest.
        producing.close()


def _thin_out(bucket: Path) -> None:
    for file in bucket.rglob("objects/*/*"):
        length = file.stat().st_size - HEAD_BYTES - END_BYTES
        if length > 0:
            hole = ["--punch-hole", "--offset", str(HEAD_BYTES), "--length", str(length)]
            subprocess.run(["fallocate", *hole, str(file)], check=True)
