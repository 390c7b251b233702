"""What a backup says of itself: `manifest.json` beside its files."""

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
    """One file of the backup, by its name in the folder."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """PostgreSQL: a dump in pg_dump's custom format.

    `migrations`: `<application>.<name>` of each that the database went through. `number_blocks`:
    keys of the last block of invoice numbers of each series (`billing/services/numbers.py`).
    """

    dump: File
    server_major: int
    program_major: int
    tables: int
    migrations: tuple[str, ...]
    number_blocks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """The cell's metadata store. `kind` names it; `version` is of its tables."""

    copy: File
    kind: str
    version: int
    revision: int


@dataclass(frozen=True, slots=True)
class SecretFacts:
    """A secret: its file, or none where it was left out; what tells it from another."""

    name: str
    copy: File | None
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of it. Times are ISO 8601 in UTC: `taken_at` is the moment that all of it shows."""

    taken_at: str
    finished_at: str
    release: str
    database: DatabaseFacts
    metadata: MetadataFacts
    secrets: tuple[SecretFacts, ...]

    def files(self) -> list[File]:
        """Every file but the manifest itself."""
        copies = [secret.copy for secret in self.secrets if secret.copy is not None]
        return [self.database.dump, self.metadata.copy, *copies]


def describe(file: Path) -> File:
    """A file's size and digest."""
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as stream:
        while part := stream.read(_READ_BYTES):
            digest.update(part)
            size += len(part)
    return File(file.name, size, digest.hexdigest())


def sync(path: Path) -> None:
    """Has a file, or the names in a folder, reach the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes it, mode 0600."""
    content = {"format": FORMAT, **dataclasses.asdict(manifest)}
    file = folder / NAME
    file.touch(mode=0o600)
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    sync(file)


def read_manifest(folder: Path) -> Manifest:
    """Reads it. Raises `BackupError` where the folder is no backup, or of a newer release."""
    file = folder / NAME
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        found = content.pop("format")
    except FileNotFoundError:
        raise BackupError(
            f"{folder} is no backup: it has no {NAME}. A folder whose name ends in .partial is one"
            " that was interrupted, and is of no use."
        ) from None
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise BackupError(f"{file} cannot be read: {error}.") from error
    if found != FORMAT:
        raise BackupError(
            f"{folder} has the format {found}, and this release reads {FORMAT}: restore with the"
            f" release that made it, {content.get('release', 'which it does not name')}."
        )
    try:
        return _manifest(content)
    except (KeyError, TypeError) as error:
        raise BackupError(f"{file} is damaged: {error!r}.") from error


def check_files(folder: Path, files: Iterable[File]) -> None:
    """Raises `BackupError` where one is missing or is not what was written."""
    for wanted in files:
        try:
            found = describe(folder / wanted.name)
        except OSError as error:
            raise BackupError(f"The backup is not whole: {error}.") from error
        if found != wanted:
            raise BackupError(
                f"{folder / wanted.name} is damaged: it has {found.size_bytes} bytes and SHA-256"
                f" {found.sha256[:12]}…, and had {wanted.size_bytes} and {wanted.sha256[:12]}…."
            )


def _manifest(content: dict[str, Any]) -> Manifest:
    database, metadata = content["database"], content["metadata"]
    return Manifest(
        taken_at=content["taken_at"],
        finished_at=content["finished_at"],
        release=content["release"],
        database=DatabaseFacts(
            **{
                **database,
                "dump": _file(database["dump"]),
                "migrations": tuple(database["migrations"]),
                "number_blocks": tuple(database["number_blocks"]),
            }
        ),
        metadata=MetadataFacts(**{**metadata, "copy": _file(metadata["copy"])}),
        secrets=tuple(
            SecretFacts(
                secret["name"],
                None if secret["copy"] is None else _file(secret["copy"]),
                secret["fingerprint"],
            )
            for secret in content["secrets"]
        ),
    )


def _file(content: dict[str, Any]) -> File:
    file = File(**content)
    if Path(file.name).name != file.name:
        raise BackupError(f"The manifest names {file.name!r}, which is not in its folder.")
    return file
