"""The manifest of a backup, `manifest.json`: what it holds, with sizes, digests and versions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.programs.backup.errors import BackupError

FORMAT = 1
NAME = "manifest.json"
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class File:
    """One file of the backup: its name in the folder, its size and its SHA-256 in hex."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """The dump of PostgreSQL, in pg_dump's custom format.

    `server_major` and `program_major`: the major versions of the server and of pg_dump. `tables`:
    how many tables the dump has. `migrations`: `<application>.<name>` of each migration that was
    applied. `number_blocks`: the key of the last block of invoice numbers of each series
    (`billing/services/numbers.py`).
    """

    dump: File
    server_major: int
    program_major: int
    tables: int
    migrations: tuple[str, ...]
    number_blocks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """The copy of the cell's metadata store.

    `kind`: `sqlite` or `etcd`. `version`: that of the tables, or of the copy's format. `revision`:
    the store's own, at the moment of the copy.
    """

    copy: File
    kind: str
    version: int
    revision: int


@dataclass(frozen=True, slots=True)
class SecretFacts:
    """A secret of the service.

    `copy`: its file in the backup; None where it was left out. `fingerprint`: see
    `ServiceSecret.fingerprint`.
    """

    name: str
    copy: File | None
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole manifest.

    Times are ISO 8601 in UTC; `taken_at` is the moment that database and metadata show.
    """

    taken_at: str
    finished_at: str
    release: str
    database: DatabaseFacts
    metadata: MetadataFacts
    secrets: tuple[SecretFacts, ...]

    def files(self) -> list[File]:
        """Returns every file of the backup but the manifest itself."""
        copies = [secret.copy for secret in self.secrets if secret.copy is not None]
        return [self.database.dump, self.metadata.copy, *copies]


def describe_file(file: Path) -> File:
    """Returns the name, size and digest of a file."""
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as stream:
        while part := stream.read(_READ_BYTES):
            digest.update(part)
            size += len(part)
    return File(file.name, size, digest.hexdigest())


def sync_path(path: Path) -> None:
    """Syncs a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest into the folder, mode 0600, and syncs it."""
    content = {"format": FORMAT, **dataclasses.asdict(manifest)}
    file = folder / NAME
    file.touch(mode=0o600)
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    sync_path(file)


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of a backup.

    Raises `BackupError` where the folder is no backup, its format is another one, or the manifest
    is damaged.
    """
    file = folder / NAME
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        file_format = content.pop("format")
    except FileNotFoundError:
        raise BackupError(
            f"{folder} is no backup: it has no {NAME}. A folder whose name ends in .partial is one"
            " that was interrupted, and is of no use."
        ) from None
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise BackupError(f"{file} cannot be read: {error}.") from error
    if file_format != FORMAT:
        raise BackupError(
            f"{folder} has the format {file_format}, and this release reads {FORMAT}: restore with"
            f" the release that made it, {content.get('release', 'which it does not name')}."
        )
    try:
        return _parse_manifest(content)
    except (KeyError, TypeError) as error:
        raise BackupError(f"{file} is damaged: {error!r}.") from error


def check_files(folder: Path, files: Iterable[File]) -> None:
    """Raises `BackupError` where a file is missing, or differs from what the manifest says."""
    for expected in files:
        try:
            actual = describe_file(folder / expected.name)
        except OSError as error:
            raise BackupError(f"The backup is not complete: {error}.") from error
        if actual != expected:
            raise BackupError(
                f"{folder / expected.name} is damaged: it has {actual.size_bytes} bytes and SHA-256"
                f" {actual.sha256[:12]}…, and its manifest says {expected.size_bytes} bytes and"
                f" {expected.sha256[:12]}…."
            )


def _parse_manifest(content: dict[str, Any]) -> Manifest:
    database, metadata = content["database"], content["metadata"]
    return Manifest(
        taken_at=content["taken_at"],
        finished_at=content["finished_at"],
        release=content["release"],
        database=DatabaseFacts(
            **{
                **database,
                "dump": _parse_file(database["dump"]),
                "migrations": tuple(database["migrations"]),
                "number_blocks": tuple(database["number_blocks"]),
            }
        ),
        metadata=MetadataFacts(**{**metadata, "copy": _parse_file(metadata["copy"])}),
        secrets=tuple(
            SecretFacts(
                secret["name"],
                None if secret["copy"] is None else _parse_file(secret["copy"]),
                secret["fingerprint"],
            )
            for secret in content["secrets"]
        ),
    )


def _parse_file(content: dict[str, Any]) -> File:
    file = File(**content)
    if Path(file.name).name != file.name:
        raise BackupError(f"The manifest names {file.name!r}, which is not in its folder.")
    return file
