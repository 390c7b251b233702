"""Converts records to JSON that a browser can show, whatever bytes they hold."""

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

# A longer key or value is cut to this size; its `size` still counts all bytes.
SHOWN_BYTES_MAX = 65_536
TIMESTAMP_TYPES = {
    TIMESTAMP_CREATE_TIME: "CreateTime",
    TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}


class _MessageFields(ctypes.Structure):
    """The first fields of the binding's message object (`Message` in its `confluent_kafka.h`).

    `Message.headers()` decodes every name as UTF-8. Where that fails it leaves a null pointer in
    its result, and reading that ends the process. So headers are read from librdkafka's own list.
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


# The binding's library has librdkafka linked in, so its functions are found there.
_header_at = ctypes.CDLL(cimpl.__file__).rd_kafka_header_get_all
_header_at.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_char_p),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
)


def headers_of(message: Message) -> list[tuple[bytes, bytes | None]]:
    """The headers of a fetched message, in order. A name ends at its first zero byte."""
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
    """A message in the form that filters read (`filters.RecordLike`)."""

    message: Message

    def key(self) -> bytes | None:
        """See `RecordLike.key`."""
        content: bytes | None = self.message.key()
        return content

    def value(self) -> bytes | None:
        """See `RecordLike.value`."""
        content: bytes | None = self.message.value()
        return content

    def headers(self) -> list[tuple[str, bytes | None]]:
        """See `RecordLike.headers`. Names have the form in which they are shown."""
        return [(_shown_name(name), value) for name, value in headers_of(self.message)]

    def partition(self) -> int | None:
        """See `RecordLike.partition`."""
        number: int | None = self.message.partition()
        return number

    def offset(self) -> int | None:
        """See `RecordLike.offset`."""
        offset: int | None = self.message.offset()
        return offset

    def timestamp(self) -> tuple[int, int]:
        """See `RecordLike.timestamp`."""
        timestamp: tuple[int, int] = self.message.timestamp()
        return timestamp


def shown_bytes(content: bytes | None) -> Bytes | None:
    """Converts bytes to JSON. None (a tombstone's value, a record without a key) stays None."""
    if content is None:
        return None
    shown = content[:SHOWN_BYTES_MAX]
    truncated = len(content) > len(shown)
    return Bytes(
        base64=base64.b64encode(shown).decode(),
        text=_decode_text(shown, cut=truncated),
        size=len(content),
        truncated=truncated,
    )


def _decode_text(content: bytes, *, cut: bool) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        # A cut may split the last character, which has at most four bytes.
        if cut and error.start >= len(content) - 3 and error.reason == "unexpected end of data":
            return content[: error.start].decode()
        return None


def _shown_name(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def _header_of(name: bytes, value: bytes | None) -> Header:
    is_text = _decode_text(name, cut=False) is not None
    return Header(
        key=_shown_name(name),
        key_base64=None if is_text else base64.b64encode(name).decode(),
        value=shown_bytes(value),
    )


def size_of(message: Message) -> int:
    """The bytes of a message's key, value and headers together."""
    headers = sum(len(name) + len(value or b"") for name, value in headers_of(message))
    return len(message.key() or b"") + len(message.value() or b"") + headers


def timestamp_of(message: Message) -> int | None:
    """A message's timestamp in Unix milliseconds; None where it has none."""
    kind, timestamp_ms = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else int(timestamp_ms)


def record_of(message: Message) -> Record:
    """Converts one of confluent-kafka's messages to a record."""
    return Record(
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=timestamp_of(message),
        timestamp_type=TIMESTAMP_TYPES.get(message.timestamp()[0]),
        key=shown_bytes(message.key()),
        value=shown_bytes(message.value()),
        headers=[_header_of(name, value) for name, value in headers_of(message)],
        size=size_of(message),
    )
