"""Which records a text or an expression finds."""

import json
import re
from dataclasses import dataclass, field

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from provisioning.kafka.filters import (
    CHARS_MAX,
    DEPTH_MAX,
    JSON_BYTES_MAX,
    NUMBER_CHARS_MAX,
    TERMS_MAX,
    FilterError,
    compile_filter,
)

T0 = 1_700_000_000_000  # 2023-11-14T22:13:20Z
ORDER = {
    "state": "done",
    "total": 120.5,
    "count": 3,
    "paid": True,
    "note": None,
    "code": "007",
    "items": [{"sku": "A-1"}, {"sku": "B-2"}],
    "a b": {"c.d": "deep"},
}


@dataclass
class Kept:
    """What a filter sees of a record."""

    k: bytes | None = b"eu-42"
    v: bytes | None = json.dumps(ORDER).encode()
    h: list[tuple[str, bytes | None]] = field(
        default_factory=lambda: [
            ("source", b"Web"),
            ("x.y", b"1"),
            ("source", b"retry"),
            ("n", None),
        ]
    )

    def key(self):
        return self.k

    def value(self):
        return self.v

    def headers(self):
        return self.h

    def partition(self):
        return 2

    def offset(self):
        return 41

    def timestamp(self):
        return (1, T0)


def finds(text, record):
    """Whether a filter finds a record with this text as its value."""
    return compile_filter(text)(Kept(v=record.encode()))


@pytest.mark.parametrize(
    "text",
    [
        # a text, wherever it is
        "done",
        "DONE",
        "EU-4",
        "retry",
        "source",
        '"done"',
        # expressions
        "key = eu-42",
        "key == 'eu-42'",
        "key ~ EU",
        "key != x",
        "key !~ us",
        'value.state = "done"',
        "value.total > 100",
        "value.total >= 120.5 and value.count < 4",
        "value.total <= 120.5",
        "value.paid = true",
        "value.paid != false",
        "value.note = null",
        "value.nothing = null",
        "value.state != null",
        "value.nothing != x",
        "value.items[1].sku = B-2",
        "value.items[7].sku = null",
        'value["a b"]["c.d"] = deep',
        "value['a b'] ~ deep",
        "value ~ sku",
        "value.code = 7",
        'value.code = "007"',
        "value.state > a",
        "headers.source = Web",
        "headers.source = retry",
        "headers.x.y = 1",
        "headers.n = null",
        "headers.none = null",
        "headers ~ WEB",
        "partition = 2",
        "offset > 40",
        f"timestamp = {T0}",
        'timestamp >= "2023-11-14T22:13:20Z"',
        "timestamp < 2023-11-15",
        "not value.state = open",
        "not (value.state = open or value.count = 4)",
        "value.state = open or value.count = 3 and key ~ eu",
        "(value.state = open or value.count = 3) and not key ~ us",
        "((key = eu-42))",
    ],
)
def test_found(text):
    assert compile_filter(text)(Kept())


@pytest.mark.parametrize(
    "text",
    [
        "nowhere",
        "key = eu-4",
        "key = 42",
        "value.state = DONE",
        "value.total > 121",
        "value.total = done",
        "value.state > 1",
        "value.paid = 1",
        "value.paid = yes",
        "value.note != null",
        "value.nothing > 0",
        "value.items.sku = A-1",
        "value.state.more = x",
        "headers.source != retry",
        "headers.Source = Web",
        "partition = 1",
        "offset < 41",
        "timestamp > 2023-11-15",
        "not key ~ eu",
        "value.state = done and value.count = 4",
    ],
)
def test_not_found(text):
    assert not compile_filter(text)(Kept())


NEIGHBOURS = (73314510714175488, 73314510714175489, 73314510714175490)


@pytest.mark.parametrize("held", ["{}", '"{}"', "{}.0", "{}e0"])
@pytest.mark.parametrize("literal", ["{}", "{}.0", "{}e0"])
def test_integers_of_any_length_are_compared_exactly(held, literal):
    record = f'{{"order_id": {held.format(NEIGHBOURS[1])}}}'
    less, same, more = (literal.format(neighbour) for neighbour in NEIGHBOURS)
    assert finds(f"value.order_id = {same}", record)
    for other in (less, more):
        assert not finds(f"value.order_id = {other}", record)
        assert finds(f"value.order_id != {other}", record)
    assert finds(f"value.order_id > {less} and value.order_id < {more}", record)
    assert finds(f"value.order_id >= {same} and value.order_id <= {same}", record)
    assert not finds(f"value.order_id > {same} or value.order_id < {same}", record)


def test_fractions_and_numbers_of_texts_are_compared_exactly():
    assert finds("value.a = 0.1", '{"a": 0.10}')
    assert not finds("value.a = 0.1", '{"a": 0.1000000000000000055511151231257827}')
    assert finds("value.a > 9007199254740993", '{"a": 9007199254740993.5}')
    assert finds("value.a < 1e400", '{"a": 9e399}')
    assert finds("value.a = 0", '{"a": -0.0}')
    key = Kept(k=b"73314510714175489", h=[("id", b"73314510714175489")])
    assert compile_filter("key = 73314510714175489 and headers.id = 73314510714175489")(key)
    assert not compile_filter("key = 73314510714175488 or headers.id = 73314510714175488")(key)


class Far(Kept):
    """A record at numbers that a float cannot hold."""

    def offset(self):
        return 2**60 + 1

    def timestamp(self):
        return (1, 253_402_300_799_999)


