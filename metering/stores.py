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


def hadoop_settings(location: str) -> dict[str, str]:
    """What a session of Spark is told to reach a location; no secret is among it."""
    place = object_location(location)
    if isinstance(place, Path):
        return {}
    keys = "ProfileCredentialsProvider" if place.key_file else "DefaultCredentialsProvider"
    settings = {"aws.credentials.provider": f"software.amazon.awssdk.auth.credentials.{keys}"}
    if place.region is not None:
        settings["endpoint.region"] = place.region
    if place.endpoint is not None:
        settings |= {"endpoint": place.endpoint, "path.style.access": "true"}
    return {f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()}


def hadoop_environment(location: str) -> dict[str, str]:
    """What a process with a session of Spark finds in its environment to reach a location."""
    place = object_location(location)
    if isinstance(place, Path) or place.key_file is None:
        return {}
    return {"AWS_SHARED_CREDENTIALS_FILE": str(place.key_file), "AWS_PROFILE": "default"}
