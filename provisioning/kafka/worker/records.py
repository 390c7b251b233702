"""Records as JSON: what a browser can show of bytes that may be anything."""

from __future__ import annotations

import base64
import ctypes
from dataclasses import dataclass

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Message,
    cimpl,
)

from provisioning.kafka.shapes import Bytes, Header, Record

# Of a longer key or value only the beginning is shown; `size` tells how long it is.
SHOWN_BYTES_MAX = 65_536
TIMESTAMP_TYPES = {
    TIMESTAMP_CREATE_TIME: "CreateTime",
    TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}


class _MessageFields(ctypes.Structure):
    """The first fields of the binding's message object (`Message` in its `confluent_kafka.h`).

    `Message.headers()` takes every name for UTF-8, and leaves a null pointer in its answer where
    one is not: whoever looks at it ends the process. So headers are read from librdkafka's list.
    """

    _fields_ = (
        ("reference_count", ctypes.c_ssize_t),
        ("type", ctypes.c_void_p),
        ("topic", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("headers", ctypes.c_void_p),
        ("librdkafka_headers", ctypes.c_void_p),
    )


# librdkafka is linked to the binding, so that its functions are found there.
_header_at = ctypes.CDLL(cimpl.__file__).rd_kafka_header_get_all
_header_at.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_char_p),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
)


def headers_of(message: Message) -> list[tuple[bytes, bytes | None]]:
    """A fetched message's headers, in order. A name ends at its first zero byte."""
    listed = _MessageFields.from_address(id(message)).librdkafka_headers
    if not listed:
        return []
    headers: list[tuple[bytes, bytes | None]] = []
    name, value, size = ctypes.c_char_p(), ctypes.c_void_p(), ctypes.c_size_t()
    while not _header_at(listed, len(headers), name, value, size):
        content = ctypes.string_at(value.value, size.value) if value.value else None
        headers.append((name.value or b"", content))
    return headers


@dataclass(frozen=True)
class Readable:
    """A message as a filter looks at it (`filters.RecordLike`)."""

    message: Message

    def key(self) -> bytes | None:
        """Its key."""
        found: bytes | None = self.message.key()
        return found

    def value(self) -> bytes | None:
        """Its value."""
        found: bytes | None = self.message.value()
        return found

    def headers(self) -> list[tuple[str, bytes | None]]:
        """Its headers, in order, their names as they are shown."""
        return [(_shown_name(name), value) for name, value in headers_of(self.message)]

    def partition(self) -> int | None:
        """Where it lies."""
        found: int | None = self.message.partition()
        return found

    def offset(self) -> int | None:
        """Its place there."""
        found: int | None = self.message.offset()
        return found

    def timestamp(self) -> tuple[int, int]:
        """Kind and Unix milliseconds."""
        found: tuple[int, int] = self.message.timestamp()
        return found


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


def _shown_name(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def _header(name: bytes, value: bytes | None) -> Header:
    is_text = _text(name, cut=False) is not None
    return Header(
        key=_shown_name(name),
        key_base64=None if is_text else base64.b64encode(name).decode(),
        value=shown_bytes(value),
    )


def size_of(message: Message) -> int:
    """Bytes of a message's key, value and headers."""
    headers = sum(len(name) + len(value or b"") for name, value in headers_of(message))
    return len(message.key() or b"") + len(message.value() or b"") + headers


def timestamp_of(message: Message) -> int | None:
    """Unix milliseconds; None where it has none."""
    kind, timestamp_ms = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else int(timestamp_ms)


def record_of(message: Message) -> Record:
    """The record for one of confluent-kafka's messages."""
    return Record(
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=timestamp_of(message),
        timestamp_type=TIMESTAMP_TYPES.get(message.timestamp()[0]),
        key=shown_bytes(message.key()),
        value=shown_bytes(message.value()),
        headers=[_header(name, value) for name, value in headers_of(message)],
        size=size_of(message),
    )
