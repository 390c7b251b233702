"""The bytes of a new record, as a body gives them."""

from __future__ import annotations

import pytest
from rest_framework.exceptions import ValidationError

from provisioning.administration.api.message_serializers import BytesField


@pytest.mark.parametrize(
    ("given", "content"),
    [("é", "é".encode()), ({"base64": "AP8="}, b"\x00\xff"), ("", b"")],
)
def test_text_and_base64_give_bytes(given, content):
    assert BytesField().run_validation(given) == content


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("half \ud800", "use base64"),
        ({"base64": "\ud800"}, "not base64"),
        ({"base64": "é"}, "not base64"),
        ({"base64": "A"}, "not base64"),
        ({"base64": 7}, "is expected"),
        ([1], "is expected"),
    ],
)
def test_what_stands_for_no_bytes_is_refused_with_the_reason(given, reason):
    with pytest.raises(ValidationError, match=reason):
        BytesField().run_validation(given)
