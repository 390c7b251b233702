"""A run: clients at work, one fault after another, and what became of the records."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.brokers.logscan import LogScan
from tests.chaos.cell import CLUSTER, METADATA_ROOT, FenceWatch, HurtCell
from tests.chaos.checker import Placed, check, difference
from tests.chaos.faults import Happened, Injector, decks
from tests.chaos.load import PARTITIONS, TOPIC, Load, read_log
from tests.chaos.stalls import StallWatch
from tests.supervisor.run import wait_until

# From the end of a fault until all clients went on and the cell is whole. A broker that ends again
# and again waits up to 30 s for its next start.
RECOVERY_S = 120
# Between the recovery from a fault and the next fault.
PAUSE_S = (1.0, 3.0)
# How long after its end a fault explains that a broker was fenced.
AFTERMATH_S = 5.0
# A machine that runs nothing of ours for so long explains a fence, too.
STALL_S = 0.4


def run_chaos(folder: Path, *, minutes: float, seed: int, part: int = 0) -> dict[str, object]:
    """A whole run with its checks; returns the report. What it left is in the folder.

    The schedule follows from `seed` and `part`, so that a long run may be done in parts.
    """
    cell = HurtCell(folder)
    began = time.monotonic()
    chooser = random.Random(f"{seed}/{part}")
    injector = Injector(cell, chooser)
    stalls = StallWatch(STALL_S)
    failures: list[str] = []
    try:
        cell.start()
        fences, load = FenceWatch(cell), Load(cell)
        wait_until(lambda: load.all_went_on(began), "all clients work")
        began = time.monotonic()
        try:
            hurt(injector, load, chooser, until=began + minutes * 60)
        except AssertionError as error:
            failures.append(f"{words_of(injector.happened[-1], began)}: {error}")
        seconds = time.monotonic() - began
        log = settle(cell, load, failures)
        fences.stop()
        cell.stop()
        stored, epochs = scan(cell)
        if log is not None:
            failures += difference(log, stored)
        verdict = check(stored, load.acked(), load.group.seen.values)
    finally:
        stalls.stop()
        cell.close()
    return {
        "seed": seed,
        "part": part,
        "seconds": round(seconds, 1),
        "sound": verdict.is_sound and not failures and not load.errors(),
        "faults": dict(Counter(fault.kind for fault in injector.happened)),
        "records": verdict.records,
        "acknowledged": len(load.acked()),
        "found": verdict.counts,
        "named": verdict.named,
        "producer epochs": epochs,
        "read again": load.group.seen.repeated,
        "client errors": load.errors()[:10],
        "failures": failures,
        "happened": [words_of(fault, began) for fault in injector.happened],
        **fences_report(fences, injector.happened, stalls, began),
        **load_report(load, injector.happened),
    }


def hurt(injector: Injector, load: Load, chooser: random.Random, until: float) -> None:
    """Injects faults until a moment. Raises `AssertionError` where the cell does not recover."""
    pause = threading.Event()
    for kind in decks(chooser):
        pause.wait(chooser.uniform(*PAUSE_S))
        if time.monotonic() > until:
            return
        fault = injector.inject(kind)
        recover(injector.cell, load, fault)


def recover(cell: HurtCell, load: Load, fault: Happened) -> None:
    """Waits until the cell is whole after a fault and every client went on.

    Raises `AssertionError` where that does not come.
    """
    wait_until(
        lambda: load.all_went_on(fault.ended) and cell.is_whole(),
        f"the cell recovers from {fault.kind}",
        RECOVERY_S,
    )
    fault.recovered = time.monotonic()


def settle(cell: HurtCell, load: Load, failures: list[str]) -> Sequence[Placed] | None:
    """Heals the cell, ends the clients once all was read, and reads the log as a client.

    None where that cannot be; `failures` says why.
    """
    cell.disk.heal()
    cell.network.heal()
    try:
        cell.wait_whole()
        for producer in load.producers:
            producer.stop()
        due = len(load.acked())
        wait_until(lambda: load.group.seen.count() >= due, "the group reads all")
        load.group.stop()
        return list(read_log(cell.bootstrap))
    except AssertionError as error:
        failures.append(str(error))
        load.group.stop()
        return None


def scan(cell: HurtCell) -> tuple[Sequence[Placed], dict[int, int]]:
    """The log as storage has it, by a reader that shares no code with the brokers.

    With it, of each producer id the greatest epoch. A library begins one where a broker says that
    it misses records, and whatever is in flight then may be written twice.
    """
    records = cell.etcd.records(METADATA_ROOT, CLUSTER)
    stored = LogScan(cell.folder / "behind", cell.folder / "bucket", records, CLUSTER)
    epochs: dict[int, int] = {}
    for partition in range(PARTITIONS):
        for batch in stored.batches(TOPIC, partition):
            known = epochs.get(batch.producer_id, 0)
            epochs[batch.producer_id] = max(known, batch.producer_epoch)
    placed = [
        Placed(partition, record.offset, record.value or b"")
        for partition, record in stored.records(TOPIC)
    ]
    return placed, epochs


def words_of(fault: Happened, began: float) -> str:
    """A fault in one line."""
    recovery = fault.recovered - fault.ended
    then = f"recovered after {recovery:.1f} s" if fault.recovered else "never recovered from"
    return f"{fault.began - began:.1f} s: {fault.kind} ({fault.what}), {then}"


def fences_report(
    fences: FenceWatch, happened: Sequence[Happened], stalls: StallWatch, began: float
) -> dict[str, object]:
    """Brokers that others ended, by the fault that explains it; those that none explains."""
    by_kind: Counter[str] = Counter()
    unexplained = []
    for moment, slot, incarnation in fences.fences:
        kind = next(
            (
                fault.kind
                for fault in reversed(happened)
                if slot in fault.slots
                and fault.began <= moment <= (fault.ended or moment) + AFTERMATH_S
            ),
            None,
        )
        stalled = any(moment - AFTERMATH_S <= at <= moment for at, _ in stalls.stalls)
        if kind is None and stalled:
            kind = "machine stalled"
        if kind is not None:
            by_kind[kind] += 1
            continue
        before = [fault for fault in happened if fault.began <= moment]
        after = f"{before[-1].kind} {moment - before[-1].began:.1f} s before" if before else ""
        unexplained.append(
            f"slot {slot}, incarnation {incarnation} at {moment - began:.1f} s; {after}"
        )
    return {
        "fenced by": dict(by_kind),
        "false takeovers": unexplained,
        "machine stalls": [round(seconds, 1) for _, seconds in stalls.stalls],
    }


def load_report(load: Load, happened: Sequence[Happened]) -> dict[str, object]:
    """Of each client the longest pause, also after each kind of fault, and its work by seconds."""
    longest, throughput = {}, {}
    by_kind: dict[str, dict[str, float]] = {}
    for name, moments in load.moments().items():
        longest[name] = {
            "seconds": round(moments.longest_s, 2),
            "at": round(moments.longest_at[0], 1),
            "partition": moments.longest_at[1],
        }
        for end, seconds in moments.pauses:
            kind = next((fault.kind for fault in reversed(happened) if fault.began < end), "none")
            of_clients = by_kind.setdefault(kind, {})
            of_clients[name] = max(of_clients.get(name, 0.0), round(seconds, 2))
        last = max(moments.seconds, default=-1)
        throughput[name] = [moments.seconds[second] for second in range(last + 1)]
    pauses = {"longest pauses": longest, "longest pauses by fault": by_kind}
    return {**pauses, "throughput per second": throughput}
