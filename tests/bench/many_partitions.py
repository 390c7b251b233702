"""10,000 idle partitions in one broker, then 1 % of them active.

`value` and `peer` are KiB of resident memory per idle partition, ours and kafka1's. In `details`:
the time from a start, after an orderly stop and after a kill, until every partition answers; and
the latency of a paced load over 100 of them, against the same over 10 partitions alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ListOffsetsResultInfo,
    OffsetSpec,
)

from tests.bench import paced, proc
from tests.bench.generators import Load, run_librdkafka
from tests.bench.report import Report, progress
from tests.bench.rounds import Figures, Rounds, median, ratio, sides_told
from tests.bench.sides import FRESHET, Side, chosen, open_side
from tests.bench.topics import create_topic

SIDES = ("freshet", "kafka1")
PEER = "kafka1"
ROUNDS = 3
PARTITIONS = 10_000
TOPICS = 10
FEW = paced.Shape(partitions=10, record_bytes=1024, settings={"linger.ms": 0})
RATE = 1_000
SECONDS = 20.0
OPEN_SECONDS_MAX = 300.0
RETRY_S = 0.02


def run(rounds: int | None = None, only: Sequence[str] | None = None, scale: float = 1.0) -> Report:
    """Runs the bench. `scale` has it take fewer partitions and less time."""
    names = chosen(SIDES, only)
    turns = Rounds("many_partitions", names, rounds or ROUNDS, {"scale": scale})
    samples = turns.play(lambda name: _measure(name, scale))
    return Report(
        bench=turns.bench,
        value=median(samples, FRESHET, "kib_per_partition"),
        unit="KiB/partition",
        peer=median(samples, PEER, "kib_per_partition"),
        details={
            "rounds": turns.count,
            "partitions": round(PARTITIONS * scale),
            "opened_ms": median(samples, FRESHET, "opened_ms"),
            "opened_after_kill_ms": median(samples, FRESHET, "opened_after_kill_ms"),
            "p99_ratio": {
                name: ratio(median(samples, name, "many_p99_ms"), median(samples, name, "p99_ms"))
                for name in names
            },
            "sides": sides_told(samples),
            "machine": turns.limits,
        },
    )


def _measure(name: str, scale: float) -> Figures:
    side = open_side(name)
    many = round(PARTITIONS * scale)
    seconds = SECONDS * scale
    try:
        side.start()
        paced.warm_up(side, FEW, round(RATE * seconds), RATE)
        few = paced.play(side, FEW, RATE, seconds)
        proc.wait_for_rest(side.pids)
        before_mib = proc.resident_mib(side.pids)
        began = time.monotonic()
        for number in range(TOPICS):
            create_topic(side, f"idle{number}", many // TOPICS)
        created_s = time.monotonic() - began
        proc.wait_for_rest(side.pids)
        added_mib = proc.resident_mib(side.pids) - before_mib
        side.stop()
        opened = _opened_ms(side, many)
        active = _active(side, many, seconds)
        side.kill()
        after_kill = _opened_ms(side, many)
        proc.wait_for_rest(side.pids)
        return {
            "kib_per_partition": 1024 * added_mib / many,
            "rss_few_mb": before_mib,
            "rss_after_restart_mb": proc.resident_mib(side.pids),
            "created_s": created_s,
            "opened_ms": opened,
            "opened_after_kill_ms": after_kill,
            "p99_ms": few["p99_ms"],
            "p50_ms": few["p50_ms"],
            **active,
        }
    finally:
        side.close()


def _active(side: Side, many: int, seconds: float) -> Figures:
    """Latencies of a load over 1 % more partitions, while the others are idle."""
    proc.wait_for_rest(side.pids)
    shape = paced.Shape(max(1, many // 100), FEW.record_bytes, settings=FEW.settings)
    create_topic(side, "active", shape.partitions)
    run_librdkafka(Load(side.bootstrap, "active", round(RATE * seconds), 1024, rate=RATE))
    figures = paced.play(side, shape, RATE, seconds, "active")
    return {f"many_{key}": figures[key] for key in ("p50_ms", "p99_ms", "p999_ms")}


def _opened_ms(side: Side, many: int) -> float:
    """Starts a side; gives the time until each partition tells its end, without the asking."""
    began = time.monotonic()
    side.start()
    deadline = began + OPEN_SECONDS_MAX
    admin = AdminClient({"bootstrap.servers": side.bootstrap, "log_level": 0})
    clock = threading.Event()
    while (asked_s := _ask_all(admin, many)) is None:
        if time.monotonic() > deadline:
            message = "not every partition was opened"
            raise RuntimeError(message)
        clock.wait(RETRY_S)
    # What asking itself takes is no part of opening.
    opened_s = time.monotonic() - began - (_ask_all(admin, many) or asked_s)
    progress(f"  {many} partitions opened in {opened_s:.2f} s")
    return 1000 * opened_s


def _ask_all(admin: AdminClient, many: int) -> float | None:
    """Seconds that asking every partition for its end takes, or nothing where one has none yet."""
    began = time.monotonic()
    each = many // TOPICS
    places = {
        TopicPartition(f"idle{number}", partition): OffsetSpec.latest()
        for number in range(TOPICS)
        for partition in range(each)
    }
    try:
        answers: Mapping[TopicPartition, Future[ListOffsetsResultInfo]] = admin.list_offsets(
            places, request_timeout=30
        )
        for answer in answers.values():
            answer.result()
    except KafkaException:
        return None
    return time.monotonic() - began
