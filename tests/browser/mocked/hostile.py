"""Answers full of what tenants may have written: long names, scripts that run from right to left,
characters that draw nothing, markup, bytes, and numbers that no double holds.

They are the examples of the description with other names and more rows. What is made is compared
with the description like the examples are.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from tests.browser.mocked.answers import Answer, Json, Request, answer_to, operation_of

LONG = "long." + "x" * 239 + ".end"
# Characters that a page must not draw as they are stand in some of these.
NAMES = (
    "plain",
    LONG,
    "a/b",
    "a%2Fb",
    "שלום עולם",
    "مرحبا",
    "\u202egnp.exe",
    "nul\0inside",
    "\x1b[31mred",
    "tab\tand\nbreak",
    "no\u200bwidth",
    "🦀 👩\u200d👩\u200d👧 e\u0301",
    "<img src=x onerror='window.hostile=1'><b>bold</b>",
    "{{7*7}}${7*7}'\"; DROP TABLE topics;--",
    " spaces around ",
    "日本語のトピック",
    "__proto__",
    "null",
    "..",
    "77",
)
TOPICS = 200
GROUPS = 100
BEYOND = 2**53 + 1
# Members of answers that hold what people or clients have chosen.
CHOSEN = frozenset(
    {"name", "cluster", "client_id", "topic", "group", "organization", "subject", "fired_subject"}
)
LISTS = {
    "GET /api/v1/clusters/{cluster_id}/topics": TOPICS,
    "GET /api/v1/clusters/{cluster_id}/groups": GROUPS,
}
# Lists whose rows depend on what the page asks for, not on a name.
AS_THEY_ARE = ("GET /api/v1/session", "GET /api/v1/usage")
ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def name_of(number: int) -> str:
    """The name of a row: of the list above, with its number where the list begins anew."""
    name = NAMES[number % len(NAMES)]
    return name if number < len(NAMES) else f"{name[:240]} {number}"


def answer_with_hostile_names(request: Request) -> Answer:
    """What is answered to a request, with names of `NAMES` in it."""
    answer = answer_to(request)
    operation = operation_of(request.method, request.path)
    if operation is None or not isinstance(answer.body, dict):
        return answer
    if operation.name.endswith("/messages"):
        body = answer.body | {"items": list(records(answer.body["items"][0]))}
    elif operation.name in AS_THEY_ARE:
        body = answer.body
    elif isinstance(answer.body.get("items"), list):
        body = answer.body | {"items": rows_of(operation.name, answer.body["items"])}
    else:
        body = named(answer.body, 1)
        parts = request.path.split("/")
        for member in ("topics", "groups"):
            if member in parts[-2:-1]:
                body |= {"name" if member == "topics" else "group": unquote(parts[-1])}
    return Answer(answer.status, body)


def rows_of(operation: str, items: list[Any]) -> list[Any]:
    """As many rows as there are names, or as `LISTS` has; none of an empty list."""
    if not items or not isinstance(items[0], dict):
        return items
    count = LISTS.get(operation, len(NAMES))
    return [with_own_id(named(items[0], number), number) for number in range(count)]


def with_own_id(row: Json, number: int) -> Json:
    """A row whose id is its own, in the form of ids."""
    identity = row.get("id")
    if not isinstance(identity, str) or number == 0:
        return row
    if "_" not in identity:
        return row | {"id": f"{identity}-{number}"}
    # Examples end otherwise, or in `7v`, which no number below 21 gives.
    return row | {"id": identity[:-2] + "7" + ALPHABET[number % len(ALPHABET)]}


def named(value: Any, number: int) -> Any:  # noqa: ANN401 - whatever JSON has
    """A copy in which what people have chosen is a hostile name."""
    if isinstance(value, list):
        return [named(item, number + at) for at, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {
        member: inner
        # Kafka has named configs, not a tenant.
        if member == "config_details"
        else name_of(number)
        if member in CHOSEN and isinstance(inner, str)
        else named(inner, number)
        for member, inner in value.items()
    }


def content_of(content: bytes | None, *, size: int | None = None) -> Json | None:
    """Bytes as the API has them: as text too where they are UTF-8."""
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = None
    full = len(content) if size is None else size
    return {
        "base64": base64.b64encode(content).decode(),
        "text": text,
        "size": full,
        "truncated": full > len(content),
    }


VALUES: tuple[bytes | None, ...] = (
    *(name.encode() for name in NAMES),
    None,
    b"",
    struct.pack(">i", -7),
    struct.pack(">q", BEYOND),
    # A schema registry's header, then Avro.
    b"\x00" + struct.pack(">I", 17) + b"\x02\x80\xff",
    b"\xff\xfe\x00binary",
    b'{"id":%d,"total":1.50}' % BEYOND,
)
# Producers may write any number of 64 bits.
TIMES = (1, -1, 0, 1795273200000, 2**63 - 1, -(2**63), 253402300800000)


def records(example: Json) -> Iterator[Json]:
    """A record for each value, with keys, headers and times that are as odd; the newest first."""
    headers = [
        {"key": name, "key_base64": None, "value": content_of(value)}
        for name, value in (
            ("trace", b"1"),
            ("trace", None),
            (LONG, LONG.encode() * 8),
            ("\u202eheader\0", b"\xff\x00"),
        )
    ]
    for number, value in enumerate(VALUES):
        yield example | {
            "offset": str(BEYOND + 100 - number),
            "timestamp_ms": str(TIMES[number % len(TIMES)]),
            "key": content_of(VALUES[-1 - number]),
            "value": content_of(value),
            "headers": headers if number % 2 else [],
        }
    yield example | {"offset": "7", "value": content_of(b"x" * 65_536, size=5_000_000)}
