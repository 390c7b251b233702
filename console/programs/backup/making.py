"""`backup`: the service goes on meanwhile; where it is not up, its embedded server is started."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from console.programs.backup import database, server
from console.programs.backup.errors import BackupError
from console.programs.backup.manifest import (
    DatabaseFacts,
    Manifest,
    SecretFacts,
    describe,
    sync,
    write_manifest,
)
from console.programs.backup.metadata import metadata_store
from console.programs.backup.programs import Say, find_program
from console.programs.backup.secrets import SECRET_KEY, copy_secrets
from console.programs.backup.standstill import StillRuns, standstill
from console.programs.supervisor import services
from console.programs.supervisor.marker import refuse_half_restored
from console.settings.config import Config

DUMP = "postgresql.dump"
# A service that is only just starting.
STARTING_S = 60.0


def make_backup(
    config: Config, to: Path, say: Say, *, superuser: str | None, with_secrets: bool
) -> Manifest:
    """Makes a backup in a folder that is new or empty. Raises `BackupError`.

    It grows under another name and gets its own when it is whole and on disk, so what has the name
    can be relied on. Whatever interrupts this removes what there is of it.
    """
    refuse_half_restored(config.home)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise BackupError(f"{to} is there already, and not empty: name a new folder.")
    partial = to.with_name(f"{to.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700, parents=True)
    try:
        with _server(config, superuser, say) as dsn:
            manifest = _fill(config, partial, dsn, say, with_secrets=with_secrets)
        write_manifest(partial, manifest)
        sync(partial)
        if to.exists():
            to.rmdir()
        partial.rename(to)
        sync(to.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _conclude(manifest, to, say)
    return manifest


def _fill(config: Config, folder: Path, dsn: str, say: Say, *, with_secrets: bool) -> Manifest:
    store, name = metadata_store(config.cell.metadata, config.cell.secret), config.database.name
    program = find_program("pg_dump", at_least=database.server_major(dsn))
    say("Waiting for a moment without changes to clusters.")
    with database.moment(dsn, name, lambda: (_now(), store.copy(folder))) as (snapshot, copied):
        taken_at, metadata = copied
        say(f"Metadata: {metadata.copy.size_bytes:,} bytes, revision {metadata.revision}.")
        say(f"PostgreSQL: {snapshot.tables} tables.")
        file = folder / DUMP
        database.dump(program, snapshot, dsn=dsn, name=name, file=file, say=say)
    sync(file)
    dumped = describe(file)
    say(f"PostgreSQL: {dumped.size_bytes:,} bytes.")
    facts = DatabaseFacts(
        dump=dumped,
        server_major=snapshot.server_major,
        program_major=program.major,
        tables=snapshot.tables,
        migrations=snapshot.migrations,
        number_blocks=snapshot.number_blocks,
    )
    secrets = copy_secrets(config, folder, with_files=with_secrets)
    return Manifest(taken_at, _now(), version("freshet"), facts, metadata, secrets)


@contextlib.contextmanager
def _server(config: Config, superuser: str | None, say: Say) -> Iterator[str]:
    """A superuser of the database's server, which is made to run where it is ours and does not."""
    given = server.server_superuser(config, superuser)
    if given is not None:
        yield given
        return
    if not services.postgres_folder(config).exists():
        raise BackupError(f"There is nothing to back up in {config.home}: it has no database yet.")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(standstill(config, say))
        except StillRuns:
            dsn = server.embedded_superuser(config)
            server.wait_for(dsn, limit_s=STARTING_S)
        else:
            dsn = stack.enter_context(server.embedded_server(config, say))
        yield dsn


def _conclude(manifest: Manifest, to: Path, say: Say) -> None:
    say(f"The backup in {to} is whole; it shows {manifest.taken_at}.")
    for secret in manifest.secrets:
        say(_about(secret))


def _about(secret: SecretFacts) -> str:
    if secret.copy is not None:
        return f"It holds {secret.name}: keep the folder as secret as the service itself."
    lost = (
        "sessions, links and second factors of this backup work with no other one"
        if secret.name == SECRET_KEY
        else "brokers and gateway of this cell work with no other one"
    )
    return f"It does NOT hold {secret.name}: keep that yourself, {lost}."


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
