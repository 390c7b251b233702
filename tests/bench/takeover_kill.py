"""A broker of three is killed under load: the gap as a producer sees it (`takeover.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.disturbed import run_disturbed
from tests.bench.report import Report
from tests.bench.takeover import KILL


def run(rounds: int | None = None, only: Sequence[str] | None = None, scale: float = 1.0) -> Report:
    """Runs the bench. `scale` has fewer of them."""
    return run_disturbed(KILL, rounds, only, scale)
