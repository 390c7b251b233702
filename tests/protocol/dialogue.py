"""One API in one version: requests of a broker, and what holds for every answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.protocol.checks import check_subjects, error_codes
from tests.protocol.codec import Body
from tests.protocol.connection import Connection
from tests.protocol.world import Account, World


class Dialogue:
    """What is asked of one API in one version. `requests` has the bodies in their order."""

    def __init__(self, world: World, name: str, version: int) -> None:
        self.world = world
        self.api = world.place.codec.schemas.named(name)
        self.version = version
        self.requests: list[Body] = []
        # Of every answer, the names of its errors.
        self.outcomes: list[set[str]] = []

    def ask(self, body: Body) -> dict[str, Any]:
        """The answer to the user who may do everything."""
        self.requests.append(body)
        return self.ask_as(self.world.place.root, body)

    def ask_as(self, account: Account, body: Body) -> dict[str, Any]:
        """The answer to somebody."""
        return self.ask_on(self.world.connection(account), body)

    def ask_on(self, connection: Connection, body: Body) -> dict[str, Any]:
        """The answer on a connection. It is read strictly, and is about what was asked."""
        answer = connection.ask(self.api.name, self.version, body)
        check_subjects(self.api, self.version, body, answer)
        self.outcomes.append(self.errors(answer))
        return answer

    def errors(self, answer: Body) -> set[str]:
        """The names of an answer's errors; empty where it has none."""
        codes = error_codes(self.api.response, self.version, answer)
        return {self.world.place.codec.errors[code] for code in codes if code != 0}

    def has(self, name: str) -> bool:
        """Whether the request has a field of this name at its top in this version."""
        fields = self.api.request.body.fields
        return any(field.name == name and self.version in field.versions for field in fields)

    def topic(self, name: str, **fields: object) -> dict[str, Any]:
        """An entry about a topic by name and by id: a version takes the one that it has."""
        key = "Topic" if self.api.name == "Fetch" else "Name"
        return {key: name, "TopicId": self.world.topic_id(name), **fields}


Scenario = Callable[[Dialogue], None]


@dataclass(frozen=True)
class Scenarios:
    """How an API is asked: so that it succeeds, with content; and so that it fails.

    `fails` is None where no argument can be wrong; `fails_from` is the first version that has one.
    Without `replayed`, the requests that succeed are not sent again as a user without rights.
    """

    succeeds: Scenario
    fails: Scenario | None
    fails_from: int = 0
    replayed: bool = True


ApiScenarios = Mapping[str, Scenarios]
