"""Rounds of a bench, in turn and resumable: what was measured is kept until the bench is whole."""

from __future__ import annotations

import hashlib
import json
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench import machine
from tests.bench.report import Earlier, progress, spread
from tests.bench.sides import (
    BEFORE,
    BROKER_CPU,
    FRESHET,
    GENERATOR_CPU,
    PYTHONS,
    rotated,
    work_folder,
)
from tests.peer.jars import ROOT

KEPT = ROOT / ".bench" / "kept"

Figures = dict[str, float]
# side → figure → samples
Samples = dict[str, dict[str, list[float]]]


@dataclass
class Rounds:
    """The rounds of one bench: every side once a round, in an order that rotates.

    A bench that was cut off goes on with the first side that it has no figures of, if the builds of
    ours and `parameters`, which must be of JSON, are the same.
    """

    bench: str
    sides: Sequence[str]
    count: int
    parameters: Mapping[str, Any]
    limits: dict[str, Any] = field(default_factory=dict)
    # What was measured once for all rounds, such as a rate.
    facts: dict[str, Any] = field(default_factory=dict)
    _figures: dict[str, Figures] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Takes up what an earlier run has left, or measures the machine."""
        if self._file.exists():
            kept = json.loads(self._file.read_text())
            if kept["key"] == self._key:
                self.limits, self.facts = kept["limits"], kept["facts"]
                self._figures = kept["figures"]
                progress(f"going on after {len(self._figures)} measurements of an earlier run")
                return
        self.limits = machine.limits(work_folder(), GENERATOR_CPU, BROKER_CPU)
        progress(f"limits of the machine: {self.limits}")

    def fact(self, name: str, measure: Callable[[], Any]) -> Any:  # noqa: ANN401 -- of JSON
        """What `measure` returned, in this run or in the one that this run goes on with."""
        if name not in self.facts:
            self.facts[name] = measure()
            progress(f"{name}: {self.facts[name]}")
            self._keep()
        return self.facts[name]

    def play(self, measure: Callable[[str], Figures]) -> Samples:
        """Calls `measure` with every side, once a round; returns all figures."""
        return self.play_variants([""], lambda name, _: measure(name))[""]

    def play_variants(
        self, variants: Sequence[str], measure: Callable[[str, str], Figures]
    ) -> dict[str, Samples]:
        """Calls `measure` with every side and variant, such as a codec, once a round.

        All sides of a variant follow one another, because they are what is compared. Returns the
        figures of each variant, apart from those of the others.
        """
        samples: dict[str, Samples] = {
            variant: {name: defaultdict(list) for name in self.sides} for variant in variants
        }
        for number in range(self.count):
            for variant in rotated(variants, number):
                for name in rotated(self.sides, number):
                    figures = self._figures_of(number, name, variant, measure)
                    for key, value in figures.items():
                        samples[variant][name][key].append(value)
        self._file.unlink(missing_ok=True)
        return samples

    def _figures_of(
        self, number: int, name: str, variant: str, measure: Callable[[str, str], Figures]
    ) -> Figures:
        """What was measured in this turn, now or in the run that this one goes on with."""
        turn = f"{number} {name} {variant}".rstrip()
        if turn not in self._figures:
            progress(f"round {number + 1} of {self.count}: {name} {variant}".rstrip())
            self._figures[turn] = measure(name, variant)
            progress(f"  { {key: round(v, 2) for key, v in self._figures[turn].items()} }")
            self._keep()
        return self._figures[turn]

    @property
    def _file(self) -> Path:
        return KEPT / f"{self.bench}.json"

    @property
    def _key(self) -> str:
        what = json.dumps([self.sides, self.count, self.parameters])
        builds = [_build_of(PYTHONS[name]) for name in self.sides if name in PYTHONS]
        return f"{' '.join(builds)} {what}"

    def _keep(self) -> None:
        KEPT.mkdir(parents=True, exist_ok=True)
        aside = self._file.with_suffix(f".{os.getpid()}")
        kept = {
            "key": self._key,
            "limits": self.limits,
            "facts": self.facts,
            "figures": self._figures,
        }
        aside.write_text(json.dumps(kept))
        aside.rename(self._file)


def median(samples: Samples, side: str, figure: str, digits: int = 3) -> float | None:
    """The median of a side's figure, or nothing where that was not measured."""
    values = samples.get(side, {}).get(figure)
    return round(statistics.median(values), digits) if values else None


def beside_earlier(samples: Samples, commit: str | None, value: float | None) -> Earlier | None:
    """What the side `before` measured beside ours, where a commit ran as one.

    `value` is its figure that stands beside the report's own.
    """
    if commit is None:
        return None
    names = [key for key in samples.get(FRESHET, {}) if key in samples.get(BEFORE, {})]
    figures = {key: (median(samples, FRESHET, key), median(samples, BEFORE, key)) for key in names}
    return Earlier(commit, value, figures)


def named_by_variant(samples: Mapping[str, Samples]) -> Samples:
    """The figures of all variants together, each with its variant before its name."""
    together: Samples = defaultdict(dict)
    for variant, sides in samples.items():
        for name, figures in sides.items():
            together[name] |= {f"{variant} {key}": values for key, values in figures.items()}
    return together


def summarize_sides(samples: Samples) -> dict[str, Any]:
    """Medians with their spread, as `details` has them."""
    return {
        name: {key: spread(values, 3) for key, values in figures.items()}
        for name, figures in samples.items()
    }


def _build_of(python: Path) -> str:
    """Says which build of the broker an environment has: the extension and the Python around it."""
    digest = hashlib.sha256()
    for file in sorted(python.parent.parent.glob("lib/*/site-packages/brokers/**/*")):
        if file.suffix in {".py", ".so"}:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
