"""Keys of usage files, their manifests, slots of time and statements of the log in a store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from metering.events.errors import UsageFormatError
from metering.events.times import day_of

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_KEY = re.compile(
    r"v1/cell=(?P<cell>[^/]+)/day=(?P<day>\d{4}-\d{2}-\d{2})/"
    r"(?P<emitted>\d{13})-(?P<token>[0-9a-f]{16})\.(?P<kind>parquet|json)"
)


@dataclass(frozen=True, slots=True)
class UsageKey:
    """The parts of a key of a usage file or of its manifest."""

    cell: str
    day: date
    emitted_at_ms: int
    token: str
    is_manifest: bool


def data_key(cell: str, emitted_at_ms: int, token: str) -> str:
    """The key of a usage file. `token` has 16 random hex digits; further ones are cut off."""
    day = day_of(emitted_at_ms).isoformat()
    return f"{cell_prefix(cell)}day={day}/{emitted_at_ms:013d}-{token[:16]}.parquet"


def manifest_key(key: str) -> str:
    """The key of a usage file's manifest."""
    return f"{key.removesuffix('.parquet')}.json"


def parse_key(key: str) -> UsageKey | None:
    """The parts of a key; None where it is the key of another kind of object."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    return UsageKey(
        cell=match["cell"],
        day=date.fromisoformat(match["day"]),
        emitted_at_ms=int(match["emitted"]),
        token=match["token"],
        is_manifest=match["kind"] == "json",
    )


def cell_prefix(cell: str) -> str:
    """The prefix of all keys of a cell. Raises `UsageFormatError` for an impossible name."""
    return f"v1/cell={_checked_name(cell)}/"


def day_prefix(cell: str, day: date) -> str:
    """The prefix of the keys of all usage files that were emitted on a day."""
    return f"{cell_prefix(cell)}day={day.isoformat()}/"


def slots_prefix(cell: str, cluster_id: str) -> str:
    """The prefix of the keys of a cluster's slots."""
    return f"{cell_prefix(cell)}slots/{_checked_name(cluster_id)}/"


def slot_key(cell: str, cluster_id: str, from_ms: int) -> str:
    """The key of the slot that begins at `from_ms`. Keys sort in the order of these times."""
    return f"{slots_prefix(cell, cluster_id)}{from_ms:013d}.json"


def log_prefix(cell: str, day: date) -> str:
    """The prefix of the keys of all statements of the log for a day."""
    return f"{cell_prefix(cell)}log/day={day.isoformat()}/"


def log_key(cell: str, day: date, cluster_id: str) -> str:
    """The key of a cluster's statement of the log for a day."""
    return f"{log_prefix(cell, day)}{_checked_name(cluster_id)}.json"


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        message = f"{name!r} cannot be part of a key"
        raise UsageFormatError(message)
    return name
