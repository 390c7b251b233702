"""Conformance cases for readers of usage: the engine's on a real broker's storage, and the fake."""

from __future__ import annotations

import struct
from typing import Any, Protocol

from brokers.usage import INGRESS, LaneReading, SealedEnd
from metering.agent.source import Reader

FORMATS = {
    "file": "Q",
    "sequence": "Q",
    "written_at_ms": "q",
    "topic": "I",
    "partition": "i",
    "principal": "I",
    "meter": "B",
    "quantity": "Q",
    "cumulative": "Q",
}


class Storage(Protocol):
    """A cluster that can be made to write, and its reader."""

    cluster_id: str
    reader: Reader

    def produce(self, count: int) -> None:
        """Writes records, which are acknowledged."""

    def roll(self) -> None:
        """Has the written blocks split, so that their index exists."""

    def close(self) -> None:
        """Stops the broker cleanly."""

    def crash(self) -> None:
        """Kills the broker, and starts another one that takes its lane over."""

    def sealed_end(self, incarnation: int) -> SealedEnd | None:
        """The end of a lane in the metadata store."""


def rows_of(reading: LaneReading) -> list[dict[str, Any]]:
    """The rows of a reading."""
    columns = [
        struct.unpack(f"<{reading.rows}{form}", getattr(reading, name))
        for name, form in FORMATS.items()
    ]
    rows = [dict(zip(FORMATS, values, strict=True)) for values in zip(*columns, strict=True)]
    for row in rows:
        row["topic"] = reading.topics[row["topic"]]
        row["principal"] = reading.principals[row["principal"]]
    return rows


def read_all(storage: Storage, incarnation: int = 1, **given: Any) -> list[dict[str, Any]]:
    """All rows of a lane, in as many calls as it takes."""
    rows, after = [], {"after_sequence": 0, "after_file": 0, **given}
    while True:
        reading = storage.reader.read_lane(storage.cluster_id, incarnation, **after)
        rows += rows_of(reading)
        after["after_sequence"], after["after_file"] = reading.last_sequence, reading.last_file
        if not reading.more:
            return rows


class ReaderConformance:
    """Cases for a fixture `storage`, whose broker has just started as incarnation 1."""

    def test_rows_name_their_blocks_in_order(self, storage):
        storage.produce(30)
        storage.roll()
        rows = read_all(storage)
        places = [
            (row["file"], row["sequence"], row["topic"], row["partition"], row["principal"])
            for row in rows
        ]
        assert len(set(places)) == len(places)
        order = [(row["file"], row["sequence"], row["written_at_ms"]) for row in rows]
        assert order == sorted(order)
        assert min(row["sequence"] for row in rows) >= 1

    def test_reading_on_says_the_same_as_reading_all(self, storage):
        read_rows, after = [], {"after_sequence": 0, "after_file": 0}
        for turn in range(4):
            storage.produce(5)
            if turn % 2:
                storage.roll()
            more = True
            while more:
                reading = storage.reader.read_lane(storage.cluster_id, 1, **after)
                assert reading.last_sequence >= after["after_sequence"]
                assert reading.last_file >= after["after_file"]
                assert (reading.gap, reading.ended) == (None, False)
                after = {
                    "after_sequence": reading.last_sequence,
                    "after_file": reading.last_file,
                }
                read_rows += rows_of(reading)
                more = reading.more
        assert read_rows == [row for row in read_all(storage) if row in read_rows]
        storage.close()
        end = storage.sealed_end(1)
        assert read_rows == read_all(storage, sealed_end=end)[: len(read_rows)]

    def test_a_closed_lane_ends_and_is_split(self, storage):
        storage.produce(5)
        storage.close()
        end = storage.sealed_end(1)
        assert end is not None
        rows = read_all(storage, sealed_end=end)
        reading = storage.reader.read_lane(
            storage.cluster_id, 1, after_sequence=end.sequence, sealed_end=end
        )
        assert (reading.rows, reading.ended, reading.more) == (0, True, False)
        assert reading.unsplit_since_ms is None
        assert reading.last_sequence >= max(row["sequence"] for row in rows)

    def test_what_was_written_is_unsplit_until_it_rolls(self, storage):
        storage.produce(5)
        reading = storage.reader.read_lane(storage.cluster_id, 1)
        assert reading.unsplit_since_ms is not None
        storage.roll()
        storage.close()
        reading = storage.reader.read_lane(storage.cluster_id, 1, sealed_end=storage.sealed_end(1))
        assert reading.unsplit_since_ms is None

    def test_manifests_keep_what_was_written(self, storage):
        storage.produce(30)
        storage.close()
        written: dict[tuple[str, int], int] = {}
        for row in read_all(storage, sealed_end=storage.sealed_end(1)):
            if row["meter"] == INGRESS:
                place = (row["topic"], row["partition"])
                written[place] = written.get(place, 0) + row["quantity"]
        partitions = storage.reader.manifests(storage.cluster_id, {})
        kept = {
            (partition.topic_id, partition.partition): sum(
                segment.bytes for segment in partition.segments
            )
            for partition in partitions
        }
        assert kept == written
        names = {
            (partition.topic_id, partition.partition): partition.name for partition in partitions
        }
        assert storage.reader.manifests(storage.cluster_id, names) == []

    def test_indexes_go_but_for_the_last_and_a_gap_is_reported(self, storage):
        for _ in range(3):
            storage.produce(3)
            storage.roll()
        rows = read_all(storage)
        (lane,) = storage.reader.lanes(storage.cluster_id)
        last = lane.indexes[-1]
        assert storage.reader.drop_indexes(storage.cluster_id, 1, below_file=last + 1) > 0
        (lane,) = storage.reader.lanes(storage.cluster_id)
        assert lane.indexes[0] == last
        reading = storage.reader.read_lane(storage.cluster_id, 1)
        first = min(row["sequence"] for row in rows if row["file"] >= last)
        assert reading.gap is not None
        assert reading.gap[0] == 1
        assert reading.gap[1] < first
        behind = storage.reader.read_lane(
            storage.cluster_id, 1, after_sequence=reading.gap[1], after_file=last
        )
        assert behind.gap is None

    def test_a_killed_brokers_lane_ends_where_it_was_sealed(self, storage):
        storage.produce(5)
        before = read_all(storage)
        storage.crash()
        end = storage.sealed_end(1)
        assert end is not None
        rows = read_all(storage, sealed_end=end)
        assert rows[: len(before)] == before
        assert max(row["sequence"] for row in rows) <= end.sequence
        lanes = storage.reader.lanes(storage.cluster_id)
        assert [lane.incarnation for lane in lanes] == [1, 2]

    def test_of_an_unknown_cluster_there_is_nothing(self, storage):
        assert storage.reader.lanes("nobody") == []
        assert storage.reader.manifests("nobody", {}) == []
