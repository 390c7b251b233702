"""Opens the store that a setting names, for usage files and documents. No Django."""

from __future__ import annotations

from configparser import RawConfigParser
from pathlib import Path

from brokers.errors import ConfigError
from brokers.locations import S3Location, object_location
from metering.events.store import FolderUsageStore, PartStore


def open_usage_store(location: str) -> PartStore:
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
    """Settings of a Spark session that reaches a location, on every machine of a cluster.

    They hold the bucket's keys where the location names a file of keys; Spark redacts these in what
    it shows. Raises `ConfigError` where that file has no keys, and `OSError`.
    """
    place = object_location(location)
    if isinstance(place, Path):
        return {}
    settings = _credentials(place)
    if place.region is not None:
        settings["endpoint.region"] = place.region
    if place.endpoint is not None:
        settings |= {"endpoint": place.endpoint, "path.style.access": "true"}
    bucket = f"spark.hadoop.fs.s3a.bucket.{place.bucket}"
    return {f"{bucket}.{name}": value for name, value in settings.items()}


def _credentials(place: S3Location) -> dict[str, str]:
    """Settings of a bucket that say who reads and writes it."""
    if place.key_file is None:
        provider = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
        return {"aws.credentials.provider": provider}
    # A file that only this machine has would be of no use to executors.
    profiles = RawConfigParser()
    profiles.read_string(place.key_file.read_text(encoding="utf-8"))
    try:
        profile = profiles["default"]
        keys = {
            "access.key": profile["aws_access_key_id"],
            "secret.key": profile["aws_secret_access_key"],
        }
    except KeyError as error:
        message = f"{place.key_file}: there is no {error} of the profile default"
        raise ConfigError(message) from error
    token = profile.get("aws_session_token")
    kind = "Simple" if token is None else "Temporary"
    provider = f"org.apache.hadoop.fs.s3a.{kind}AWSCredentialsProvider"
    if token is not None:
        keys["session.token"] = token
    return {"aws.credentials.provider": provider, **keys}
