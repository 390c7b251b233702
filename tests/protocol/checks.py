"""What holds for the answers of every API: they are about what was asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.protocol.codec import Body
from tests.protocol.schemas import ZERO_UUID, Api, Array, Field, Message, Primitive, Struct

PARTITION_FIELDS = {
    *("PartitionIndex", "Partition", "Index", "PartitionIndexes", "Partitions"),
}
# APIs whose answers have only what exists and what one may see.
LEAVES_OUT = {"DescribeLogDirs", "ListPartitionReassignments"}
INT32 = Primitive("int32")
# Fields by which an element of a list says which topic or group it is about.
NAMES = {"topicName": "topics", "groupId": "groups"}


def error_codes(message: Message, version: int, body: Body) -> list[int]:
    """All error codes of an answer, 0 included."""
    return [value for name, value in _leaves(message.body, version, body) if _is_error(name)]


def _is_error(name: str) -> bool:
    return name.endswith("ErrorCode")


def _leaves(kind: Struct, version: int, body: Body) -> Iterator[tuple[str, Any]]:
    for member in _fields(kind, version):
        value = body.get(member.name)
        element = member.type.element if isinstance(member.type, Array) else member.type
        if not isinstance(element, Struct):
            yield member.name, value
        elif isinstance(member.type, Array):
            for item in value or ():
                yield from _leaves(element, version, item)
        elif value is not None:
            yield from _leaves(element, version, value)


def _fields(kind: Struct, version: int) -> list[Field]:
    return [*kind.at(version), *kind.tagged_at(version).values()]


@dataclass
class Subjects:
    """What the lists of a message are about, and how often each: names, ids and partitions.

    A partition is a pair of its topic's name or id, and its number.
    """

    topics: Counter[str] = field(default_factory=Counter)
    topic_ids: Counter[object] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)
    partitions: Counter[tuple[object, int]] = field(default_factory=Counter)


def subjects(message: Message, version: int, body: Body) -> Subjects:
    """What a message is about."""
    result = Subjects()
    for member in message.body.at(version):
        if isinstance(member.type, Array):
            _collect(member, version, body.get(member.name), None, result)
    return result


def _collect(
    member: Field, version: int, items: list[Any] | None, topic: object, result: Subjects
) -> None:
    assert isinstance(member.type, Array)
    element = member.type.element
    for item in items or ():
        if isinstance(element, Struct):
            _collect_element(element, version, item, topic, result)
        elif member.entity in NAMES:
            getattr(result, NAMES[member.entity])[item] += 1
        elif element == INT32 and member.name in PARTITION_FIELDS and topic is not None:
            result.partitions[topic, item] += 1


def _collect_element(
    kind: Struct, version: int, item: Body, topic: object, result: Subjects
) -> None:
    for member in kind.at(version):
        value = item.get(member.name)
        if member.entity in NAMES and isinstance(member.type, Primitive) and value is not None:
            getattr(result, NAMES[member.entity])[value] += 1
            if member.entity == "topicName":
                topic = value
        elif member.name == "TopicId" and value not in {None, ZERO_UUID}:
            result.topic_ids[value] += 1
            # Where an answer has both, partitions go by the name.
            topic = value if topic is None else topic
    for member in kind.at(version):
        value = item.get(member.name)
        if isinstance(member.type, Array):
            _collect(member, version, value, topic, result)
        elif member.name in PARTITION_FIELDS and topic is not None and value is not None:
            result.partitions[topic, value] += 1


def check_subjects(api: Api, version: int, request: Body, answer: Body) -> None:
    """An answer names each topic, group and partition that was asked for once, and no other.

    One that is refused as a whole may name none, and some APIs leave out what does not exist.
    """
    asked = subjects(api.request, version, request)
    answered = subjects(api.response, version, answer)
    named = subjects(api.response, version, _sample_element(api.response, version))
    refused = bool(answer.get("ErrorCode"))
    group_refused = any(
        isinstance(group, dict) and group.get("ErrorCode") for group in answer.get("Groups", ())
    )
    for kind in ("groups", "topics", "topic_ids", "partitions"):
        of_request, of_answer = getattr(asked, kind), getattr(answered, kind)
        empty = not of_answer and (refused or (group_refused and kind != "groups"))
        if api.name in LEAVES_OUT:
            assert set(of_answer) <= set(of_request) or not of_request
        elif of_request and getattr(named, kind) and not empty:
            assert of_answer == Counter(set(of_request)), f"{api.name} v{version}: {kind}"


def _sample_element(message: Message, version: int) -> Body:
    """A body in which every list has one element, to see what an answer can name at all."""

    def sample(kind: Any) -> Any:  # noqa: ANN401
        match kind:
            case Struct():
                return {member.name: sample(member.type) for member in kind.at(version)}
            case Array(element):
                return [sample(element)]
            case Primitive("uuid"):
                return object()
            case _:
                return 1

    body = sample(message.body)
    assert isinstance(body, dict)
    return body
