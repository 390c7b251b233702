"""Four readers replay history at half the disk's rate while others read at the tail.

Reads of history come from the disk: its files are dropped from the page cache first, and each
reader has partitions of its own. There is more of it than is read while the tail is measured. The
tail is a paced load with a reader; its latencies from due to read are taken alone, beside the
replay, and beside a load that keeps the splitter (Kafka: the log's rolling) at work. `value` and
`peer` are the 99th percentile beside the replay over that alone, ours and kafka1's. A replay at
full speed is compared with the disk.
"""

from __future__ import annotations

import dataclasses
import math
import urllib.request
from collections.abc import Sequence

from tests.bench import machine, paced, proc
from tests.bench.cpu_per_gib import ROLL_AFTER_MS, wait_until_settled
from tests.bench.generators import Load, Producing, run_light
from tests.bench.readers import Consuming, Reading, consume_records
from tests.bench.report import Report, ratio
from tests.bench.rounds import Figures, Rounds, beside_earlier, median, summarize_sides
from tests.bench.sides import BEFORE, FRESHET, FreshetSide, Side, chosen, running, work_folder
from tests.bench.topics import create_topic

SIDES = ("freshet", "kafka1")
PEER = "kafka1"
ROUNDS = 3
HISTORY, OTHER = "history", "other"
HISTORY_PARTITIONS = 32
# Large records, so that the readers' own CPU is not the limit.
HISTORY_RECORD_BYTES = 64 * 1024
HISTORY_MARGIN = 1.1
HISTORY_BATCH = {"batch.size": 1024 * 1024}
READERS = 4
OTHER_RATE = 20_000
TAIL = paced.Shape(partitions=10, record_bytes=1024)
TAIL_RATE = 5_000
SECONDS = 20.0


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    before: str | None = None,
) -> Report:
    """Runs the bench. `scale` shortens history and each measurement."""
    names = chosen(SIDES, only, before)
    turns = Rounds("cold_replay", names, rounds or ROUNDS, {"scale": scale})
    disk = turns.fact("disk_mib_per_s", lambda: machine.cold_read_mib_per_s(work_folder()))
    samples = turns.play(lambda name: _measure(name, disk, scale))
    return Report(
        bench=turns.bench,
        value=median(samples, FRESHET, "replay_p99_ratio"),
        unit="ratio",
        peer=median(samples, PEER, "replay_p99_ratio"),
        details={
            "rounds": turns.count,
            **turns.facts,
            "full_speed_share_of_disk": ratio(
                median(samples, FRESHET, "full_speed_mib_per_s"), disk
            ),
            "tail_hit_share": median(samples, FRESHET, "tail_hit_share", 4),
            "sides": summarize_sides(samples),
            "machine": turns.limits,
        },
        earlier=beside_earlier(samples, before, median(samples, BEFORE, "replay_p99_ratio")),
    )


def _measure(name: str, disk_mib_per_s: float, scale: float) -> Figures:
    with running(name, [f"lane.roll_after_ms = {ROLL_AFTER_MS}"]) as side:
        replayed_bytes_per_s = round(disk_mib_per_s / 2 * 2**20)
        seconds = SECONDS * scale
        history_bytes = HISTORY_MARGIN * replayed_bytes_per_s * (seconds + paced.SKIP_S)
        records = round(history_bytes / HISTORY_RECORD_BYTES)
        create_topic(side, HISTORY, HISTORY_PARTITIONS)
        create_topic(side, OTHER, paced.Shape(100, 1024).partitions)
        run_light(Load(side.bootstrap, HISTORY, records, HISTORY_RECORD_BYTES, HISTORY_BATCH))
        paced.warm_up(side, TAIL, round(TAIL_RATE * seconds), TAIL_RATE)
        wait_until_settled(side)
        figures = _beside_replay(
            side, _replay_history(side, records, replayed_bytes_per_s), seconds
        )
        figures |= _beside_splitting(side, seconds)
        wait_until_settled(side)
        machine.drop_from_page_cache(side.folder)
        before = proc.usage(side.pids)
        seen = consume_records(_replay_history(side, records))
        used = proc.usage(side.pids).since(before).cpu_seconds
        return figures | {
            "full_speed_mib_per_s": seen.mib_per_s,
            "full_speed_reader_cpu_share": seen.reader_cpu_share,
            "full_speed_broker_cpus": used / seen.seconds,
        }


def _replay_history(side: Side, records: int, bytes_per_s: int = 0) -> Reading:
    return Reading(
        side.bootstrap,
        HISTORY,
        HISTORY_PARTITIONS,
        records,
        readers=READERS,
        divide=True,
        bytes_per_s=bytes_per_s,
    )


def _beside_replay(side: Side, replay: Reading, seconds: float) -> Figures:
    alone = paced.play_load(side, TAIL, TAIL_RATE, seconds)
    machine.drop_from_page_cache(side.folder)
    hot_before = _hot_bytes(side)
    lasting = math.ceil(seconds + paced.SKIP_S)
    replaying = Consuming(dataclasses.replace(replay, seconds=lasting))
    try:
        beside = paced.play_load(side, TAIL, TAIL_RATE, seconds)
        replayed = replaying.result()
    finally:
        replaying.close()
    tail_bytes = TAIL_RATE * (seconds + paced.SKIP_S) * TAIL.record_bytes
    hits = (_hot_bytes(side) - hot_before) / tail_bytes
    return {
        **_figures_of_phase("alone", alone),
        **_figures_of_phase("replay", beside),
        "replay_p99_ratio": beside["end_to_end_p99_ms"] / alone["end_to_end_p99_ms"],
        "replay_mib_per_s": replayed.mib_per_s,
        **({"tail_hit_share": min(1.0, hits)} if isinstance(side, FreshetSide) else {}),
    }


def _beside_splitting(side: Side, seconds: float) -> Figures:
    records = round(OTHER_RATE * (seconds + paced.SKIP_S))
    other = Producing(Load(side.bootstrap, OTHER, records, 1024, rate=OTHER_RATE))
    try:
        beside = paced.play_load(side, TAIL, TAIL_RATE, seconds)
        other.result()
    finally:
        other.close()
    return _figures_of_phase("splitting", beside)


def _figures_of_phase(phase: str, figures: Figures) -> Figures:
    shown = ("p99_ms", "end_to_end_p50_ms", "end_to_end_p99_ms", "end_to_end_p999_ms")
    return {f"{phase}_{key}": figures[key] for key in (*shown, "reached_share", "broker_cpus")}


def _hot_bytes(side: Side) -> float:
    """Bytes that clients got out of memory. Only a broker of Freshet counts them."""
    if not isinstance(side, FreshetSide):
        return 0.0
    with urllib.request.urlopen(f"http://{side.metrics_address}/metrics") as answer:
        page = answer.read().decode()
    return sum(
        float(line.split()[-1])
        for line in page.splitlines()
        if line.startswith('freshet_read_bytes_total{source="hot"')
    )
