"""Our JSON renderer writes the same JSON as the framework's."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from rest_framework.renderers import JSONRenderer as FrameworkRenderer

from console.base.common.api.renderers import JSONRenderer


@pytest.mark.parametrize(
    "data",
    [
        {"items": [{"name": "größe \u2028", "none": None, "yes": True, "number": -1.5}]},
        {"at": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), "price": Decimal("0.10")},
        # Beyond 64 bits.
        {"quantity": 2**70},
        [],
    ],
)
def test_answers_say_what_the_framework_says(data):
    ours, theirs = JSONRenderer().render(data), FrameworkRenderer().render(data)
    assert json.loads(ours) == json.loads(theirs)


def test_no_answer_has_no_bytes():
    assert JSONRenderer().render(None) == b""


def test_half_a_surrogate_goes_back_as_it_came():
    data = {"detail": '"\ud800" is not a valid choice.'}
    answer = JSONRenderer().render(data).decode("utf-8")
    assert json.loads(answer) == data
