"""The sample of a log with damaged batches, as release 0.1.0 wrote it.

`python -m tests.brokers.damaged_sample_writer <folder>` wrote `samples/damaged`, once, and needs a
broker that stores a batch without reading it, as those of release 0.1.0 do: later ones refuse what
this sends. Tests read the committed bytes.

As with the other samples two brokers were killed: the records of the first lie in segments, those
of the second in its lane. `expected.json` says what lies where.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from brokers import Broker
from tests.brokers.raw_batches import ENDS_READERS, damaged_batches, sound_batch
from tests.brokers.sample_writer import close_store, scan_copy
from tests.gateway.raw import Raw

TOPIC = "damaged"
PARTITIONS = 5
WRITTEN_BY = "0.1.0"
T0_MS = 1_700_000_000_000
LANE = {"file_bytes_first": 65536, "file_bytes_max": 65536, "roll_after_ms": 600_000}
CONFIGS = {
    # The records are as old as the sample is, and stay.
    "retention.ms": "-1",
    "message.timestamp.before.max.ms": str(2**63 - 1),
}
PRODUCE, PRODUCE_VERSION = 0, 7
STEP_MS = 1000
GOOD_RECORDS = 2
PLACE = "batches of {}"


@dataclass(frozen=True)
class Sent:
    """A batch for a partition. `damage` is its kind of damage; None: its records are `values`."""

    partition: int
    content: bytes
    damage: str | None = None
    values: tuple[str, ...] = ()
    base_timestamp: int = T0_MS

    @property
    def count(self) -> int:
        """How many offsets it takes."""
        return int(struct.unpack_from(">i", self.content, 57)[0])

    @property
    def header_max_timestamp(self) -> int:
        """What its header says of its largest timestamp."""
        return int(struct.unpack_from(">q", self.content, 35)[0])


def good(partition: int, writer: int, number: int, *, header_max: int | None = None) -> Sent:
    """A sound batch, the `number`th of its partition by this writer. Codecs take turns."""
    values = tuple(f"{writer} {partition} {number} {n}" for n in range(GOOD_RECORDS))
    base_timestamp = T0_MS + 1_000_000 * writer + 10 * STEP_MS * number
    content = sound_batch(
        [value.encode() for value in values],
        codec=number % 5,
        base_timestamp=base_timestamp,
        step_ms=STEP_MS,
        max_timestamp=header_max,
    )
    return Sent(partition, content, None, values, base_timestamp)


def bad(partition: int, kind: str) -> Sent:
    """A damaged batch."""
    return Sent(partition, damaged_batches(T0_MS)[kind], kind)


def batches_of(writer: int) -> Iterator[Sent]:
    """What each of the two brokers was sent.

    Partition 0 has the other kinds of damage, each between good batches. Partition 1 begins and
    ends with damage, several batches of it. Partition 2 is sound, but its headers have no largest
    timestamp (−1, as Sarama sends it), and some a wrong one. Partition 3 has nothing but damage.
    Partition 4 has a batch that ends librdkafka's process, between good ones.
    """
    yield good(0, writer, 0)
    kinds = [kind for kind in damaged_batches(T0_MS) if kind != ENDS_READERS]
    for number, kind in enumerate(kinds, start=1):
        yield bad(0, kind)
        yield good(0, writer, number)
    edge = ["junk under zstd", "plain junk", "record longer than its batch"]
    middle = [good(1, writer, 0), good(1, writer, 1)]
    yield from [*(bad(1, kind) for kind in edge), *middle][:: 1 if writer == 1 else -1]
    for number in range(10):
        base = good(2, writer, number).base_timestamp
        header_max = {8: base, 9: base + 50 * STEP_MS}.get(number, -1)
        yield good(2, writer, number, header_max=header_max)
    yield bad(3, "junk under gzip")
    yield bad(3, "says 3 records, holds 1")
    yield from [good(4, writer, 0), bad(4, ENDS_READERS), good(4, writer, 1)]


def send(raw: Raw, batches: list[Sent]) -> None:
    """Sends all batches at once, so that few blocks hold them; then checks each answer."""
    for sent in batches:
        partition = struct.pack(">iii", 1, sent.partition, len(sent.content)) + sent.content
        name = struct.pack(">h", len(TOPIC)) + TOPIC.encode()
        raw.send(
            PRODUCE,
            PRODUCE_VERSION,
            struct.pack(">hhii", -1, -1, 60_000, 1) + name + partition,
        )
    for sent in batches:
        answer = raw.receive()
        (error,) = struct.unpack_from(">h", answer, 4 + 2 + len(TOPIC) + 4 + 4)
        if error:
            message = f"the broker answered {error} to {sent.damage}: it is of a later release"
            raise SystemExit(message)


def produce(bootstrap: str, writer: int) -> None:
    """Sends the batches of a writer."""
    with closing(Raw.plain(int(bootstrap.rpartition(":")[2]))) as raw:
        send(raw, list(batches_of(writer)))


def expected() -> dict[str, Any]:
    """What lies where, for `expected.json`. A record's timestamps are `STEP_MS` apart."""
    partitions: list[dict[str, Any]] = []
    for partition in range(PARTITIONS):
        offset, batches = 0, []
        for writer, place in ((1, "segment"), (2, "lane")):
            for sent in batches_of(writer):
                if sent.partition != partition:
                    continue
                times = [sent.base_timestamp + n * STEP_MS for n in range(len(sent.values))]
                batches.append(
                    {
                        "base_offset": offset,
                        "next_offset": offset + sent.count,
                        "stored_in": place,
                        "damage": sent.damage,
                        "header_max_timestamp": sent.header_max_timestamp,
                        "values": list(sent.values),
                        "timestamps": times,
                    }
                )
                offset += sent.count
        partitions.append({"partition": partition, "end": offset, "batches": batches})
    return {"topic": TOPIC, "written_by": WRITTEN_BY, "partitions": partitions}


def write_sample(folder: Path) -> None:
    """Writes the sample into a folder that does not exist yet."""
    broker = Broker(folder, lane=LANE, topics={"offsets_partitions": 1})
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, config=CONFIGS)])[TOPIC].result()
    produce(broker.bootstrap, 1)
    broker.crash()
    broker.restart()
    while scan_copy(folder).lanes[1].blocks:
        broker.ended(0.1)
    produce(broker.bootstrap, 2)
    broker.crash()
    close_store(folder)
    remove_empty(folder)
    (folder / "expected.json").write_text(as_text(expected()))


def remove_empty(folder: Path) -> None:
    """Removes the files of lanes that are only room for later. A broker makes others."""
    for path in folder.glob("dfs/local/lanes/*/*"):
        if not any(path.read_bytes()):
            path.unlink()


def as_text(value: dict[str, Any]) -> str:
    """JSON with a line for each batch."""
    partitions = [
        {**partition, "batches": PLACE.format(partition["partition"])}
        for partition in value["partitions"]
    ]
    text = json.dumps({**value, "partitions": partitions}, indent=1)
    for partition in value["partitions"]:
        lines = ",\n   ".join(json.dumps(batch) for batch in partition["batches"])
        text = text.replace(
            json.dumps(PLACE.format(partition["partition"])), f"[\n   {lines}\n   ]"
        )
    assert json.loads(text) == value
    return f"{text}\n"


if __name__ == "__main__":
    write_sample(Path(sys.argv[1]))
