"""What the status records of a broker add up to: pure.

The record is described in `brokers/core/crates/engine/src/status/`. It may hold anything,
because a tenant may have taken its broker over: fields of other types refuse it, and so does more
than a broker says by itself. Names in it are the tenant's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from brokers.secrets import SUPER_USER
from provisioning.cell.status.times import WaitingTimes

FORMAT = 1
# The most entries of one broker. It has at most 50,000 partitions of groups, besides members,
# groups, and the topics and partitions that its limits allow.
ENTRIES_MAX = 250_000
# About what an entry takes in memory besides its texts, and the most that all of them may take. An
# honest broker has at most 20,000 members with four texts of 1,024 bytes each, and as many groups
# and partitions as above.
ENTRY_BYTES = 400
BYTES_MAX = 384 * 1024 * 1024

# Topic, partition, first offset, and the topic's id as Kafka writes it; "" where it is not known.
Damage = tuple[str, int, int, str]

Key = tuple[int, ...]
Fields = tuple[Any, ...]

Types = frozenset[type[object]]
NUMBER: Types = frozenset({int})
TEXT: Types = frozenset({str})
OPTIONAL_NUMBER: Types = frozenset({int, type(None)})
OPTIONAL_TEXT: Types = frozenset({str, type(None)})
SECONDS: Types = frozenset({int, float})
# Of each kind of entry: how many numbers name it, and the types of its fields.
KINDS: dict[str, tuple[int, tuple[Types, ...]]] = {
    "t": (1, (TEXT, OPTIONAL_TEXT)),
    "p": (2, (NUMBER, NUMBER, NUMBER, OPTIONAL_NUMBER)),
    "c": (1, (NUMBER, NUMBER, NUMBER)),
    "g": (1, (TEXT, TEXT, TEXT, TEXT, NUMBER)),
    "m": (2, (TEXT, TEXT, TEXT, OPTIONAL_TEXT)),
    "o": (3, (NUMBER, OPTIONAL_NUMBER, NUMBER)),
    "u": (1, (TEXT, NUMBER, NUMBER, SECONDS, OPTIONAL_NUMBER)),
    "l": (1, (TEXT, NUMBER, NUMBER, SECONDS)),
}
# How many fields at the end of an entry a broker of an earlier release leaves out; they are None.
ADDED = {"t": 1, "u": 1}
REMOVED = "-"
SERVICE_PRINCIPAL = f"User:{SUPER_USER}"


class Picture:
    """What is known of one broker. Its `slot` is its node id.

    With `cluster` it takes no record of another cluster's broker, nor one that does not say of
    which it is. It takes at most about `bytes_max` bytes of memory.
    """

    def __init__(
        self, slot: int = 0, *, cluster: str | None = None, bytes_max: int = BYTES_MAX
    ) -> None:
        self.slot = slot
        # About how much memory it takes.
        self.bytes = 0
        # Where the next record goes on; empty for a whole one.
        self.next = ""
        # Tenants' connections; None until a record was taken.
        self.connections: int | None = None
        # What it is asked about groups that other brokers coordinate.
        self.times = WaitingTimes()
        # Whether all is known, also of groups.
        self.complete = False
        # Whether the broker left something out because there is too much of it.
        self.cut = False
        self._cluster = cluster
        self._bytes_max = bytes_max
        self._entries: dict[str, dict[Key, Fields]] = {kind: {} for kind in KINDS}

    def take(self, record: bytes) -> bool:
        """Takes a record. Returns whether there is more, to be asked for at once.

        Raises `ValueError` where it is none; then the picture is to be thrown away.
        """
        content = orjson.loads(record)
        if not isinstance(content, dict) or content.get("v") != FORMAT:
            message = "not a status record of this format"
            raise ValueError(message)
        if self._cluster is not None and content.get("cluster") != self._cluster:
            message = "a status record of another cluster"
            raise ValueError(message)
        connections: Any = content.get("connections")
        if not _has_types(connections, (NUMBER, NUMBER)) or min(connections) < 0:
            message = "no number of connections"
            raise ValueError(message)
        changes = content.get("changes", [])
        if not isinstance(changes, list):
            message = "changes that are no entries"
            raise ValueError(message)
        self.next = _place_in(content)
        if content.get("anew"):
            for entries in self._entries.values():
                entries.clear()
            self.bytes = 0
            self.times.forget()
        for entry in changes:
            self._take_entry(entry)
        self._take_times(content.get("times", []))
        many = sum(map(len, self._entries.values())) > ENTRIES_MAX
        if many or self.bytes > self._bytes_max:
            message = "more entries than a broker has"
            raise ValueError(message)
        more = bool(content.get("more"))
        self.connections = connections[1]
        self.cut = bool(content.get("cut"))
        self.complete = not more and not content.get("loading")
        return more

    def empty(self) -> Picture:
        """A picture of the same broker of which nothing is known yet."""
        return Picture(self.slot, cluster=self._cluster, bytes_max=self._bytes_max)

    @property
    def incarnation(self) -> str:
        """The broker's incarnation, a number; empty where nothing was taken yet."""
        return self.next.partition(".")[0]

    def entries(self, kind: str) -> Mapping[Key, Fields]:
        """The entries of a kind, by the numbers that name them."""
        return self._entries[kind]

    @property
    def query(self) -> str:
        """The query of the next question, with its question mark; empty for all there is."""
        if not self.next:
            return ""
        times = self.times.asked()
        return f"?since={self.next}" + (f"&times={times}" if times else "")

    def _take_times(self, times: object) -> None:
        if not isinstance(times, list):
            message = "times that are no list"
            raise ValueError(message)
        for entry in times:
            if not _has_types(entry, (NUMBER, NUMBER, NUMBER, OPTIONAL_NUMBER)):
                message = "a time without its partition and offset"
                raise ValueError(message)
            topic, number, offset, time = entry
            self.times.take((topic, number, offset), time)

    def _take_entry(self, entry: object) -> None:
        removed = isinstance(entry, list) and entry[:1] == [REMOVED] and len(entry) > 1
        subject: Any = entry[1] if removed and isinstance(entry, list) else entry
        if not isinstance(subject, list) or not subject or not isinstance(subject[0], str):
            message = "an entry without a kind"
            raise ValueError(message)
        kind, values = subject[0], subject[1:]
        if kind not in KINDS:
            return  # a later release has it
        numbers, types = KINDS[kind]
        key, fields = tuple(values[:numbers]), tuple(values[numbers : numbers + len(types)])
        if not _has_types(key, (NUMBER,) * numbers):
            message = f"an entry of kind {kind} without its numbers"
            raise ValueError(message)
        if removed:
            self._forget(kind, key)
            return
        if len(types) - ADDED.get(kind, 0) <= len(fields) < len(types):
            fields += (None,) * (len(types) - len(fields))
        if not _has_types(fields, types):
            message = f"an entry of kind {kind} with other fields"
            raise ValueError(message)
        self._forget(kind, key)
        self._entries[kind][key] = fields
        self.bytes += _bytes_of(fields)

    def _forget(self, kind: str, key: Key) -> None:
        fields = self._entries[kind].pop(key, None)
        if fields is not None:
            self.bytes -= _bytes_of(fields)


