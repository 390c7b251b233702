"""How many SQL statements an answer costs, and the committed baseline of each GET."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from django.db import connection
from django.test.utils import CaptureQueriesContext

# Statements by the address below `/api/v1`, as the walk writes it.
BASELINES = Path(__file__).with_name("query_counts.json")


def count_queries(ask: Callable[[], object]) -> int:
    """Statements of what `ask` does.

    It is done twice and the second time counts: the first request of an organisation reads what it
    may ask for, and remembers it.
    """
    ask()
    with CaptureQueriesContext(connection) as captured:
        ask()
    return len(captured)


def assert_baseline(address: str, *counts: int) -> None:
    """Every one of the counts is the committed one of the address."""
    known = json.loads(BASELINES.read_text())
    expected = known.get(address, f'write it into {BASELINES.name} as "{address}"')
    assert list(counts) == [expected] * len(counts), address
