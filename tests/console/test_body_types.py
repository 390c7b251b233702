"""Numbers and truth values of requests are JSON's own; each member of an object is named once."""

import json
from typing import Any

import pytest
from rest_framework import serializers

from console.base.common.api.types import mistyped_fields, mistyped_parameters
from console.base.common.api.whole import Int64Field
from console.base.common.json_texts import DEPTH_MAX, parse_json
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient

NO_NUMBERS = ["1", "1.000", "12.00", "1_000", "٣", "+5", " 5", "1e2", "", True, [1], {"a": 1}]


class Part(serializers.Serializer[Any]):
    size = serializers.IntegerField()


class Shape(serializers.Serializer[Any]):
    count = serializers.IntegerField(required=False, allow_null=True)
    share = serializers.FloatField(required=False)
    offset = Int64Field(required=False)
    confirm = serializers.BooleanField(required=False)
    part = Part(required=False)
    parts = Part(many=True, required=False)
    counts = serializers.DictField(child=serializers.IntegerField(), required=False)
    thresholds = serializers.ListField(child=serializers.IntegerField(), required=False)
    shown = serializers.IntegerField(read_only=True)


def pointers(body):
    return [error.pointer for error in mistyped_fields(Shape(), body)]


def test_what_json_has_as_a_number_is_one():
    body = {"count": 5, "share": 0.5, "offset": 7, "confirm": False, "part": {"size": 1}}
    more = {"parts": [{"size": 2}], "counts": {"a": 1}, "thresholds": [1, 2], "shown": "x"}
    assert pointers({**body, **more}) == []
    assert pointers({"count": None, "offset": str(2**60), "share": 3}) == []


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_nothing_else_is_one(value):
    assert pointers({"count": value}) == ["/count"]
    body = {"part": {"size": value}, "parts": [{"size": 1}, {"size": value}]}
    assert pointers(body) == ["/part/size", "/parts/1/size"]
    lists = {"counts": {"a/b": value}, "thresholds": [1, value]}
    assert pointers(lists) == ["/counts/a~1b", "/thresholds/1"]
    if value != "1":
        assert pointers({"offset": value}) == ["/offset"]


@pytest.mark.parametrize("value", ["true", "no", "on", 1, 0, "1"])
def test_truth_is_true_or_false(value):
    assert pointers({"confirm": value}) == ["/confirm"]


@pytest.mark.parametrize(("text", "wrong"), [("5", 0), ("-5", 0), ("1_0", 1), ("٣", 1), ("5.0", 1)])
def test_a_parameter_is_plain_digits(text, wrong):
    assert len(mistyped_parameters(Shape(), {"count": text, "confirm": "true"})) == wrong


@pytest.mark.parametrize("value", ["1.000", "12.00", "1_000", "٣", "100"])
def test_a_budget_of_text_is_refused(api, value):
    body = {"name": "Team", "amount_minor": value}
    document = assert_problem(api().post("/budgets", body), 422, "validation_failed")
    assert [error["pointer"] for error in document["errors"]] == ["/amount_minor"]
    assert api().get("/budgets").json()["items"] == []


def test_a_member_that_is_named_twice_is_refused_by_its_name(client, tenant):
    text = '{"name": "Team", "amount_minor": 5000, "amount_minor": 1}'
    response = client.post(
        "/api/v1/budgets",
        text,
        content_type="application/json",
        headers={"Authorization": f"Bearer {tenant.key}"},
    )
    document = assert_problem(response, 400, "malformed_request")
    assert "`amount_minor` is named twice" in document["detail"]
    assert ApiClient(tenant.key).get("/budgets").json()["items"] == []


@pytest.mark.parametrize("one", ["[{}]", '{{"a":{}}}'])
def test_json_is_read_to_a_depth(one):
    def nested(levels):
        text = "1"
        for _ in range(levels):
            text = one.format(text)
        return text

    assert parse_json(nested(DEPTH_MAX)) == json.loads(nested(DEPTH_MAX))
    for levels in (DEPTH_MAX + 1, 900):
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_json(nested(levels))
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000 + "]" * 100_000)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "{", b"\xff"])
def test_other_texts_are_no_json(text):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)