def _bytes_of(fields: Fields) -> int:
    texts = (field for field in fields if isinstance(field, str))
    # Python takes up to four bytes for a character.
    return ENTRY_BYTES + sum(len(text) if text.isascii() else 4 * len(text) for text in texts)


def _place_in(content: Mapping[str, object]) -> str:
    place = content.get("next")
    if not isinstance(place, str) or not place.isascii() or not place.replace(".", "").isdigit():
        message = "no place to go on from"
        raise ValueError(message)
    return place


def _has_types(values: Any, types: Sequence[Types]) -> bool:  # noqa: ANN401 (JSON)
    return (
        isinstance(values, (list, tuple))
        and len(values) == len(types)
        and all(type(value) in allowed for value, allowed in zip(values, types, strict=True))
    )


def topics_in(pictures: Iterable[Picture]) -> dict[str, list[int]]:
    """`[bytes in, bytes out, records in]` by topic, since brokers started, summed over brokers."""
    topics: dict[str, list[int]] = {}
    for picture in pictures:
        names = picture.entries("t")
        for key, counts in picture.entries("c").items():
            if key in names:
                before = topics.get(names[key][0], [0, 0, 0])
                topics[names[key][0]] = [a + b for a, b in zip(before, counts, strict=True)]
    return dict(sorted(topics.items()))


def unbilled_in(pictures: Iterable[Picture]) -> dict[str, int]:
    """Bytes that clients take unbilled, by principal: since brokers started, summed over brokers.

    What the service itself takes is not in it.
    """
    taken: dict[str, int] = {}
    for picture in pictures:
        for principal, _, _, _, unbilled in picture.entries("u").values():
            if unbilled and principal != SERVICE_PRINCIPAL:
                taken[principal] = taken.get(principal, 0) + unbilled
    return taken


def damaged_in(pictures: Iterable[Picture]) -> tuple[Damage, ...]:
    """The lowest damaged batch of each partition, sorted."""
    lowest: dict[tuple[str, int, str], int] = {}
    for picture in pictures:
        names = picture.entries("t")
        for (topic, number), (_, _, _, offset) in picture.entries("p").items():
            if offset is not None and (topic,) in names:
                name, topic_id = names[(topic,)]
                partition = name, number, topic_id or ""
                lowest[partition] = min(offset, lowest.get(partition, offset))
    return tuple(
        (topic, number, offset, topic_id)
        for (topic, number, topic_id), offset in sorted(lowest.items())
    )
