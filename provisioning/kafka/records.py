"""Converts records to JSON that a browser can show, whatever bytes they hold."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from brokers import _core
from provisioning.kafka.shapes import SHOWN_BYTES_MAX, Bytes, Header, Record

# A filter reads so many bytes of a key or a value: it runs in a process that others share.
FILTERED_BYTES_MAX = 1024 * 1024
NO_TIMESTAMP = -1


@dataclass(frozen=True, slots=True)
class Readable:
    """A record in the form that filters read (`filters.RecordLike`)."""

    number: int
    fields: _core._Record

    def key(self) -> bytes | None:
        """See `RecordLike.key`."""
        return self.fields[2]

    def value(self) -> bytes | None:
        """See `RecordLike.value`."""
        return self.fields[4]

    def headers(self) -> list[tuple[str, bytes | None]]:
        """See `RecordLike.headers`. Names have the form in which they are shown."""
        return [(_shown_name(name), value) for name, value, _ in self.fields[6]]

    def partition(self) -> int:
        """See `RecordLike.partition`."""
        return self.number

    def offset(self) -> int:
        """See `RecordLike.offset`."""
        return self.fields[0]

    def timestamp(self) -> tuple[int, int]:
        """See `RecordLike.timestamp`."""
        return 0, self.fields[1]


def record_of(
    partition: int, fields: _core._Record, *, append_time: bool, shown_max: int = SHOWN_BYTES_MAX
) -> Record:
    """A record as it is shown. `append_time`: whether its moment is that of the append.

    Of key, value and headers it has `shown_max` bytes each at most.
    """
    offset, timestamp_ms, key, key_size, value, value_size, headers, size = fields
    timed = timestamp_ms != NO_TIMESTAMP
    return Record(
        partition=partition,
        offset=offset,
        timestamp_ms=timestamp_ms if timed else None,
        timestamp_type=("LogAppendTime" if append_time else "CreateTime") if timed else None,
        key=shown_bytes(key, key_size, shown_max),
        value=shown_bytes(value, value_size, shown_max),
        headers=[
            _header_of(name, content, content_size, shown_max)
            for name, content, content_size in headers
        ],
        size=size,
    )


def shown_bytes(content: bytes | None, size: int, shown_max: int = SHOWN_BYTES_MAX) -> Bytes | None:
    """Converts bytes to JSON. None (a tombstone's value, a record without a key) stays None.

    `size`: how many bytes there are in all, of which `content` may have the first ones only.
    """
    if content is None:
        return None
    shown = content[:shown_max]
    truncated = size > len(shown)
    return Bytes(
        base64=base64.b64encode(shown).decode(),
        text=_decode_text(shown, cut=truncated),
        size=size,
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


def _header_of(name: bytes, content: bytes | None, size: int, shown_max: int) -> Header:
    is_text = _decode_text(name, cut=False) is not None
    return Header(
        key=_shown_name(name),
        key_base64=None if is_text else base64.b64encode(name).decode(),
        value=shown_bytes(content, size, shown_max),
    )
