"""Records as JSON: what a browser can show of bytes that may be anything."""

from __future__ import annotations

import base64
from typing import TypedDict

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Message,
)

# Of a longer key or value only the beginning is shown; `size` tells how long it is.
SHOWN_BYTES_MAX = 65_536
TIMESTAMP_TYPES = {
    TIMESTAMP_CREATE_TIME: "CreateTime",
    TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}


class Bytes(TypedDict):
    """Bytes. `text` where they are UTF-8. Both hold the first 64 KiB of what is longer."""

    base64: str
    text: str | None
    size: int
    truncated: bool


class Header(TypedDict):
    """One header. Names may repeat, and their order counts."""

    key: str
    value: Bytes | None


class Record(TypedDict):
    """A record. `timestamp_ms` is Unix time; `size` counts key, value and headers, in bytes."""

    partition: int
    offset: int
    timestamp_ms: int | None
    timestamp_type: str | None
    key: Bytes | None
    value: Bytes | None
    headers: list[Header]
    size: int


def shown_bytes(content: bytes | None) -> Bytes | None:
    """Bytes as JSON. None (a tombstone's value, a record without a key) stays None."""
    if content is None:
        return None
    shown = content[:SHOWN_BYTES_MAX]
    truncated = len(content) > len(shown)
    return Bytes(
        base64=base64.b64encode(shown).decode(),
        text=_text(shown, cut=truncated),
        size=len(content),
        truncated=truncated,
    )


def _text(content: bytes, *, cut: bool) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        # The cut may go through the last character, which takes at most four bytes.
        if cut and error.start >= len(content) - 3 and error.reason == "unexpected end of data":
            return content[: error.start].decode()
        return None


def size_of(message: Message) -> int:
    """Bytes of a message's key, value and headers."""
    headers = message.headers() or []
    names = sum(len(name.encode()) + len(value or b"") for name, value in headers)
    return len(message.key() or b"") + len(message.value() or b"") + names


def record_of(message: Message) -> Record:
    """The record for one of confluent-kafka's messages."""
    kind, timestamp_ms = message.timestamp()
    return Record(
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms,
        timestamp_type=TIMESTAMP_TYPES.get(kind),
        key=shown_bytes(message.key()),
        value=shown_bytes(message.value()),
        headers=[
            Header(key=name, value=shown_bytes(value)) for name, value in message.headers() or []
        ],
        size=size_of(message),
    )
