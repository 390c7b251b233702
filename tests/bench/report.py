"""What a bench says: progress for whoever waits, and one JSON line for whoever compares."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_BEGAN = time.monotonic()


def progress(text: str) -> None:
    """Writes a line to standard error, with the seconds since the bench began."""
    print(f"[{time.monotonic() - _BEGAN:6.1f} s] {text}", file=sys.stderr, flush=True)


def spread(samples: Sequence[float], digits: int = 2) -> dict[str, Any]:
    """Median, least, most and all of a figure's samples, in their own unit."""
    return {
        "median": round(statistics.median(samples), digits),
        "min": round(min(samples), digits),
        "max": round(max(samples), digits),
        "samples": [round(sample, digits) for sample in samples],
    }


@dataclass(frozen=True)
class Earlier:
    """What the build of an earlier commit measured beside ours, in the same rounds.

    `value` is in the report's unit. `figures` are medians by name, ours first and its second.
    """

    commit: str
    value: float | None
    figures: Mapping[str, tuple[float | None, float | None]]

    def as_json(self, ours: float | None) -> dict[str, Any]:
        """The members for the line of JSON; each ratio is ours over the earlier build's."""
        return {
            "commit": self.commit,
            "value": self.value,
            "ratio": ratio(ours, self.value),
            "figures": {
                name: {"now": now, "before": before, "ratio": ratio(now, before)}
                for name, (now, before) in self.figures.items()
            },
        }

    def table(self) -> str:
        """A table for people, with a row for each figure."""
        rows = [f"{'':<44} {'now':>12} {'before':>12} {'now/before':>10}"]
        for name, (now, before) in self.figures.items():
            over = ratio(now, before)
            figures = f"{_shown(now):>12} {_shown(before):>12} {_shown(over):>10}"
            rows.append(f"{name:<44} {figures}")
        return "\n".join(rows)


def ratio(ours: float | None, theirs: float | None) -> float | None:
    """Ours over theirs, or nothing where a side did not run or theirs is 0."""
    return round(ours / theirs, 4) if ours is not None and theirs else None


def _shown(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.3f}"


@dataclass(frozen=True)
class Report:
    """One bench's result: `value` is ours and `peer` is Kafka's, both in `unit`.

    `earlier` is there where the build of an earlier commit ran as a side too.
    """

    bench: str
    value: float | None
    unit: str
    peer: float | None
    details: dict[str, Any] = field(default_factory=dict)
    earlier: Earlier | None = None

    @property
    def ratio(self) -> float | None:
        """Ours over Kafka's, or nothing if a side did not run."""
        return ratio(self.value, self.peer)

    def line(self) -> str:
        """The one line of JSON."""
        earlier = {"before": self.earlier.as_json(self.value)} if self.earlier else {}
        return json.dumps(
            {
                "bench": self.bench,
                "value": self.value,
                "unit": self.unit,
                "peer": self.peer,
                "ratio": self.ratio,
                **earlier,
                "details": self.details,
            }
        )
