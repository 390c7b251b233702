"""What Schemathesis generates, sent with ids of both tenants in it, and what is held against it."""

from __future__ import annotations

import copy
import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, cast
from urllib.parse import unquote_plus, urlsplit

import requests
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.console.browsers import Browser
from tests.console.clients import ApiClient, content_of
from tests.console.fuzzing.described import parameters_of
from tests.console.fuzzing.generation import AnyCase
from tests.console.fuzzing.planted import NAMED, Planted

CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# Django's test client says this itself.
HOST = "http://testserver"
# What JSON can say and much that reads it cannot take.
HOSTILE: list[Any] = [
    "\x00",
    "a\x00b",
    "\ud800",
    "a\n",
    "\u202egnp.exe",
    "x" * 70_000,
    10**40,
    -(10**40),
    1e308,
    True,
    None,
    [],
    {},
    {"\x00": "\ud800"},
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+14:00",
]


def variants(case: AnyCase, own: Planted, foreign: Planted) -> Iterator[AnyCase]:
    """The case with one's own ids, with the other tenant's, and now and then with a spoiled body.

    What is drawn depends on the case alone, so that a failure is found again.
    """
    text = f"{case.method} {case.path} {case!r}"
    random = Random(hashlib.sha256(text.encode("utf-8", "replace")).digest())
    key = foreign.idempotency_key
    yield _planted(case, random, [own], key)
    if case.path_parameters or _nameable(case) & NAMED:
        # In one's own cluster something of the other's, or the other way around.
        mixed = len(case.path_parameters) > 1 and random.random() < 0.5
        yield _planted(case, random, [own, foreign] if mixed else [foreign], key)
    if isinstance(case.body, dict) and case.body and random.random() < 0.25:
        yield _spoiled(_planted(case, random, [own], key), random)


def is_foreign(case: AnyCase, foreign: Planted) -> bool:
    """Tells whether the address names something of the other tenant."""
    return any(value in foreign.ids.values() for value in case.path_parameters.values())


def send(case: AnyCase, client: ApiClient) -> Response:
    """One request through Django's own handlers, on the thread and connection of the test."""
    given = {"Authorization": f"Bearer {client.key}"} if client.key else {}
    if isinstance(client, Browser):
        given["X-CSRFToken"] = client.csrf_token
    serialized = case.as_transport_kwargs(base_url=HOST, headers=given)
    # The client has its own.
    serialized.pop("cookies", None)
    request = requests.Request(**serialized).prepare()
    headers = {
        name: value if isinstance(value, str) else value.decode("latin-1")
        for name, value in request.headers.items()
        if name.lower() not in {"content-type", "content-length"}
    }
    body = request.body or b""
    answer = client.client.generic(
        str(request.method),
        str(request.url).removeprefix(HOST),
        body.encode() if isinstance(body, str) else body,
        content_type=str(request.headers.get("Content-Type", "application/json")),
        headers=headers,
    )
    return Response(
        status_code=answer.status_code,
        headers={name: [value] for name, value in answer.items()},
        content=content_of(answer),
        request=request,
        elapsed=0.0,
        verify=False,
    )


def leaked(response: Response, marks: set[str]) -> set[str]:
    """The texts of the other tenant that an answer has and its request had not."""
    body = text_of(response.content)
    found = {mark for mark in marks if mark in body}
    if not found:
        return found
    sent = _asked(response)
    return {mark for mark in found if mark not in sent}


def text_of(content: bytes) -> str:
    """All text of an answer, of each file of an archive too."""
    if not content.startswith(b"PK\x03\x04"):
        return content.decode("utf-8", "replace")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return "\n".join(f"{name}\n{text_of(inner)}" for name, inner in files.items())


def _asked(response: Response) -> str:
    """Everything that the request said, to look for texts in."""
    request = response.request
    body = request.body or b""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
    parts = urlsplit(str(request.url))
    return "\n".join([unquote_plus(parts.path), unquote_plus(parts.query), text])


def _planted(case: AnyCase, random: Random, tenants: list[Planted], key: str) -> AnyCase:
    """The case with ids of these tenants, each of them at least once if there is room.

    `key`: an Idempotency-Key that its sender did not use before.
    """
    found = case.derive()
    shuffled = random.sample(tenants, len(tenants))
    for number, (name, collection) in enumerate(sorted(parameters_of(case.path).items())):
        tenant = shuffled[number % len(shuffled)]
        found.path_parameters[name] = tenant.ids[collection]
    members = {**shuffled[-1].members, "cursor": shuffled[-1].cursor_of(case.path)}
    for name in sorted(_queried(case) & set(members)):
        if name in found.query or random.random() < 0.5:
            found.query[name] = members[name]
    if isinstance(found.body, dict | list):
        found.body = _replaced(found.body, members.get)
    # Nearly every other one would get no further than 412.
    if random.random() < 0.75:
        found.headers.pop("If-Match", None)
    if case.operation.headers.get("Idempotency-Key") and random.random() < 0.5:
        found.headers["Idempotency-Key"] = key
    return found


def _spoiled(found: AnyCase, random: Random) -> AnyCase:
    """The case with something hostile in one place of its body, and under one name more.

    In place, and without Schemathesis looking whether the case is still a valid one: it cannot read
    half a surrogate.
    """
    found.freeze_metadata()
    body = cast(dict[str, Any], found.body)
    names: list[str] = []

    def noted(name: str, value: Any) -> Any:
        names.append(name)
        return value

    _replaced(body, noted)
    chosen, hostile = random.choice(names), random.choice(HOSTILE)
    spoiled = _replaced(body, lambda name, value: hostile if name == chosen else value)
    body.clear()
    body.update(spoiled | {"\x00\ud800": random.choice(HOSTILE)})
    return found


def _replaced(value: Any, change: Callable[[str, Any], Any]) -> Any:
    """A body, each of whose members `change` gives a new value from its name and value."""
    match value:
        case Mapping():
            return {
                name: change(str(name), _replaced(inner, change)) for name, inner in value.items()
            }
        case list():
            return [_replaced(inner, change) for inner in value]
        case _:
            return copy.copy(value)


def _queried(case: AnyCase) -> set[str]:
    return {parameter.name for parameter in case.operation.query}


def _nameable(case: AnyCase) -> set[str]:
    """Members of the query and of the body."""
    names = _queried(case)
    if isinstance(case.body, dict):
        names |= set(case.body)
    return names
