"""Requests that name something twice. Kafka answers it once."""

from __future__ import annotations

from typing import Any

from tests.protocol.apis.records import LATEST, list_offsets_body, produce_body
from tests.protocol.apis.topics import delete_body
from tests.protocol.dialogue import Dialogue
from tests.protocol.records import write_batch
from tests.protocol.world import ABSENT, TOPIC, World, records_of

REPEATED = [("Produce", 12), ("ListOffsets", 10), ("Metadata", 12), ("DeleteGroups", 2)]


def repeated_body(world: World, name: str) -> dict[str, Any]:
    """A request of an API that names a topic, a partition or a group twice."""
    if name == "Produce":
        batch = write_batch(records_of("twice"))
        return produce_body(world, {world.create_topic(): [(0, batch), (0, batch)]})
    bodies = {
        "ListOffsets": list_offsets_body(TOPIC, [(0, LATEST), (0, LATEST)]),
        "Metadata": {"Topics": [{"Name": TOPIC}, {"Name": TOPIC}]},
        "DeleteGroups": {"GroupsNames": [ABSENT, ABSENT]},
    }
    return bodies[name]


def delete_twice_fails(dialogue: Dialogue) -> None:
    """A topic that is named twice is not deleted."""
    world = dialogue.world
    topic = {"Name": world.create_topic()}
    answer = dialogue.ask(delete_body(dialogue, topic, topic))
    assert dialogue.errors(answer) == {"INVALID_REQUEST"}
    world.wait_led(topic["Name"], 1)
