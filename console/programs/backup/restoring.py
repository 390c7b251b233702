"""`restore`: everything is brought beside what is there, and then put in its place in few steps.

Until the first of these steps nothing is changed, whatever interrupts it. From there to the last
the home carries a mark (`console/programs/supervisor/marker.py`) that keeps everything from
starting; the same restore, run again, completes it. What was there before is kept under another
name.
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
from console.programs.backup.programs import Program, Say, find_program
from console.programs.backup.secrets import differing, put_secrets
from console.programs.backup.standstill import standstill
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
    """Makes the service what the backup shows. Raises `BackupError`, and has changed nothing then,
    unless the sentence says so.
    """
    manifest = read_manifest(source)
    store = metadata_store(config.cell.metadata, config.cell.secret)
    say(f"The backup shows {manifest.taken_at}, made by Freshet {manifest.release}.")
    _check(config, source, manifest, store)
    _check_secrets(config, manifest, accepted=other_secrets)
    _check_documents(config, manifest, accepted=lost_documents)
    program = find_program("pg_restore", at_least=manifest.database.program_major)
    make_home(config)
    with standstill(config, say), _server(config, superuser, say) as dsn:
        _check_vacant(config, store, dsn)
        work = _Work(config, source, manifest, store, dsn)
        try:
            work.stage(program, say)
            # Ours cannot start; processes on another machine could, meanwhile.
            _check_vacant(config, store, dsn)
        except BaseException:
            work.unstage()
            raise
        strangers = work.unknown_clusters()
        with _uninterrupted():
            kept = work.put()
    _conclude(manifest, kept, strangers, say)
    return manifest


def _check(config: Config, source: Path, manifest: Manifest, store: MetadataStore) -> None:
    """Raises where the backup is damaged, or of a newer release than this one."""
    unknown = unknown_migrations(manifest.database.migrations)
    if unknown:
        raise BackupError(
            f"The backup is of a newer Freshet ({manifest.release}): this release does not know"
            f" {unknown[0]} and {len(unknown) - 1} other migrations. Restore with that release."
        )
    store.check(manifest.metadata)
    check_files(source, manifest.files())


def _check_secrets(config: Config, manifest: Manifest, *, accepted: bool) -> None:
    names = differing(config, manifest.secrets)
    if names and not accepted:
        raise BackupError(
            f"{' and '.join(names)} of this service is not that of the backup, which holds no copy:"
            " put the right one in place first. With --accept-other-secrets the restore goes on,"
            " and second factors, sessions and links of before will not work"
            " (`manage.py reset_second_factor` helps each person)."
        )


def _check_documents(config: Config, manifest: Manifest, *, accepted: bool) -> None:
    """The numbers of invoices are in two places, and this one must never go back.

    See `docs/decisions/0010-numbers-in-two-places.md`.
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
    connected = database.users(dsn, config.database.name)
    if connected:
        raise BackupError(
            f"{connected} connections to the database {config.database.name} are open: stop web,"
            " workers and whoever else uses it."
        )


@contextlib.contextmanager
def _server(config: Config, superuser: str | None, say: Say) -> Iterator[str]:
    given = server.server_superuser(config, superuser)
    if given is not None:
        yield given
        return
    with server.embedded_server(config, say) as dsn:
        yield dsn


@dataclass(frozen=True, slots=True)
class _Work:
    """The steps of a restore."""

    config: Config
    source: Path
    manifest: Manifest
    store: MetadataStore
    dsn: str

    @property
    def staged(self) -> str:
        """The database that is put in place of the present one."""
        return f"{self.config.database.name}_restored"

    def stage(self, program: Program, say: Say) -> None:
        """Everything beside what is there."""
        say(f"Metadata: {self.manifest.metadata.copy.size_bytes:,} bytes.")
        self.store.stage(self.source, self.manifest.metadata)
        say(f"PostgreSQL: {self.manifest.database.tables} tables.")
        database.stage(
            program,
            dsn=self.dsn,
            database=replace(self.config.database, name=self.staged),
            dump=self.source / self.manifest.database.dump.name,
            tables=self.manifest.database.tables,
            say=say,
        )

    def unstage(self) -> None:
        """Leaves nothing of it."""
        self.store.unstage()
        with contextlib.suppress(psycopg.Error):
            database.drop(self.dsn, self.staged)

    def unknown_clusters(self) -> list[str]:
        """Clusters that storage has and the backup does not."""
        known = database.clusters(self.dsn, self.staged)
        with contextlib.suppress(FileNotFoundError):
            found = {folder.name for folder in self.config.cell.dfs.glob("cl_*")}
            return sorted(found - known)
        return []

    def put(self) -> list[str]:
        """Puts all of it in place; gives what was there before, and where it is."""
        config = self.config
        stamp = datetime.now(UTC).strftime(STAMP)
        kept = []
        mark_restoring(config.home, self.source)
        before = f"{config.database.name}_before_{stamp}"
        if self._swap(before):
            kept.append(f"the database {before}")
        old = self.store.put(stamp)
        kept += [str(old)] if old is not None else []
        # Tasks of the time that is gone; whatever is left to do, the sweeps find.
        queue = services.redis_folder(config)
        if services.embeds_redis(config) and queue.exists():
            shutil.rmtree(queue)
        kept += map(str, put_secrets(config, self.source, self.manifest.secrets, stamp))
        clear_restoring(config.home)
        return kept

    def _swap(self, before: str) -> bool:
        """The first step, all or nothing: where it is nothing, nothing is half restored."""
        name = self.config.database.name
        try:
            return database.swap(self.dsn, staged=self.staged, name=name, before=before)
        except BackupError:
            clear_restoring(self.config.home)
            self.unstage()
            raise


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Has Ctrl-C and its kin wait: the steps are few and short, and belong together."""
    asked = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, asked)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _conclude(manifest: Manifest, kept: list[str], strangers: list[str], say: Say) -> None:
    say(f"Restored: the service is as it was at {manifest.taken_at}.")
    if kept:
        say(f"What was there before is kept: {', '.join(kept)}.")
    for line in ADVICE:
        say(line)
    if strangers:
        say(
            f"Clusters made since are on storage and in no organisation: {', '.join(strangers)}."
            " docs/how-to/back-up.md says what to do."
        )
