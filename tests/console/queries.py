"""Counts the SQL statements of an answer, and compares with the committed baseline of each GET."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from django.db import connection
from django.test.utils import CaptureQueriesContext

# Statements by the path below `/api/v1`, as the tables in `walk/` write it.
BASELINES = Path(__file__).with_name("query_counts.json")


def count_queries(ask: Callable[[], object]) -> int:
    """Returns how many statements the second of two calls of `ask` runs.

    The first request of an organization also reads its rate limit, which the process remembers.
    """
    ask()
    with CaptureQueriesContext(connection) as captured:
        ask()
    return len(captured)


def assert_baseline(address: str, *counts: int) -> None:
    """Asserts that every count is the committed one of the path."""
    baselines = json.loads(BASELINES.read_text())
    expected = baselines.get(address, f'write it into {BASELINES.name} as "{address}"')
    assert list(counts) == [expected] * len(counts), (address, counts)
