"""How settings name where a cell's data lies: its metadata, its object store, its usage files.

Metadata: the path of an SQLite file, also as `sqlite://<path>`, or an address of etcd,
`etcd://host:port[,host:port…][/root][?option=value[&…]]`, with `etcds://` by TLS. Options: `user`,
`password_file`; for TLS `ca`, `cert`, `key` and `server_name`.

Objects: the path of a folder, also as `file://<path>`, or
`s3://bucket[/prefix][?endpoint=<URL>&region=<name>&key_file=<path>]`. `key_file` is a credentials
file in the format of AWS; without one the standard variables of AWS have the credentials.

Nothing is escaped, so no name may hold `&`, `?` or `,`. The engine reads the same texts
(`brokers/core/crates/etcd/src/location.rs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from brokers.errors import ConfigError

__all__ = [
    "EtcdLocation",
    "Location",
    "S3Location",
    "absolute",
    "for_cluster",
    "local_path",
    "metadata_location",
    "object_location",
]

Location = Annotated[str, "location"]
"""The type of a setting that is a location of metadata or objects, as a text."""

LOCAL_SCHEMES = ("sqlite", "file")
REMOTE_SCHEMES = ("etcd", "etcds", "s3")
CLUSTER = "{cluster}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdLocation:
    """An etcd, and where in it a cell's metadata lies."""

    members: tuple[str, ...]
    """`host:port` of each member."""
    root: str = ""
    """The prefix of every key; empty, or ends with a slash."""
    tls: bool = False
    user: str | None = None
    password_file: Path | None = None
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    server_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Location:
    """A bucket of an S3-compatible store, and where in it the objects lie."""

    bucket: str
    prefix: str = ""
    """The prefix of every key; empty, or ends with a slash."""
    endpoint: str | None = None
    """URL; None: AWS's own."""
    region: str | None = None
    key_file: Path | None = None


def metadata_location(text: str) -> Path | EtcdLocation:
    """Where metadata lies. Raises `ConfigError`, which names the location."""
    scheme, rest = _split(text)
    if scheme in ("", "sqlite"):
        return Path(rest)
    if scheme not in ("etcd", "etcds"):
        raise _refused(text, "metadata lies in sqlite://, etcd:// or etcds://")
    place, options = _options(text, rest)
    members, _, root = place.partition("/")
    location = EtcdLocation(
        members=tuple(members.split(",")),
        root=_folder(root),
        tls=scheme == "etcds",
        user=options.pop("user", None),
        password_file=_path(options.pop("password_file", None)),
        ca=_path(options.pop("ca", None)),
        cert=_path(options.pop("cert", None)),
        key=_path(options.pop("key", None)),
        server_name=options.pop("server_name", None),
    )
    _refuse_options(text, options)
    if not all(_is_address(member) for member in location.members):
        raise _refused(text, "each member of etcd is a host:port")
    if (location.user is None) != (location.password_file is None):
        raise _refused(text, "user and password_file go together")
    if (location.cert is None) != (location.key is None):
        raise _refused(text, "cert and key go together")
    if not location.tls and (location.ca or location.cert or location.server_name):
        raise _refused(text, "ca, cert, key and server_name want etcds://")
    return location


def object_location(text: str) -> Path | S3Location:
    """Where objects lie. Raises `ConfigError`, which names the location."""
    scheme, rest = _split(text)
    if scheme in ("", "file"):
        return Path(rest)
    if scheme != "s3":
        raise _refused(text, "objects lie in file:// or s3://")
    place, options = _options(text, rest)
    bucket, _, prefix = place.partition("/")
    location = S3Location(
        bucket=bucket,
        prefix=_folder(prefix),
        endpoint=options.pop("endpoint", None),
        region=options.pop("region", None),
        key_file=_path(options.pop("key_file", None)),
    )
    _refuse_options(text, options)
    if not bucket:
        raise _refused(text, "the bucket has no name")
    return location


def local_path(text: str) -> Path | None:
    """The path of a location on this machine; None for other locations."""
    scheme, rest = _split(text)
    return Path(rest) if scheme in ("", *LOCAL_SCHEMES) else None


def absolute(text: str) -> str:
    """The location with its path made absolute; one that is no path stays as it is.

    Raises `ConfigError` for an unknown scheme.
    """
    path = local_path(text)
    if path is not None:
        return str(path.absolute())
    if _split(text)[0] not in REMOTE_SCHEMES:
        raise _refused(text, "no such kind of store")
    return text


def for_cluster(text: str, cluster_id: str) -> str:
    """The location for the brokers of one cluster: its id replaces `{cluster}`."""
    return text.replace(CLUSTER, cluster_id)


def _split(text: str) -> tuple[str, str]:
    scheme, separator, rest = text.partition("://")
    return (scheme, rest) if separator else ("", text)


def _options(text: str, rest: str) -> tuple[str, dict[str, str]]:
    place, _, query = rest.partition("?")
    options: dict[str, str] = {}
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if not value or name in options:
            raise _refused(text, f"{name} wants one value")
        options[name] = value
    return place, options


def _refuse_options(text: str, options: Mapping[str, str]) -> None:
    if options:
        raise _refused(text, f"there is no option {min(options)!r}")


def _refused(text: str, reason: str) -> ConfigError:
    return ConfigError(f"{text}: {reason}")


def _folder(text: str) -> str:
    text = text.strip("/")
    return f"{text}/" if text else ""


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _is_address(member: str) -> bool:
    host, _, port = member.rpartition(":")
    return bool(host) and port.isdecimal() and int(port) < 1 << 16
