"""The control plane's database: dumped at a moment, restored beside the present one, swapped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psycopg
from psycopg import IsolationLevel, sql

from console.base.common.roles import prepare_database
from console.programs.backup.errors import BackupError
from console.programs.backup.programs import Program, Say, Tables, run_program
from console.settings.sections import Database

T = TypeVar("T")

# Whoever changes the cell's metadata for the control plane writes one of these rows first.
GATES = ("provisioning_cluster", "provisioning_credential")
LOCK_TRIES = 6
LOCK_WAIT = "5s"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the dump shows. `name` is PostgreSQL's, good while the block is open."""

    name: str
    server_major: int
    tables: int
    migrations: tuple[str, ...]
    number_blocks: tuple[str, ...]


@contextmanager
def moment(dsn: str, name: str, copy: Callable[[], T]) -> Iterator[tuple[Snapshot, T]]:
    """A snapshot of the database `name`, and what `copy` gives at the same moment.

    Writers of the rows behind the metadata wait while it copies, and no longer: so no cluster's
    generation and no credential is newer in one of the two. Raises `BackupError`.
    """
    try:
        with psycopg.connect(dsn, dbname=name) as reader:
            reader.isolation_level = IsolationLevel.REPEATABLE_READ
            with psycopg.connect(dsn, dbname=name) as gate:
                _close(gate)
                snapshot = _look(reader)
                copied = copy()
            yield snapshot, copied
    except psycopg.errors.UndefinedTable as error:
        raise BackupError(f"The database {name} is not Freshet's: {error}") from error
    except psycopg.OperationalError as error:
        raise BackupError(f"PostgreSQL: {str(error).strip()}") from error


def _close(gate: psycopg.Connection) -> None:
    """Waits for those who write, and holds the next ones back until the transaction ends."""
    names = sql.SQL(", ").join(map(sql.Identifier, GATES))
    for _ in range(LOCK_TRIES):
        try:
            gate.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_WAIT))
            gate.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(names))
        except psycopg.errors.LockNotAvailable:
            gate.rollback()  # others wait behind us: let them pass, and try again
        else:
            return
    raise BackupError(
        "Changes to clusters go on without a pause, and the backup needs one of them to end: try"
        " again."
    )


def _look(reader: psycopg.Connection) -> Snapshot:
    migrations = reader.execute("SELECT app || '.' || name FROM django_migrations ORDER BY 1")
    blocks = reader.execute(
        "SELECT DISTINCT ON (series_id) key FROM billing_numberblock ORDER BY series_id, first DESC"
    )
    tables = _one(reader, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
    return Snapshot(
        name=str(_one(reader, "SELECT pg_export_snapshot()")),
        server_major=reader.info.server_version // 10_000,
        tables=int(tables),
        migrations=tuple(row[0] for row in migrations),
        number_blocks=tuple(row[0] for row in blocks),
    )


def dump(
    program: Program, snapshot: Snapshot, *, dsn: str, name: str, file: Path, say: Say
) -> None:
    """Dumps the database as the snapshot shows it. Raises `BackupError`."""
    file.touch(mode=0o600)
    command = (
        program.path,
        *("--format=custom", "--verbose", "--no-password"),
        *(f"--snapshot={snapshot.name}", f"--file={file}", f"--dbname={name}"),
    )
    told = Tables(say, "PostgreSQL", "dumping contents of table", snapshot.tables)
    run_program(command, dsn=dsn, on_line=told)


def server_major(dsn: str) -> int:
    """The server's release."""
    with psycopg.connect(dsn) as connection:
        return connection.info.server_version // 10_000


def stage(
    program: Program, *, dsn: str, database: Database, dump: Path, tables: int, say: Say
) -> None:
    """Restores a dump into a database that is made anew. Raises `BackupError`."""
    drop(dsn, database.name)
    prepare_database(superuser=dsn, database=database)
    command = (
        program.path,
        *("--exit-on-error", "--single-transaction", "--verbose", "--no-password"),
        *(f"--dbname={database.name}", dump),
    )
    told = Tables(say, "PostgreSQL", "processing data for table", tables)
    run_program(command, dsn=dsn, on_line=told)


def drop(dsn: str, name: str) -> None:
    """Removes a database, if there is one."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        connection.execute(statement.format(sql.Identifier(name)))


def users(dsn: str, name: str) -> int:
    """How many others are connected to a database."""
    with psycopg.connect(dsn) as connection:
        return int(
            _one(connection, "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", name)
        )


def clusters(dsn: str, name: str) -> set[str]:
    """The ids of all clusters that a database has ever known."""
    with psycopg.connect(dsn, dbname=name) as connection:
        rows = connection.execute("SELECT id FROM provisioning_cluster").fetchall()
    return {row[0] for row in rows}


def swap(dsn: str, *, staged: str, name: str, before: str) -> bool:
    """Gives the staged database the name, and the one that has it the name `before`, at once.

    Tells whether there was one. Raises `BackupError` where somebody is connected.
    """
    rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
    try:
        with psycopg.connect(dsn) as connection:
            found = _one(connection, "SELECT count(*) FROM pg_database WHERE datname = %s", name)
            if found:
                old, kept = sql.Identifier(name), sql.Identifier(before)
                connection.execute(rename.format(old, kept))
            connection.execute(rename.format(sql.Identifier(staged), sql.Identifier(name)))
    except psycopg.errors.ObjectInUse as error:
        raise BackupError(f"Somebody uses the database: {str(error).strip()}") from error
    return bool(found)


def _one(connection: psycopg.Connection, query: str, *given: str) -> int | str:
    row = connection.execute(query.encode(), given).fetchone()
    assert row is not None  # noqa: S101 (each of these gives a row)
    value: int | str = row[0]
    return value
