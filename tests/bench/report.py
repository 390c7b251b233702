"""What a bench says: progress for whoever waits, and one JSON line for whoever compares."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Sequence
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
class Report:
    """One bench's result: `value` is ours and `peer` is Kafka's, both in `unit`."""

    bench: str
    value: float | None
    unit: str
    peer: float | None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """Ours over Kafka's, or nothing if a side did not run."""
        if self.value is None or not self.peer:
            return None
        return round(self.value / self.peer, 4)

    def line(self) -> str:
        """The one line of JSON."""
        return json.dumps(
            {
                "bench": self.bench,
                "value": self.value,
                "unit": self.unit,
                "peer": self.peer,
                "ratio": self.ratio,
                "details": self.details,
            }
        )
