"""The consumer groups of a cluster, in the pictures of its brokers: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from provisioning.cell.samples import INTERNAL_TOPICS, SINCE
from provisioning.cell.status.picture import Fields, Key, Picture, unbilled_in
from provisioning.cell.status.times import Waiting

# A broker cuts names that are longer than 1,024 bytes, at the beginning of a character. So this
# many may be a part of a name.
CUT_NAME_BYTES_MIN = 1024 - 3

Group = dict[str, Any]


class GroupPlace(NamedTuple):
    """Where a group is: its name, the index of its coordinator's picture, its number in there."""

    name: str
    picture: int
    number: int


class LedPartition(NamedTuple):
    """A partition in its leader's picture: its topic's number there, its log start and end."""

    picture: Picture
    topic: int
    start: int
    end: int


class GroupTable:
    """Finds groups in pictures, as long as these do not change. Its lists are by name."""

    def __init__(self, pictures: Sequence[Picture]) -> None:
        self._pictures = pictures
        self._places = sorted(
            GroupPlace(fields[0], at, number)
            for at, picture in enumerate(pictures)
            for (number,), fields in picture.entries("g").items()
        )
        self._by_name: dict[str, list[GroupPlace]] = {}
        for place in self._places:
            self._by_name.setdefault(place.name, []).append(place)
        self._members = [_keys_by_group(picture.entries("m")) for picture in pictures]
        self._offsets = [_keys_by_group(picture.entries("o")) for picture in pictures]
        # By a topic's name, the pictures that know it, each with the topic's number there.
        self._topics: dict[str, list[tuple[Picture, int]]] = {}
        for picture in pictures:
            for (number,), (name, _) in picture.entries("t").items():
                self._topics.setdefault(name, []).append((picture, number))
        # Old clients commit to the group with an empty name, which no address of REST could name.
        self.names: tuple[str, ...] = tuple(name for name in self._by_name if name)
        # Whether no name is missing, or is cut.
        self.has_all_names = not any(picture.cut for picture in pictures) and not any(
            map(_may_be_cut, self._by_name)
        )

    def all(self) -> list[Group]:
        """All groups as a sample holds them (see `cell/samples.py`).

        A partition that is assigned to a member and has no commit counts from the log start. Of a
        group that moves from one coordinator to another there is the one that knows more.
        """
        return [
            self._describe(max(places, key=self._known_of)) for places in self._by_name.values()
        ]

    def whole(self, name: str) -> Group | None:
        """One group as a sample holds it; None where it is not known, or not with all it has."""
        places = self._by_name.get(name, [])
        # A group moves from one coordinator to another; for a moment both may have it.
        if len(places) != 1 or _may_be_cut(name):
            return None
        (place,) = places
        cut = self._pictures[place.picture].entries("g")[(place.number,)][4]
        return None if cut else self._describe(place)

    def want_times(self) -> bool:
        """Has leaders be asked for what other coordinators cannot say: see `times.py`.

        Returns whether any of it is not known yet.
        """
        places: dict[int, set[Waiting]] = {id(picture): set() for picture in self._pictures}
        for picture in self._pictures if len(self._pictures) > 1 else ():
            topics, own = picture.entries("t"), picture.entries("p")
            for (_, topic, number), (committed, since_ms, _) in picture.entries("o").items():
                if since_ms is not None or (topic, number) in own or (topic,) not in topics:
                    continue
                led = self._leader_of(str(topics[(topic,)][0]), number)
                if led is not None and _lag(committed, led.start, led.end):
                    places[id(led.picture)].add((led.topic, number, committed))
        unknown = False
        for picture in self._pictures:
            unknown |= picture.times.want(places[id(picture)])
        return unknown

    def unbilled(self) -> dict[str, int]:
        """Bytes that are not billed, by principal; see `unbilled_in`."""
        return unbilled_in(self._pictures)

    def is_written(self, samples: Mapping[str, int]) -> bool:
        """Whether a partition ever had more records than the service itself wrote.

        `samples` has how many these are, by topic.
        """
        for picture in self._pictures:
            topics = picture.entries("t")
            for (topic, _), (_, end, _, _) in picture.entries("p").items():
                name = topics[(topic,)][0] if (topic,) in topics else None
                if name and name not in INTERNAL_TOPICS and end > samples.get(name, 0):
                    return True
        return False

    def is_read(self) -> bool:
        """Whether a group has committed an offset behind a first record."""
        return any(
            committed > 0
            for picture in self._pictures
            for committed, _, _ in picture.entries("o").values()
        )

    def _known_of(self, place: GroupPlace) -> tuple[int, int, GroupPlace]:
        """How many members and offsets a coordinator knows of a group; its place decides a tie."""
        of = [keys[place.picture].get(place.number, ()) for keys in (self._members, self._offsets)]
        return len(of[0]), len(of[1]), place

    def _describe(self, place: GroupPlace) -> Group:
        picture = self._pictures[place.picture]
        name, state, protocol_type, protocol, cut = picture.entries("g")[(place.number,)]
        members = self._members_of(place, truncated=bool(cut))
        topics, offsets = picture.entries("t"), picture.entries("o")
        partitions = []
        for key in self._offsets[place.picture].get(place.number, ()):
            _, topic, number = key
            if (topic,) not in topics:
                continue
            of_topic = str(topics[(topic,)][0])
            committed, since_ms, member = offsets[key]
            if member in members:
                members[member]["assignments"].append({"topic": of_topic, "partition": number})
            known = self._leader_of(of_topic, number)
            bounds = None
            if known is not None:
                bounds = known.start, known.end
                if since_ms is None and known.picture is not picture:
                    since_ms = known.picture.times.of((known.topic, number, committed))
            partitions.append(_partition((of_topic, number), committed, since_ms, bounds))
        partitions.sort(key=_place_of)
        for shown in members.values():
            shown["assignments"].sort(key=_place_of)
        lags = [entry["lag"] for entry in partitions if entry["lag"] is not None]
        return {
            "group": name,
            "state": state,
            "type": "classic",
            "protocol_type": protocol_type,
            "protocol": protocol,
            "coordinator": picture.slot,
            "members": list(members.values()),
            "partitions": partitions,
            "lag": sum(lags) if lags or not partitions else None,
        }

    def _members_of(self, place: GroupPlace, *, truncated: bool) -> dict[int, dict[str, Any]]:
        entries = self._pictures[place.picture].entries("m")
        members: dict[int, dict[str, Any]] = {}
        for key in sorted(self._members[place.picture].get(place.number, ())):
            member_id, client_id, host, instance_id = entries[key]
            members[key[1]] = {
                "member_id": member_id,
                "client_id": client_id,
                "host": host,
                "instance_id": instance_id,
                "assignments": [],
                "truncated": truncated,
            }
        return members

    def _leader_of(self, topic: str, number: int) -> LedPartition | None:
        """A partition as the broker has it that leads it.

        While it moves two brokers may have it; the one with the later end leads it.
        """
        known = [
            LedPartition(picture, of_topic, fields[0], fields[1])
            for picture, of_topic in self._topics[topic]
            if (fields := picture.entries("p").get((of_topic, number))) is not None
        ]
        return max(known, default=None, key=lambda led: (led.end, led.start))


def groups_in(pictures: Sequence[Picture]) -> list[Group]:
    """The groups of a cluster, sorted by name, as a sample holds them (see `cell/samples.py`)."""
    return GroupTable(pictures).all()


def _keys_by_group(entries: Mapping[Key, Fields]) -> dict[int, list[Key]]:
    keys: dict[int, list[Key]] = {}
    for key in entries:
        keys.setdefault(key[0], []).append(key)
    return keys


def _may_be_cut(name: str) -> bool:
    return len(name.encode()) >= CUT_NAME_BYTES_MIN


def _place_of(entry: Mapping[str, Any]) -> tuple[str, int]:
    return entry["topic"], entry["partition"]


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
