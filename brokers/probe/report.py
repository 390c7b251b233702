"""The report of a probe, for people and as JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from brokers.probe.alone import ALONE, UnfitError, own_folder, try_promise
from brokers.probe.partner import Partner, Side, SilentError
from brokers.probe.shared import SHARED

EXIT_FIT = 0
EXIT_UNFIT = 4


@dataclass(frozen=True)
class Finding:
    """One promise: kept, or broken for this reason."""

    promise: str
    kept: bool
    reason: str
    ms: float


@dataclass
class Report:
    """All promises, of a folder as one or two mounts show it."""

    folder: str
    other: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def fit(self) -> bool:
        """Whether every promise is kept."""
        return all(finding.kept for finding in self.findings)

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {**dataclasses.asdict(self), "fit": self.fit}

    def lines(self) -> Iterator[str]:
        """For people."""
        width = max(len(finding.promise) for finding in self.findings)
        for finding in self.findings:
            said = f"kept, {finding.ms:.1f} ms" if finding.kept else f"BROKEN: {finding.reason}"
            yield f"{finding.promise.ljust(width)}  {said}"
        broken = sum(not finding.kept for finding in self.findings)
        yield f"{self.folder} is fit" if self.fit else f"{self.folder} is UNFIT: {broken} broken"


def note_promise(report: Report, promise: str, check: Callable[[], None]) -> None:
    """Checks a promise and adds the finding to the report."""
    begun = time.monotonic()
    reason = ""
    try:
        try_promise(promise, check)
    except UnfitError as error:
        reason = error.reason
    except SilentError as error:
        reason = str(error)
    ms = (time.monotonic() - begun) * 1000
    report.findings.append(Finding(promise, not reason, reason, round(ms, 3)))


def probe_folder(folder: Path, other: Path | None) -> Report:
    """Checks all promises. `other` is a second mount of the same folder.

    Raises `UnfitError` where nothing can be made in the folder.
    """
    report = Report(str(folder), str(other or folder))
    with own_folder(folder) as own:
        for promise, check in ALONE.items():
            note_promise(report, promise, partial(check, own))
        apart = (other or folder) / own.name
        if other is not None and not apart.is_dir():
            reason = f"{other} does not show what is made in {folder}"
            report.findings.append(Finding("the same folder", kept=False, reason=reason, ms=0.0))
            return report
        shared = own / "shared"
        shared.mkdir()
        here = Side(shared)
        with Partner(apart / "shared") as there:
            for promise, between in SHARED.items():
                note_promise(report, promise, partial(between, here, there))
        here.close()
    return report


def show_probe(folder: Path, other: Path | None, *, as_json: bool) -> int:
    """Probes a folder and writes the report to standard output.

    Returns the status to exit with: 4 where the folder is unfit.
    """
    try:
        report = probe_folder(folder, other)
    except UnfitError as error:
        report = Report(str(folder), str(other or folder))
        report.findings.append(Finding(error.promise, kept=False, reason=error.reason, ms=0.0))
    if as_json:
        sys.stdout.write(json.dumps(report.as_json(), indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in report.lines())
    return EXIT_FIT if report.fit else EXIT_UNFIT
