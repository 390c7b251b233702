"""Three brokers that nothing happens to, idle and then saturated: `value` is how many were fenced.

Half of `--minutes` (default: sixty) nothing is asked of them, in the other half a producer sends to
1,000 partitions as fast as it can. The aim is 0. A fence at which this machine had just run nothing
of the harness for 200 ms is counted apart, as `after_stalls`; it was no fault of the brokers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from tests.bench.clusters import FRESHET3, FreshetCluster, load_on
from tests.bench.disturbed import PARTITIONS, RECORD_BYTES
from tests.bench.generators import Producing
from tests.bench.report import Report, progress
from tests.bench.sides import chosen
from tests.bench.topics import create_topic
from tests.chaos.stalls import StallWatch

TOPIC = "untouched"
MINUTES = 60.0
RECORDS_AT_ONCE = 200_000
STALL_S = 0.2
# Silence of 0.8 s is what a broker is fenced for, after a look at it.
AFTER_STALL_S = 3.0
LOOK_S = 0.5


def run(
    rounds: int | None = None, only: Sequence[str] | None = None, minutes: float | None = None
) -> Report:
    """Runs the bench once; `rounds` repeats it and adds up."""
    chosen((FRESHET3,), only)
    half_s = 60 * (minutes or MINUTES) / 2
    parts = [part for _ in range(rounds or 1) for part in _one_round(half_s)]
    return Report(
        bench="false_takeovers",
        value=sum(part["fenced"] for part in parts),
        unit="brokers",
        peer=None,
        details={"parts": parts},
    )


def _one_round(half_s: float) -> list[dict[str, float]]:
    cluster = FreshetCluster()
    try:
        create_topic(cluster, TOPIC, PARTITIONS)
        ending = threading.Event()
        idle = _watch(cluster, "idle", half_s, lambda: ending.wait(half_s))
        load = threading.Thread(target=_saturate, args=(cluster, time.monotonic() + half_s))
        load.start()
        return [idle, _watch(cluster, "saturated", half_s, load.join)]
    finally:
        cluster.close()


def _watch(
    cluster: FreshetCluster, name: str, seconds: float, until: Callable[[], object]
) -> dict[str, float]:
    """Counts who is fenced until `until` returns."""
    progress(f"{name} for {seconds:.0f} s")
    stalls, ended = StallWatch(STALL_S), threading.Event()
    before = known = cluster.fenced()
    after_stalls = 0

    def look() -> None:
        nonlocal known, after_stalls
        while not ended.wait(LOOK_S):
            fenced = cluster.fenced()
            stalled = any(time.monotonic() - at < AFTER_STALL_S for at, _ in stalls.stalls)
            if fenced > known:
                progress(f"{name}: {fenced - known} fenced, stalled: {stalled}")
                after_stalls += fenced - known if stalled else 0
            known = fenced

    looking = threading.Thread(target=look)
    looking.start()
    until()
    ended.set()
    looking.join()
    stalls.stop()
    return {
        "seconds": seconds,
        "fenced": known - before - after_stalls,
        "after_stalls": after_stalls,
        "stalls": len(stalls.stalls),
        "longest_stall_s": round(max((took for _, took in stalls.stalls), default=0.0), 2),
    }


def _saturate(cluster: FreshetCluster, until: float) -> None:
    """Sends records as fast as it can."""
    while time.monotonic() < until:
        Producing(load_on(cluster, TOPIC, RECORDS_AT_ONCE, RECORD_BYTES)).result()
