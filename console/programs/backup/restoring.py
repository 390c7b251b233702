"""Restores a backup: it is staged beside the present data, and then replaces it in a few steps.

Before the first of these steps nothing is changed, whatever interrupts the restore. From the first
to the last step the home carries a mark (`console/programs/supervisor/marker.py`) that keeps the
service from starting; the same restore, run again, completes it. The data before the restore is
kept under another name.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from console.programs.backup import database, server
from console.programs.backup.errors import BackupError
from console.programs.backup.known import unknown_migrations
from console.programs.backup.manifest import Manifest, check_files, read_manifest
from console.programs.backup.metadata import MetadataStore, metadata_store
from console.programs.backup.programs import PostgresProgram, Say, find_program
from console.programs.backup.secrets import differing_secrets, put_secrets
from console.programs.backup.standstill import hold_standstill
from console.programs.supervisor import services
from console.programs.supervisor.home import make_home
from console.programs.supervisor.marker import clear_restoring, mark_restoring
from console.settings.config import Config
from metering.stores import open_usage_store

STAMP = "%Y%m%dt%H%M%Sz"
ADVICE = (
    "What was revoked since (API keys, credentials, members, sessions) works again: revoke it"
    " again.",
    "Topics made since are on storage, intact: wake each cluster (a client that connects does),"
    " then GET /clusters/{id}/orphaned-topics lists them and :attach brings them back.",
    "Invoices issued since: run `manage.py issue_invoices` again for their months; they get their"
    " numbers again.",
)


def restore_backup(
    config: Config,
    source: Path,
    say: Say,
    *,
    superuser: str | None,
    other_secrets: bool,
    lost_documents: bool,
) -> Manifest:
    """Makes the service what the backup shows.

    `other_secrets` and `lost_documents`: whether to go on where the backup's secrets are neither in
    it nor in place, and where `billing.documents` lacks invoice numbers that the backup knows.
    Raises `BackupError`; nothing was changed then, unless its sentence says so.
    """
    manifest = read_manifest(source)
    store = metadata_store(config.cell.metadata, config.cell.secret)
    say(f"The backup shows {manifest.taken_at}, made by Freshet {manifest.release}.")
    _check_backup(config, source, manifest, store)
    _check_secrets(config, manifest, accepted=other_secrets)
    _check_documents(config, manifest, accepted=lost_documents)
    program = find_program("pg_restore", at_least=manifest.database.program_major)
    make_home(config)
    with hold_standstill(config, say), _running_server(config, superuser, say) as dsn:
        _check_vacant(config, store, dsn)
        work = _RestoreWork(config, source, manifest, store, dsn)
        try:
            work.stage(program, say)
            # Nothing can start on this home meanwhile, but processes on another machine could.
            _check_vacant(config, store, dsn)
        except BaseException:
            work.unstage()
            raise
        unknown_clusters = work.unknown_clusters()
        with _signals_blocked():
            kept = work.put_in_place()
    _report_restore(manifest, kept, unknown_clusters, say)
    return manifest


def _check_backup(config: Config, source: Path, manifest: Manifest, store: MetadataStore) -> None:
    """Raises `BackupError` where the backup is damaged, or of a newer release than this one."""
    unknown = unknown_migrations(manifest.database.migrations)
    if unknown:
        raise BackupError(
            f"The backup is of a newer Freshet ({manifest.release}): this release lacks"
            f" {len(unknown)} of its migrations, such as {unknown[0]}. Restore with that release."
        )
    store.check(manifest.metadata)
    check_files(source, manifest.files())


def _check_secrets(config: Config, manifest: Manifest, *, accepted: bool) -> None:
    names = differing_secrets(config, manifest.secrets)
    if names and not accepted:
        raise BackupError(
            f"{' and '.join(names)} of this service is not that of the backup, which holds no copy:"
            " put the right one in place first. With --accept-other-secrets the restore goes on,"
            " and second factors, sessions and links of before will not work"
            " (`manage.py reset_second_factor` helps each person)."
        )


def _check_documents(config: Config, manifest: Manifest, *, accepted: bool) -> None:
    """Raises `BackupError` where `billing.documents` lacks invoice numbers that the backup knows.

    Numbers of invoices are written in the database and in this store, which must never go back in
    time (`docs/decisions/0010-numbers-in-two-places.md`).
    """
    location = config.billing.documents
    try:
        kept = set(open_usage_store(location).list(""))
    except OSError as error:
        raise BackupError(f"billing.documents ({location}) cannot be read: {error}.") from error
    lost = [key for key in manifest.database.number_blocks if key not in kept]
    if lost and not accepted:
        raise BackupError(
            f"billing.documents ({location}) lacks {lost[0]}, which the backup knows of: it says"
            " which invoice numbers were used since. Put that store back first, as new as you"
            " have it. With --accept-lost-documents the restore goes on, and numbers that"
            " customers have seen may be used again."
        )


def _check_vacant(config: Config, store: MetadataStore, dsn: str) -> None:
    users = store.users()
    if users:
        raise BackupError(
            "The metadata store is in use by the processes"
            f" {', '.join(map(str, users))}: stop keeper, gateway, agent, brokers, web and workers."
        )
    connected = database.count_connections(dsn, config.database.name)
    if connected:
        raise BackupError(
            f"{connected} connections to the database {config.database.name} are open: stop web,"
            " workers and whoever else uses it."
        )


@contextlib.contextmanager
def _running_server(config: Config, superuser: str | None, say: Say) -> Iterator[str]:
    given = server.server_superuser(config, superuser)
    if given is not None:
        yield given
        return
    with server.embedded_server(config, say) as dsn:
        yield dsn


@dataclass(frozen=True, slots=True)
class _RestoreWork:
    """The steps of a restore, on the server `dsn`."""

    config: Config
    source: Path
    manifest: Manifest
    store: MetadataStore
    dsn: str

    @property
    def staged(self) -> str:
        """The name of the database into which the backup is restored before the swap."""
        return f"{self.config.database.name}_restored"

    def stage(self, program: PostgresProgram, say: Say) -> None:
        """Restores metadata and database beside the present ones."""
        say(f"Metadata: {self.manifest.metadata.copy.size_bytes:,} bytes.")
        self.store.stage(self.source, self.manifest.metadata)
        say(f"PostgreSQL: {self.manifest.database.tables} tables.")
        database.stage_database(
            program,
            dsn=self.dsn,
            database=replace(self.config.database, name=self.staged),
            dump=self.source / self.manifest.database.dump.name,
            tables=self.manifest.database.tables,
            say=say,
        )

    def unstage(self) -> None:
        """Removes what `stage` made."""
        self.store.unstage()
        with contextlib.suppress(psycopg.Error):
            database.drop_database(self.dsn, self.staged)

    def unknown_clusters(self) -> list[str]:
        """Returns the ids of clusters, sorted, that are on storage and not in the backup."""
        known = database.known_clusters(self.dsn, self.staged)
        with contextlib.suppress(FileNotFoundError):
            on_storage = {folder.name for folder in self.config.cell.dfs.glob("cl_*")}
            return sorted(on_storage - known)
        return []

    def put_in_place(self) -> list[str]:
        """Replaces the present data by the staged data; returns where the former is kept."""
        config = self.config
        stamp = datetime.now(UTC).strftime(STAMP)
        kept = []
        mark_restoring(config.home, self.source)
        before = f"{config.database.name}_before_{stamp}"
        if self._swap_databases(before):
            kept.append(f"the database {before}")
        old = self.store.install_staged(stamp)
        kept += [str(old)] if old is not None else []
        # The queue holds tasks of the time after the backup. What must still be done, the sweeps
        # find.
        queue = services.redis_folder(config)
        if services.embeds_redis(config) and queue.exists():
            shutil.rmtree(queue)
        kept += map(str, put_secrets(config, self.source, self.manifest.secrets, stamp))
        clear_restoring(config.home)
        return kept

    def _swap_databases(self, before: str) -> bool:
        """Swaps the databases: the first step, in one transaction. See `swap_databases`.

        Where it fails, nothing was replaced yet: the mark and the staged data are removed.
        """
        name = self.config.database.name
        try:
            return database.swap_databases(self.dsn, staged=self.staged, name=name, before=before)
        except BackupError:
            clear_restoring(self.config.home)
            self.unstage()
            raise


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    """Holds SIGINT, SIGTERM and SIGHUP back, so that the few short steps are not interrupted."""
    blocked = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _report_restore(
    manifest: Manifest, kept: list[str], unknown_clusters: list[str], say: Say
) -> None:
    say(f"Restored: the service is as it was at {manifest.taken_at}.")
    if kept:
        say(f"What was there before is kept: {', '.join(kept)}.")
    for line in ADVICE:
        say(line)
    if unknown_clusters:
        say(
            "Clusters made since are on storage and in no organization:"
            f" {', '.join(unknown_clusters)}. docs/how-to/back-up.md says what to do."
        )
