"""Whole numbers that no double holds are text in answers, and text or numbers in requests."""

from typing import Any

import pytest
from rest_framework import serializers

from console.base.common.api.whole import Int64Field, WholeField, as_text

BEYOND = 2**53 + 1


class Shape(serializers.Serializer[Any]):
    """A place and a quantity."""

    offset = Int64Field(min_value=0)
    quantity = WholeField(required=False, allow_null=True)


@pytest.mark.parametrize("number", [0, BEYOND, 2**63 - 1])
def test_every_digit_goes_out_and_comes_back(number):
    shown = Shape({"offset": number, "quantity": number}).data
    assert shown == {"offset": str(number), "quantity": str(number)}
    for offset in (number, str(number)):
        body = Shape(data={"offset": offset})
        assert body.is_valid()
        assert body.validated_data["offset"] == number


def test_a_quantity_has_no_bound_and_null_stays_null():
    assert Shape({"offset": 1, "quantity": 2**100}).data["quantity"] == str(2**100)
    assert Shape({"offset": 1, "quantity": None}).data["quantity"] is None


@pytest.mark.parametrize("offset", [-1, 2**63, str(2**63), "1.5", "x", "", None, 1.5])
def test_what_is_no_offset_is_refused(offset):
    assert not Shape(data={"offset": offset}).is_valid()


def test_members_of_what_is_written_out_become_text():
    record = {"offset": BEYOND, "timestamp_ms": None, "size": 3}
    assert as_text(record, "offset", "timestamp_ms") == record | {"offset": str(BEYOND)}
    assert record["offset"] == BEYOND