def test_places_and_times_are_compared_exactly():
    far = Far()
    assert compile_filter(f"offset = {2**60 + 1} and offset > {2**60}")(far)
    assert not compile_filter(f"offset = {2**60}")(far)
    assert compile_filter("timestamp = 9999-12-31T23:59:59.999Z")(far)
    assert compile_filter("timestamp < 9999-12-31T23:59:59.999001Z")(far)


def test_a_long_number_equals_itself_alone():
    digits = "7" * (NUMBER_CHARS_MAX - len("value.a = "))
    assert finds(f"value.a = {digits}", f'{{"a": {digits}}}')
    assert not finds(f"value.a = {digits}", f'{{"a": {digits[:-1]}8}}')


@pytest.mark.parametrize(
    "number",
    [
        "1" * (NUMBER_CHARS_MAX + 1),
        "1" * 4_301,  # more than Python reads as an integer
        "1" * 100_000,
        "0." + "1" * 100_000,
        "1e999999999",
        "-1e-999999999",
        "1e" + "9" * 10_000,
        "NaN",
        "Infinity",
        "-Infinity",
    ],
)
def test_a_number_that_is_not_read_is_there_and_equals_nothing(number):
    record = f'{{"a": {number}, "b": 1}}'
    assert finds("value.a != null and value.a != 1 and value.b = 1", record)
    assert not finds("value.a = 1 or value.a > 1 or value.a <= 1", record)
    assert finds(f"value.a ~ {number[-9:]}", record)


def test_a_path_finds_nothing_in_json_that_is_too_large():
    rest = JSON_BYTES_MAX - len('{"a": 1, "b": ""}')
    largest = '{"a": 1, "b": "' + "x" * rest + '"}'
    assert finds("value.a = 1", largest)
    too_large = largest.replace("1", "11")
    assert not finds("value.a = 11", too_large)
    assert finds('value.a = null and value ~ "11, "', too_large)


def test_contains_looks_at_numbers_as_they_are_written():
    record = '{"id": 73314510714175489, "total": 19.90, "all": [{"n": 1e3, "s": "\\u00e9\\""}]}'
    assert finds("value.id ~ 14175489 and value.total ~ 19.90 and value.all ~ 1E3", record)
    assert not finds("value.id ~ 73314510714175488 or value.total ~ 019.90", record)
    assert finds("value ~ 73314510714175489 and value !~ 73314510714175488", record)
    assert compile_filter("value ~ 007")(Kept(v=b"agent 007"))
    assert not compile_filter("value ~ 007")(Kept(v=b"agent 7"))


# Without floats: JSON may write those in several ways.
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
)


@given(st.lists(TREES) | st.dictionaries(st.text(max_size=3), TREES))
def test_contains_looks_at_lists_and_objects_as_json_on_one_line(tree):
    line = json.dumps(tree, ensure_ascii=False)
    quoted = re.sub(r'(["\\])', r"\\\1", line)
    assume(len(quoted) < CHARS_MAX - 20)
    assert finds(f'value.a ~ "{quoted}"', json.dumps({"a": tree}))
    assert not finds(f'value.a ~ "{quoted} "', json.dumps({"a": tree}))


def test_what_is_nested_deeply_is_looked_through():
    levels = 600
    assert finds("value.a ~ deep", f'{{"a": {"[" * levels}"deep"{"]" * levels}}}')


def test_what_begins_with_a_parts_name_may_be_a_text():
    record = Kept(k=None, v=b"the value of a key", h=[])
    assert compile_filter("value of a key")(record)
    assert compile_filter("key")(record)
    assert not compile_filter("keys")(record)
    quoted = Kept(v=b"where key = x")
    assert compile_filter("'key = x'")(quoted)
    assert not compile_filter("key = x")(quoted)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe{", b"[" * 100_000, b"{"])
def test_what_is_no_json_has_no_paths(content):
    record = Kept(k=content, v=content)
    assert compile_filter("value.a = null and key[0] = null")(record)
    assert not compile_filter("value.a = 1 or key.b ~ x")(record)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs a text"),
        ("   ", "needs a text"),
        ("x" * (CHARS_MAX + 1), "at most"),
        ("key =", "a value"),
        ("key = a b", "and, or, or the end"),
        ("key = a and", "key, value"),
        ("(key = a", "closing parenthesis"),
        ("key = a)", "and, or, or the end"),
        ("key = a and name = b", "no part of a record"),
        ("key = a and (= b", "key, value"),
        ("key = a and value", "an operator"),
        ("value..a = 1", "no path"),
        ("value.a[ = 1", "not understood"),
        ("offset.a = 1", "no part of a record"),
        ("headers[0] = 1", "no part of a record"),
        ("key < null", "null can only"),
        ("timestamp > soon", "no moment"),
        ("not " * (DEPTH_MAX + 2) + "key = a", "levels"),
        (" and ".join(["key = a"] * (TERMS_MAX + 1)), "comparisons"),
    ],
)
def test_what_cannot_be_understood_says_where(text, message):
    with pytest.raises(FilterError, match=message):
        compile_filter(text)


@given(st.text(max_size=60), st.binary(max_size=60))
def test_nothing_but_its_error_comes_of_any_text(text, content):
    try:
        decide = compile_filter(text)
    except FilterError:
        return
    assert decide(Kept(k=content, v=content)) in {True, False}


@given(st.text(alphabet="keyvalu.[]()=!~<> and or not\"'0123 null", max_size=60))
def test_nothing_but_its_error_comes_of_what_looks_like_an_expression(text):
    try:
        decide = compile_filter("key = " + text)
    except FilterError:
        return
    assert decide(Kept()) in {True, False}
