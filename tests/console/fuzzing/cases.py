"""Puts ids of both tenants into Schemathesis's cases, sends them, and finds leaked texts."""

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
# Django's test client adds it by itself.
HOST = "http://testserver"
# Values that are valid JSON, and that code often does not expect.
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
    """Yields the case with the caller's ids, with the other tenant's, and sometimes a hostile body.

    The random choices depend on the case alone, so that a failure can be repeated.
    """
    text = f"{case.method} {case.path} {case!r}"
    random = Random(hashlib.sha256(text.encode("utf-8", "replace")).digest())
    key = foreign.idempotency_key
    yield _with_ids(case, random, [own], key)
    if case.path_parameters or _member_names(case) & NAMED:
        # With two ids in the path, one may be of the caller's cluster and one of the other's.
        mixed = len(case.path_parameters) > 1 and random.random() < 0.5
        yield _with_ids(case, random, [own, foreign] if mixed else [foreign], key)
    if isinstance(case.body, dict) and case.body and random.random() < 0.25:
        yield _spoil_body(_with_ids(case, random, [own], key), random)


def is_foreign(case: AnyCase, foreign: Planted) -> bool:
    """Returns whether the path names a resource of the other tenant."""
    return any(value in foreign.ids.values() for value in case.path_parameters.values())


def send_case(case: AnyCase, client: ApiClient) -> Response:
    """Sends a case through Django's own handlers, on the test's thread and connection."""
    own_headers = {"Authorization": f"Bearer {client.key}"} if client.key else {}
    if isinstance(client, Browser):
        own_headers["X-CSRFToken"] = client.csrf_token
    serialized = case.as_transport_kwargs(base_url=HOST, headers=own_headers)
    # The client sends cookies of its own.
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


def leaked_marks(response: Response, marks: set[str]) -> set[str]:
    """Returns those texts of the other tenant that an answer has and its request did not have."""
    body = text_of(response.content)
    shown = {mark for mark in marks if mark in body}
    if not shown:
        return shown
    sent = _request_text(response)
    return {mark for mark in shown if mark not in sent}


def text_of(content: bytes) -> str:
    """Returns all text of an answer; that of a ZIP archive has the text of each file."""
    if not content.startswith(b"PK\x03\x04"):
        return content.decode("utf-8", "replace")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return "\n".join(f"{name}\n{text_of(inner)}" for name, inner in files.items())


def _request_text(response: Response) -> str:
    """Returns the decoded path, query and body of an answer's request."""
    request = response.request
    body = request.body or b""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
    parts = urlsplit(str(request.url))
    return "\n".join([unquote_plus(parts.path), unquote_plus(parts.query), text])


def _with_ids(case: AnyCase, random: Random, tenants: list[Planted], key: str) -> AnyCase:
    """Returns a copy of the case with ids of these tenants, of each at least one if there is room.

    `key` is an Idempotency-Key that the other tenant used, and the caller did not.
    """
    derived = case.derive()
    shuffled = random.sample(tenants, len(tenants))
    for number, (name, collection) in enumerate(sorted(parameters_of(case.path).items())):
        tenant = shuffled[number % len(shuffled)]
        derived.path_parameters[name] = tenant.ids[collection]
    members = {**shuffled[-1].members, "cursor": shuffled[-1].cursor_of(case.path)}
    for name in sorted(_query_names(case) & set(members)):
        if name in derived.query or random.random() < 0.5:
            derived.query[name] = members[name]
    if isinstance(derived.body, dict | list):
        derived.body = _replace_members(derived.body, members.get)
    # A random `If-Match` is mostly answered 412, so most cases are sent without one.
    if random.random() < 0.75:
        derived.headers.pop("If-Match", None)
    if case.operation.headers.get("Idempotency-Key") and random.random() < 0.5:
        derived.headers["Idempotency-Key"] = key
    return derived


def _spoil_body(case: AnyCase, random: Random) -> AnyCase:
    """Puts a hostile value into one place of the case's body, and under one more name.

    It changes the body in place, and Schemathesis does not check the case again: it cannot read a
    lone surrogate.
    """
    case.freeze_metadata()
    body = cast(dict[str, Any], case.body)
    names: list[str] = []

    def note_name(name: str, value: Any) -> Any:
        names.append(name)
        return value

    _replace_members(body, note_name)
    chosen, hostile = random.choice(names), random.choice(HOSTILE)
    spoiled = _replace_members(body, lambda name, value: hostile if name == chosen else value)
    body.clear()
    body.update(spoiled | {"\x00\ud800": random.choice(HOSTILE)})
    return case


def _replace_members(value: Any, change: Callable[[str, Any], Any]) -> Any:
    """Returns a copy of a body; `change` makes each new value from a member's name and value."""
    match value:
        case Mapping():
            return {
                name: change(str(name), _replace_members(inner, change))
                for name, inner in value.items()
            }
        case list():
            return [_replace_members(inner, change) for inner in value]
        case _:
            return copy.copy(value)


def _query_names(case: AnyCase) -> set[str]:
    return {parameter.name for parameter in case.operation.query}


def _member_names(case: AnyCase) -> set[str]:
    """Returns the names of the query's parameters and of the body's members."""
    names = _query_names(case)
    if isinstance(case.body, dict):
        names |= set(case.body)
    return names
