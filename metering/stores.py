"""The store that a setting names, for usage files and documents. No Django."""

from __future__ import annotations

from pathlib import Path

from brokers.locations import object_location
from metering.events.store import FolderUsageStore, UsageStore


def open_usage_store(location: str) -> UsageStore:
    """The store at a location (`brokers.locations`); nothing is read yet.

    Raises `ConfigError` where it names none.
    """
    place = object_location(location)
    if isinstance(place, Path):
        return FolderUsageStore(place)
    # Its libraries take half a second, which a process without a bucket need not spend.
    from brokers.s3 import S3Objects  # noqa: PLC0415

    return S3Objects(place)


def hadoop_root(location: str) -> str:
    """A location as Spark reads it: a path, or `s3a://`. Keys and endpoint are the session's."""
    place = object_location(location)
    if isinstance(place, Path):
        return str(place)
    return f"s3a://{place.bucket}/{place.prefix}".rstrip("/")
