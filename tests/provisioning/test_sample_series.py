"""The series of a sample: which are kept, and what the others add up to."""

from typing import Any

import orjson
import pytest

from provisioning.clusters.services.sample_series import (
    SERIES_MAX,
    bounded_series,
    hourly_series,
    series_of,
)


def count_of(series):
    pairs = sum(map(len, series["groups"].values()))
    return 1 + 2 * pairs + 3 * len(series["topics"])


def lags(count):
    return {(f"g{n // 10}", f"t{n % 10}"): (n, float(n)) for n in range(count)}


def rates(count):
    return {f"t{n}": [float(n), 1.0, 0.5] for n in range(count)}


@pytest.mark.parametrize(
    ("pairs", "topics"), [(0, 0), (1, 1), (2499, 0), (1000, 999), (0, 1666), (100, 1599)]
)
def test_as_many_as_are_allowed_are_all_kept(pairs, topics):
    series = bounded_series(7, lags(pairs), rates(topics), bytes_max=2**30)
    assert count_of(series) == 1 + 2 * pairs + 3 * topics <= SERIES_MAX
    assert "" not in series["groups"]
    assert "" not in series["topics"]


@pytest.mark.parametrize(
    ("pairs", "topics"),
    [(2500, 0), (50_000, 0), (0, 1667), (0, 50_000), (9_000, 9_000), (5, 9_000)],
)
def test_of_more_the_largest_are_kept_and_the_rest_is_summed(pairs, topics):
    given = lags(pairs)
    given[("big", "only")] = (10**9, 0.5)
    series = bounded_series(7, given, rates(topics), bytes_max=2**30)
    assert SERIES_MAX - 5 < count_of(series) <= SERIES_MAX
    assert series["groups"]["big"] == {"only": (10**9, 0.5)}
    kept = [lag for of_group in series["groups"].values() for lag, _ in of_group.values()]
    assert sum(kept) == 10**9 + sum(range(pairs))
    if topics:
        assert sum(numbers[0] for numbers in series["topics"].values()) == sum(range(topics))
        assert f"t{topics - 1}" in series["topics"]
    rest = series["groups"].get("", {}).get("")
    if rest is not None:
        smallest = min(lag for lag in kept if lag not in (rest[0],))
        assert rest[1] <= smallest


def test_long_names_are_fewer_series():
    long = {(f"{n:05}" + "n" * 240, "t"): (n, 1.0) for n in range(2000)}
    series = bounded_series(7, long, {})
    assert len(orjson.dumps(series)) <= 256 * 1024
    kept = [lag for of_group in series["groups"].values() for lag, _ in of_group.values()]
    assert sum(kept) == sum(range(2000))
    assert 500 < len(kept) < 1100


def test_what_is_not_known_stays_unknown():
    partitions = [
        {"topic": "t", "partition": 0, "lag": None, "since_ms": None},
        {"topic": "u", "partition": 0, "lag": 5, "since_ms": None},
        {"topic": "u", "partition": 1, "lag": 0, "since_ms": None},
        {"topic": "v", "partition": 0, "lag": 4, "since_ms": 1_000},
    ]
    content = {"groups": [{"group": "g", "partitions": partitions}], "topics": {"t": [5, 5, 5]}}
    series = series_of(content, 61_000, {}, 0)
    assert series == {
        "connections": None,
        "groups": {"g": {"t": (None, None), "u": (5, 0.0), "v": (4, 60.0)}},
        "topics": {},
    }


def test_a_topic_that_is_new_counts_from_nothing():
    content = {"groups": [], "topics": {"new": [600, 0, 6], "old": [600, 60, 6]}, "connections": 3}
    series = series_of(content, 70_000, {"old": [0, 0, 0]}, 10_000)
    assert series["topics"] == {"new": [10.0, 0.0, 0.1], "old": [10.0, 1.0, 0.1]}
    # A sample of the same moment says nothing of rates.
    assert series_of(content, 10_000, {"old": [0, 0, 0]}, 10_000)["topics"] == {}


def test_an_hour_has_the_greatest_lag_and_the_average_rate():
    minutes: list[dict[str, Any]] = [
        {"connections": 2, "groups": {"g": {"t": [5, None]}}, "topics": {"t": [60.0, 6.0, 1.0]}},
        {"connections": None, "groups": {}, "topics": {}},
        {"connections": 9, "groups": {"g": {"t": [None, 7.5]}}, "topics": {"t": [30.0, 0.0, 2.0]}},
    ]
    assert hourly_series(minutes) == {
        "connections": 9,
        "groups": {"g": {"t": (5, 7.5)}},
        "topics": {"t": [30.0, 2.0, 1.0]},
    }
