"""Times at which reading begins, and to which offsets are moved, to the millisecond."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from provisioning.administration.api.groups import ResetSerializer, target_of
from provisioning.administration.api.message_serializers import BrowseQuerySerializer

INT64_MAX = 2**63 - 1
# Seconds as a double lose a millisecond of the first of these.
MOMENTS = [1_098_703_774_916, 0, 1, 4_102_444_799_999]


@pytest.mark.parametrize("at_ms", MOMENTS)
def test_a_time_is_read_to_the_millisecond(at_ms):
    drawn = random.Random(at_ms)
    for moment_ms in (at_ms, *(drawn.randrange(4_102_444_800_000) for _ in range(500))):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment_ms)
        query = BrowseQuerySerializer(data={"from": "timestamp", "timestamp": moment.isoformat()})
        assert query.is_valid(), query.errors
        assert query.validated_data["timestamp"] == moment_ms
        reset = ResetSerializer(data={"to": "timestamp", "timestamp": moment.isoformat()})
        assert reset.is_valid(), reset.errors
        assert target_of(reset.validated_data).value == moment_ms


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("1700000000000", 1_700_000_000_000),
        # Whoever takes nanoseconds for milliseconds asks for what will not come.
        ("1700000000000000000", 1_700_000_000_000_000_000),
        (str(INT64_MAX), INT64_MAX),
        (str(INT64_MAX + 1), INT64_MAX),
        ("9" * 40, INT64_MAX),
    ],
)
def test_no_digit_of_a_time_is_left_out(text, at_ms):
    query = BrowseQuerySerializer(data={"from": "timestamp", "timestamp": text})
    assert query.is_valid(), query.errors
    assert query.validated_data["timestamp"] == at_ms
