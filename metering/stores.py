"""Opens the store that a setting names, for usage files and documents. No Django."""

from __future__ import annotations

from pathlib import Path

from brokers.locations import object_location
from metering.events.store import FolderUsageStore, UsageStore


def open_usage_store(location: str) -> UsageStore:
    """The store at a location (see `brokers.locations`). Nothing is read yet.

    Raises `ConfigError` for a location that is none.
    """
    place = object_location(location)
    if isinstance(place, Path):
        return FolderUsageStore(place)
    # Imported here, because its libraries take half a second to load, for nothing without a bucket.
    from brokers.s3 import S3Objects  # noqa: PLC0415

    return S3Objects(place)


def hadoop_root(location: str) -> str:
    """A location as a path or `s3a://` URI for Spark. The session has its keys and endpoint."""
    place = object_location(location)
    if isinstance(place, Path):
        return str(place)
    return f"s3a://{place.bucket}/{place.prefix}".rstrip("/")


def hadoop_settings(location: str) -> dict[str, str]:
    """Settings of a Spark session that reaches a location. There is no secret among them."""
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
    """Environment variables of a process whose Spark session reaches a location."""
    place = object_location(location)
    if isinstance(place, Path) or place.key_file is None:
        return {}
    return {"AWS_SHARED_CREDENTIALS_FILE": str(place.key_file), "AWS_PROFILE": "default"}
