"""JSON shapes of records."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from console.base.common.api.kafka_names import KafkaNameField
from console.base.common.api.whole import INT64_MAX, Int64Field, as_text
from console.base.common.clock import unix_ms
from provisioning import kafka
from provisioning.kafka.filters import CHARS_MAX
from provisioning.kafka.shapes import (
    BYTES_MAX,
    LIMIT_MAX,
    SHOWN_BYTES_MAX,
    TOO_LARGE,
    TOO_SLOW,
    UNDECODABLE,
    WHOLE_BYTES_MAX,
)

VALUE_BYTES_MAX = 1024 * 1024
HEADERS_MAX = 100
# A number of so many digits is larger.
DIGITS_MAX = 20
SCAN_BYTES_MAX = 64 * 1024 * 1024
DAMAGE_REASONS = [UNDECODABLE, TOO_SLOW, TOO_LARGE]
DAMAGE_REASONS_TEXT = (
    "`undecodable`: its bytes are damaged; `too_slow`: decoding it did not end in time; "
    "`too_large`: its records are larger than are read here, and may be sound."
)
FILTER = (
    "A text that key, value or headers contain, or an expression such as "
    '`value.total > 100 and (key ~ eu- or headers.source = "web")`.'
)


def shown_record(record: kafka.Record) -> dict[str, Any]:
    """A record as JSON. It is written out because a page has thousands of fields."""
    return as_text(dict(record), "offset", "timestamp_ms")


def shown_damage(damaged: kafka.Damaged) -> dict[str, Any]:
    """A batch that was skipped, as JSON."""
    return as_text(dict(damaged), "first_offset", "next_offset")


class BytesSerializer(serializers.Serializer[Any]):
    """Bytes; the first 64 KiB of what is longer."""

    base64 = serializers.CharField()
    text = serializers.CharField(allow_null=True, help_text="Where they are UTF-8.")
    size = serializers.IntegerField(help_text="Bytes, all of them.")
    truncated = serializers.BooleanField()


class HeaderSerializer(serializers.Serializer[Any]):
    """One header of a record."""

    key = serializers.CharField(help_text="Bytes that are not UTF-8 are shown as `\\xNN`.")
    key_base64 = serializers.CharField(
        allow_null=True, help_text="The name's bytes where they are not UTF-8, else null."
    )
    value = BytesSerializer(allow_null=True)


class MessageSerializer(serializers.Serializer[Any]):
    """A record."""

    partition = serializers.IntegerField()
    offset = Int64Field()
    timestamp_ms = Int64Field(allow_null=True, help_text="Unix time.")
    timestamp_type = serializers.ChoiceField(
        choices=["CreateTime", "LogAppendTime"], allow_null=True
    )
    key = BytesSerializer(allow_null=True)
    value = BytesSerializer(allow_null=True)
    headers = HeaderSerializer(many=True)
    size = serializers.IntegerField(help_text="Bytes of key, value and headers.")


class ReachedSerializer(serializers.Serializer[Any]):
    """How far a partition was read."""

    partition = serializers.IntegerField()
    position = Int64Field(help_text="Where reading goes on.")
    begin = Int64Field(help_text="The first offset that is kept.")
    end = Int64Field(help_text="The offset of the next record.")


class ScannedSerializer(serializers.Serializer[Any]):
    """What was read for a page, with what a filter left out."""

    records = serializers.IntegerField()
    bytes = serializers.IntegerField()
    partitions = ReachedSerializer(many=True)


class DamagedSerializer(serializers.Serializer[Any]):
    """Offsets of a batch that cannot be decoded."""

    partition = serializers.IntegerField()
    first_offset = Int64Field()
    next_offset = Int64Field(help_text="The offset behind the batch.")
    reason = serializers.ChoiceField(choices=DAMAGE_REASONS, help_text=DAMAGE_REASONS_TEXT)


class MessagePageSerializer(serializers.Serializer[Any]):
    """A page of records."""

    items = MessageSerializer(many=True)
    next_cursor = serializers.CharField(
        allow_null=True, help_text="Goes on in the same direction; null where all was read."
    )
    stopped = serializers.ChoiceField(
        choices=["limit", "bytes", "time", "end"], help_text="Which limit ended the page."
    )
    scanned = ScannedSerializer()
    damaged = DamagedSerializer(
        many=True, help_text="What of the page's offsets was skipped, as it cannot be decoded."
    )


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {
                "type": "object",
                "required": ["base64"],
                "properties": {"base64": {"type": "string", "format": "byte"}},
            },
        ]
    }
)
class BytesField(serializers.Field[Any, Any, Any, Any]):
    """Bytes as text, or as `{"base64": …}`. Null stays null."""

    def to_internal_value(self, data: Any) -> bytes:
        """The bytes that a text (as UTF-8) or `{"base64": …}` stands for."""
        if isinstance(data, str):
            try:
                content = data.encode()
            except UnicodeEncodeError as error:
                message = "This text has half a surrogate, which UTF-8 cannot hold: use base64."
                raise serializers.ValidationError(message) from error
        elif isinstance(data, dict) and set(data) == {"base64"} and isinstance(data["base64"], str):
            try:
                content = base64.b64decode(data["base64"], validate=True)
            except ValueError as error:
                message = "This is not base64."
                raise serializers.ValidationError(message) from error
        else:
            message = 'A text or {"base64": …} is expected.'
            raise serializers.ValidationError(message)
        if len(content) > VALUE_BYTES_MAX:
            message = f"At most {VALUE_BYTES_MAX} bytes."
            raise serializers.ValidationError(message)
        return content


class NewHeaderSerializer(serializers.Serializer[Any]):
    """One header of a new record."""

    key = KafkaNameField(max_length=1024)
    value = BytesField(allow_null=True, required=False, default=None)


class ProduceSerializer(serializers.Serializer[Any]):
    """A record to produce. Key, value and header values: a text, `{"base64": …}` or null."""

    key = BytesField(allow_null=True, required=False, default=None)
    value = BytesField(allow_null=True, required=False, default=None)
    headers: Any = serializers.ListSerializer(
        child=NewHeaderSerializer(), required=False, max_length=HEADERS_MAX
    )
    partition = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, help_text="Without it, the key decides."
    )


def new_record(data: Mapping[str, Any]) -> kafka.NewRecord:
    """Returns the record that a body describes, as `ProduceSerializer` validated it."""
    headers = tuple((header["key"], header["value"]) for header in data.get("headers", []))
    return kafka.NewRecord(
        key=data["key"], value=data["value"], headers=headers, partition=data.get("partition")
    )


class ProducedSerializer(serializers.Serializer[Any]):
    """Where a record went."""

    partition = serializers.IntegerField()
    offset = Int64Field()
    timestamp_ms = Int64Field(allow_null=True)


@extend_schema_field({"type": "string", "maxLength": CHARS_MAX})
class FilterField(serializers.Field[Any, Any, Any, Any]):
    """A text or an expression that can be understood."""

    def to_internal_value(self, data: Any) -> str:
        """The text, unchanged, where `kafka.compile_filter` accepts it."""
        try:
            kafka.compile_filter(str(data))
        except kafka.FilterError as error:
            raise serializers.ValidationError(str(error)) from error
        return str(data)


class BrowseQuerySerializer(serializers.Serializer[Any]):
    """Which records."""

    partition = serializers.IntegerField(
        required=False, min_value=0, help_text="Without it, all partitions, merged by time."
    )
    offset = Int64Field(required=False, min_value=0, help_text="With from=offset.")
    timestamp = serializers.CharField(
        required=False, help_text="With from=timestamp: ISO 8601, or Unix milliseconds."
    )
    limit = serializers.IntegerField(default=50, min_value=1, max_value=LIMIT_MAX)
    filter = FilterField(required=False, help_text=FILTER)
    scan_bytes_max = serializers.IntegerField(
        default=BYTES_MAX,
        min_value=1024,
        max_value=SCAN_BYTES_MAX,
        help_text="Bytes of records that are read for a page at most; the next page goes on. It "
        "shows at most 8 MiB of them.",
    )
    whole = serializers.BooleanField(
        default=False,
        help_text="All bytes of key, value and headers, up to 16 MiB each: of one record, with "
        "`from=offset`, `partition` and `limit=1`. Otherwise the first 64 KiB.",
    )
    cursor = serializers.CharField(required=False, help_text="The page before's `next_cursor`.")
    wake = serializers.BooleanField(
        default=False, help_text="Wake a sleeping cluster; otherwise 409 `cluster_asleep`."
    )

    def get_fields(self) -> dict[str, Any]:
        """Adds the field `from`, which no class body can have because it is a keyword of Python."""
        start = serializers.ChoiceField(
            choices=["newest", "oldest", "offset", "timestamp"],
            default="newest",
            help_text="Newest first, or forward from the oldest, an offset or a moment.",
        )
        return {"from": start, **super().get_fields()}

    def validate_timestamp(self, text: str) -> int:
        """Unix milliseconds, from ISO 8601 or from such a number."""
        if text.isascii() and text.isdigit():
            # A longer number is later than any time of a record.
            return min(int(text.lstrip("0")[:DIGITS_MAX] or "0"), INT64_MAX)
        return unix_ms(serializers.DateTimeField().to_internal_value(text))

    def validate_cursor(self, cursor: str) -> dict[int, int]:
        """Partition → offset where the earlier page ended."""
        try:
            padded = cursor + "=" * (-len(cursor) % 4)
            decoded = json.loads(base64.urlsafe_b64decode(padded))
            return {int(number): int(offset) for number, offset in decoded.items()}
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            message = "This is not a cursor that a page gave."
            raise serializers.ValidationError(message) from error

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuses `from=offset` and `from=timestamp` without that value, but for a cursor."""
        start = attrs["from"]
        if start in {"offset", "timestamp"} and start not in attrs and "cursor" not in attrs:
            raise serializers.ValidationError({start: "This is required."}, code="required")
        alone = start == "offset" and "partition" in attrs and attrs["limit"] == 1
        if attrs["whole"] and not (alone and "filter" not in attrs):
            message = "One record is read whole: from=offset, partition and limit=1, no filter."
            raise serializers.ValidationError({"whole": message})
        attrs["shown_max"] = WHOLE_BYTES_MAX if attrs["whole"] else SHOWN_BYTES_MAX
        return attrs


class WakeQuerySerializer(serializers.Serializer[Any]):
    """What to do about a sleeping cluster."""

    wake = serializers.BooleanField(default=False, help_text="Wake a sleeping cluster.")


class StreamQuerySerializer(serializers.Serializer[Any]):
    """How a live tail begins."""

    filter = FilterField(required=False, help_text=FILTER)
    wake = serializers.BooleanField(default=False, help_text="Wake a sleeping cluster.")


def write_positions(positions: dict[int, int] | None) -> str | None:
    """A page's cursor: partition → offset where it ended, as base64 of JSON; None stays None."""
    if positions is None:
        return None
    text = json.dumps({str(n): at for n, at in positions.items()}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
