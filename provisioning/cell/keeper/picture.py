"""What the status records of a broker add up to: pure.

The record is described in `brokers/core/crates/broker/src/engine/status/`. It may hold anything,
because a tenant may have taken its broker over: fields of other types refuse it, and so does more
than a broker says by itself. Names in it are the tenant's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from provisioning.cell.samples import SINCE

FORMAT = 1
# The most entries of one broker. It has at most 50,000 partitions of groups, besides members,
# groups, and the topics and partitions that its limits allow.
ENTRIES_MAX = 250_000

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
    "t": (1, (TEXT,)),
    "p": (2, (NUMBER, NUMBER, NUMBER, OPTIONAL_NUMBER)),
    "c": (1, (NUMBER, NUMBER, NUMBER)),
    "g": (1, (TEXT, TEXT, TEXT, TEXT, NUMBER)),
    "m": (2, (TEXT, TEXT, TEXT, OPTIONAL_TEXT)),
    "o": (3, (NUMBER, OPTIONAL_NUMBER, NUMBER)),
    "u": (1, (TEXT, NUMBER, NUMBER, SECONDS)),
    "l": (1, (TEXT, NUMBER, NUMBER, SECONDS)),
}
REMOVED = "-"


class Picture:
    """What is known of one broker. Its `slot` is its node id."""

    def __init__(self, slot: int = 0) -> None:
        self.slot = slot
        # Where the next record goes on; empty for a whole one.
        self.next = ""
        # Tenants' connections; None until a record was taken.
        self.connections: int | None = None
        # Whether all is known, also of groups.
        self.complete = False
        # Whether the broker left something out because there is too much of it.
        self.cut = False
        self._entries: dict[str, dict[Key, Fields]] = {kind: {} for kind in KINDS}

    def take(self, record: bytes) -> bool:
        """Takes a record. Returns whether there is more, to be asked for at once.

        Raises `ValueError` where it is none; then the picture is to be thrown away.
        """
        content = orjson.loads(record)
        if not isinstance(content, dict) or content.get("v") != FORMAT:
            message = "not a status record of this format"
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
        for entry in changes:
            self._take_entry(entry)
        if sum(map(len, self._entries.values())) > ENTRIES_MAX:
            message = "more entries than a broker has"
            raise ValueError(message)
        more = bool(content.get("more"))
        self.connections = connections[1]
        self.cut = bool(content.get("cut"))
        self.complete = not more and not content.get("loading")
        return more

    def entries(self, kind: str) -> Mapping[Key, Fields]:
        """The entries of a kind, by the numbers that name them."""
        return self._entries[kind]

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
            self._entries[kind].pop(key, None)
            return
        if not _has_types(fields, types):
            message = f"an entry of kind {kind} with other fields"
            raise ValueError(message)
        self._entries[kind][key] = fields


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


def damaged_in(pictures: Iterable[Picture]) -> tuple[tuple[str, int, int], ...]:
    """Topic, partition and offset of the lowest damaged batch of each partition, sorted."""
    lowest: dict[tuple[str, int], int] = {}
    for picture in pictures:
        names = picture.entries("t")
        for (topic, number), (_, _, _, offset) in picture.entries("p").items():
            if offset is not None and (topic,) in names:
                partition = names[(topic,)][0], number
                lowest[partition] = min(offset, lowest.get(partition, offset))
    return tuple((topic, number, offset) for (topic, number), offset in sorted(lowest.items()))


def groups_in(pictures: Sequence[Picture]) -> list[dict[str, Any]]:
    """The groups of a cluster, sorted by name, as a sample holds them (see `cell/samples.py`).

    A partition that is assigned to a member and has no commit counts from the log start.
    """
    bounds = {
        (picture.entries("t")[(topic,)][0], number): (start, end)
        for picture in pictures
        for (topic, number), (start, end, _, _) in picture.entries("p").items()
        if (topic,) in picture.entries("t")
    }
    groups = [group for picture in pictures for group in _groups_of(picture, bounds)]
    return sorted(groups, key=lambda group: str(group["group"]))


Bounds = Mapping[tuple[str, int], tuple[int, int]]


def _groups_of(picture: Picture, bounds: Bounds) -> list[dict[str, Any]]:
    """The groups that a broker coordinates."""
    names, members = picture.entries("t"), _members_of(picture)
    partitions: dict[int, list[dict[str, Any]]] = {}
    for (group, topic, number), (committed, since_ms, member) in picture.entries("o").items():
        if (topic,) not in names:
            continue
        name = names[(topic,)][0]
        if member in members.get(group, {}):
            members[group][member]["assignments"].append({"topic": name, "partition": number})
        place = name, number
        partitions.setdefault(group, []).append(
            _partition(place, committed, since_ms, bounds.get(place))
        )
    groups = []
    for (group,), (name, state, _, protocol, cut) in picture.entries("g").items():
        of_group = sorted(
            partitions.get(group, []), key=lambda entry: (entry["topic"], entry["partition"])
        )
        shown = list(members.get(group, {}).values())
        for member in shown:
            member["assignments"].sort(key=lambda entry: (entry["topic"], entry["partition"]))
            member["truncated"] = bool(cut)
        lags = [entry["lag"] for entry in of_group if entry["lag"] is not None]
        groups.append(
            {
                "group": name,
                "state": state,
                "type": "classic",
                "protocol": protocol,
                "coordinator": picture.slot,
                "members": shown,
                "partitions": of_group,
                "lag": sum(lags) if lags or not of_group else None,
            }
        )
    return groups


def _members_of(picture: Picture) -> dict[int, dict[int, dict[str, Any]]]:
    members: dict[int, dict[int, dict[str, Any]]] = {}
    for (group, number), (member_id, client_id, host, instance_id) in sorted(
        picture.entries("m").items()
    ):
        members.setdefault(group, {})[number] = {
            "member_id": member_id,
            "client_id": client_id,
            "host": host,
            "instance_id": instance_id,
            "assignments": [],
            "truncated": False,
        }
    return members


def _partition(
    place: tuple[str, int], committed: int, since_ms: int | None, bounds: tuple[int, int] | None
) -> dict[str, Any]:
    start, end = (None, None) if bounds is None else bounds
    lag = None if start is None or end is None else _lag(committed, start, end)
    return {
        "topic": place[0],
        "partition": place[1],
        "committed": None if committed < 0 else committed,
        "end": end,
        "lag": lag,
        SINCE: since_ms if lag else None,
    }


def _lag(committed: int, start: int, end: int) -> int:
    # It is not negative, also where the group committed after the end was read.
    return max(end - (committed if committed >= 0 else start), 0)
