"""Makes a backup. The service may run meanwhile; where it does not, its PostgreSQL is started."""

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
    describe_file,
    sync_path,
    write_manifest,
)
from console.programs.backup.metadata import metadata_store
from console.programs.backup.programs import Say, find_program
from console.programs.backup.secrets import SECRET_KEY, copy_secrets
from console.programs.backup.standstill import StillRuns, hold_standstill
from console.programs.supervisor import services
from console.programs.supervisor.marker import refuse_half_restored
from console.settings.config import Config

DUMP = "postgresql.dump"
# How long to wait for the PostgreSQL of a service that is still starting.
STARTING_S = 60.0


def make_backup(
    config: Config, to: Path, say: Say, *, superuser: str | None, with_secrets: bool
) -> Manifest:
    """Makes a backup in the folder `to`, which must be new or empty. Raises `BackupError`.

    The folder is written under the name `<to>.partial` and renamed once it is complete and on disk:
    a folder with the backup's own name is always complete. Where this is interrupted, the partial
    folder is removed.
    """
    refuse_half_restored(config.home)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise BackupError(f"{to} exists and is not empty: name a new folder.")
    partial = to.with_name(f"{to.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700, parents=True)
    try:
        with _running_server(config, superuser, say) as dsn:
            manifest = _fill_folder(config, partial, dsn, say, with_secrets=with_secrets)
        write_manifest(partial, manifest)
        sync_path(partial)
        if to.exists():
            to.rmdir()
        partial.rename(to)
        sync_path(to.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _report_backup(manifest, to, say)
    return manifest


def _fill_folder(
    config: Config, folder: Path, dsn: str, say: Say, *, with_secrets: bool
) -> Manifest:
    store, name = metadata_store(config.cell.metadata, config.cell.secret), config.database.name
    program = find_program("pg_dump", at_least=database.server_major(dsn))
    say("Waiting for a moment without changes to clusters.")
    with database.hold_snapshot(dsn, name, lambda: (_utc_now(), store.copy(folder))) as (
        snapshot,
        copied,
    ):
        taken_at, metadata = copied
        say(f"Metadata: {metadata.copy.size_bytes:,} bytes, revision {metadata.revision}.")
        say(f"PostgreSQL: {snapshot.tables} tables.")
        file = folder / DUMP
        database.dump_database(program, snapshot, dsn=dsn, name=name, file=file, say=say)
    sync_path(file)
    dumped = describe_file(file)
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
    return Manifest(taken_at, _utc_now(), version("freshet"), facts, metadata, secrets)


@contextlib.contextmanager
def _running_server(config: Config, superuser: str | None, say: Say) -> Iterator[str]:
    """Yields the connection string of a superuser of the database's server.

    The embedded server is started where nothing runs on the home, and stopped afterwards. Raises
    `BackupError` where there is no database yet, or the server does not answer.
    """
    given = server.server_superuser(config, superuser)
    if given is not None:
        yield given
        return
    if not services.postgres_folder(config).exists():
        raise BackupError(f"There is nothing to back up in {config.home}: it has no database yet.")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(hold_standstill(config, say))
        except StillRuns:
            dsn = server.embedded_superuser(config)
            server.wait_for_server(dsn, limit_s=STARTING_S)
        else:
            dsn = stack.enter_context(server.embedded_server(config, say))
        yield dsn


def _report_backup(manifest: Manifest, to: Path, say: Say) -> None:
    say(f"The backup in {to} is complete; it shows {manifest.taken_at}.")
    for secret in manifest.secrets:
        say(_describe_secret(secret))


def _describe_secret(secret: SecretFacts) -> str:
    if secret.copy is not None:
        return f"It holds {secret.name}: keep the folder as secret as the service itself."
    lost = (
        "sessions, links and second factors of this backup work with no other key"
        if secret.name == SECRET_KEY
        else "the brokers and the gateway of this cell work with no other secret"
    )
    return f"It does NOT hold {secret.name}: keep a copy of it yourself, since {lost}."


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
