"""What every side does before anything is measured: a JVM's hot path takes gigabytes to be
compiled, and the kernel's caches fill.

A kafka1 that took 5.0 CPU-s for the first GiB that was produced took 3.2 from the third on, and for
one that was read 0.97, then 0.5, from the eighth on 0.35.
"""

from __future__ import annotations

from tests.bench import proc
from tests.bench.generators import Load, run_light
from tests.bench.readers import Reading, consume_records
from tests.bench.sides import Side
from tests.bench.topics import create_topic

TOPIC = "warm-up"
PARTITIONS = 100
RECORD_BYTES = 1024
RECORDS = 1_200_000
READS = 8


def produce_records(side: Side, scale: float = 1.0, codec: str | None = None) -> None:
    """Produces to a topic of its own, as fast as the side takes it, until the brokers rest.

    `codec` is that of the measurement, as `Load` has it: its code has to be compiled, too.
    """
    create_topic(side, TOPIC, PARTITIONS)
    run_light(Load(side.bootstrap, TOPIC, _records(scale), RECORD_BYTES, codec=codec))
    proc.wait_for_rest(side.pids)


def read_records(side: Side, scale: float = 1.0) -> None:
    """Reads what `produce_records` left, over and over, also if brokers were started anew since."""
    for _ in range(READS):
        consume_records(Reading(side.bootstrap, TOPIC, PARTITIONS, _records(scale)))
    proc.wait_for_rest(side.pids)


def _records(scale: float) -> int:
    return round(RECORDS * scale)
