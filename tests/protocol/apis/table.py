"""How each API is asked, and what holds for every one of them."""

from __future__ import annotations

from tests.protocol.apis import access, groups, records, topics
from tests.protocol.dialogue import ApiScenarios, Dialogue
from tests.protocol.world import World

SCENARIOS: ApiScenarios = {**records.APIS, **groups.APIS, **topics.APIS, **access.APIS}


def can_fail(name: str, version: int) -> bool:
    """Whether there is something in a request that can be wrong."""
    scenarios = SCENARIOS[name]
    return scenarios.fails is not None and version >= scenarios.fails_from


def check_success(world: World, name: str, version: int, *, replayed: bool = True) -> None:
    """Asks so that it succeeds, then the same as a user who may do nothing."""
    dialogue = Dialogue(world, name, version)
    SCENARIOS[name].succeeds(dialogue)
    assert set() in dialogue.outcomes, "no answer without errors"
    if replayed and SCENARIOS[name].replayed:
        for body in dialogue.requests:
            dialogue.ask_as(world.place.nobody, body)


def check_failure(world: World, name: str, version: int) -> None:
    """Asks so that it fails."""
    dialogue = Dialogue(world, name, version)
    fails = SCENARIOS[name].fails
    assert fails is not None
    fails(dialogue)
    assert any(dialogue.outcomes), "no answer with an error"
