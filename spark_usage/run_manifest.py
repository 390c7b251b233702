"""The run manifest: the caller's list of the files that a job reads. Jobs list no folders."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from spark_usage.errors import JobError

VERSION = 1

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Input:
    """A usage file as its own manifest describes it. `key` is its path relative to the root."""

    key: str
    size_bytes: int
    sha256: str
    rows: int


@dataclass(frozen=True, slots=True)
class RunManifest:
    """The inputs of one run. `usage_root` is a folder or a URI that Hadoop can read."""

    run_id: str
    day: date
    usage_root: str
    inputs: tuple[Input, ...]

    @property
    def day_start_ms(self) -> int:
        """The first millisecond of the day, UTC."""
        return (
            int(datetime(self.day.year, self.day.month, self.day.day, tzinfo=UTC).timestamp())
            * 1000
        )

    def path(self, file: Input) -> str:
        """The path or URI of an input."""
        return f"{self.usage_root.rstrip('/')}/{file.key}"


def parse_run(data: bytes, *, run_id: str, day: date) -> RunManifest:
    """Parses a run manifest. Raises `JobError` unless it is valid and of this run and day."""
    try:
        plain = json.loads(data)
        if plain["version"] != VERSION:
            message = (
                f"a run manifest of version {plain['version']!r}, this release knows {VERSION}"
            )
            raise JobError(message)
        run = RunManifest(
            run_id=str(plain["run_id"]),
            day=date.fromisoformat(plain["day"]),
            usage_root=str(plain["usage_root"]),
            inputs=_parse_inputs(plain["inputs"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        message = f"not a run manifest: {type(error).__name__}: {error}"
        raise JobError(message) from error
    if (run.run_id, run.day) != (run_id, day):
        message = f"the manifest is of run {run.run_id} and {run.day}, not of {run_id} and {day}"
        raise JobError(message)
    return run


def _parse_inputs(plain: Sequence[Mapping[str, Any]]) -> tuple[Input, ...]:
    inputs = tuple(_parse_input(entry) for entry in plain)
    if len({file.key for file in inputs}) < len(inputs):
        message = "a key is listed twice"
        raise ValueError(message)
    return inputs


def _parse_input(plain: Mapping[str, Any]) -> Input:
    key, size, sha256, rows = (plain[name] for name in ("key", "size_bytes", "sha256", "rows"))
    if not isinstance(key, str) or not all(part.strip(".") for part in key.split("/")):
        message = f"{key!r} is no key"
        raise ValueError(message)
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        message = f"{key}: sha256 is {sha256!r}"
        raise ValueError(message)
    if type(size) is not int or type(rows) is not int or size < 0 or rows < 0:
        message = f"{key}: size_bytes and rows are {size!r} and {rows!r}"
        raise ValueError(message)
    return Input(key, size, sha256, rows)
