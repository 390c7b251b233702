"""The control plane's database: it is dumped at one moment, restored beside the present one, and
put in its place.
"""

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
from console.programs.backup.programs import PostgresProgram, Say, Tables, run_program
from console.settings.sections import Database

T = TypeVar("T")

# Before the control plane changes the cell's metadata it writes a row of one of these tables: while
# they are locked, the metadata does not change.
GATES = ("provisioning_cluster", "provisioning_credential")
LOCK_TRIES = 6
LOCK_WAIT = "5s"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the dump will show.

    `name`: PostgreSQL's name of the snapshot, valid while `hold_snapshot` is open. `migrations` and
    `number_blocks`: see `DatabaseFacts`.
    """

    name: str
    server_major: int
    tables: int
    migrations: tuple[str, ...]
    number_blocks: tuple[str, ...]


@contextmanager
def hold_snapshot(dsn: str, name: str, copy: Callable[[], T]) -> Iterator[tuple[Snapshot, T]]:
    """Holds a snapshot of the database `name` open; yields it with the result of `copy`.

    While `copy` runs, writers of the tables `GATES` wait. So the snapshot and what `copy` copied
    (the metadata store) show the same moment: no cluster's generation and no credential is newer in
    one of them. Raises `BackupError` where this is not Freshet's database, where PostgreSQL does
    not answer, or where the tables could not be locked.
    """
    try:
        with psycopg.connect(dsn, dbname=name) as reader:
            reader.isolation_level = IsolationLevel.REPEATABLE_READ
            with psycopg.connect(dsn, dbname=name) as gate:
                _lock_gates(gate)
                snapshot = _describe_snapshot(reader)
                copied = copy()
            yield snapshot, copied
    except psycopg.errors.UndefinedTable as error:
        raise BackupError(f"The database {name} is not Freshet's: {error}") from error
    except psycopg.OperationalError as error:
        raise BackupError(f"PostgreSQL: {str(error).strip()}") from error


def _lock_gates(gate: psycopg.Connection) -> None:
    """Locks the tables `GATES` against writers until the transaction of `gate` ends.

    Raises `BackupError` where earlier writers do not end within `LOCK_TRIES` times `LOCK_WAIT`.
    """
    names = sql.SQL(", ").join(map(sql.Identifier, GATES))
    for _ in range(LOCK_TRIES):
        try:
            gate.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_WAIT))
            gate.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(names))
        except psycopg.errors.LockNotAvailable:
            gate.rollback()  # later writers queue behind this lock: let them pass, then try again
        else:
            return
    raise BackupError(
        "The backup needs a moment without changes to clusters, and there was none: try again."
    )


def _describe_snapshot(reader: psycopg.Connection) -> Snapshot:
    migrations = reader.execute("SELECT app || '.' || name FROM django_migrations ORDER BY 1")
    blocks = reader.execute(
        "SELECT DISTINCT ON (series_id) key FROM billing_numberblock ORDER BY series_id, first DESC"
    )
    tables = _query_value(reader, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
    return Snapshot(
        name=str(_query_value(reader, "SELECT pg_export_snapshot()")),
        server_major=reader.info.server_version // 10_000,
        tables=int(tables),
        migrations=tuple(row[0] for row in migrations),
        number_blocks=tuple(row[0] for row in blocks),
    )


def dump_database(
    program: PostgresProgram, snapshot: Snapshot, *, dsn: str, name: str, file: Path, say: Say
) -> None:
    """Dumps the database `name` as the snapshot shows it into `file`. Raises `BackupError`."""
    file.touch(mode=0o600)
    command = (
        program.path,
        *("--format=custom", "--verbose", "--no-password"),
        *(f"--snapshot={snapshot.name}", f"--file={file}", f"--dbname={name}"),
    )
    progress = Tables(say, "PostgreSQL", "dumping contents of table", snapshot.tables)
    run_program(command, dsn=dsn, on_line=progress)


def server_major(dsn: str) -> int:
    """Returns the major version of the PostgreSQL server."""
    with psycopg.connect(dsn) as connection:
        return connection.info.server_version // 10_000


def stage_database(
    program: PostgresProgram,
    *,
    dsn: str,
    database: Database,
    dump: Path,
    tables: int,
    say: Say,
) -> None:
    """Restores a dump into a new database; one of that name is dropped first.

    `tables`: how many the dump has, to report progress. Raises `BackupError`.
    """
    drop_database(dsn, database.name)
    prepare_database(superuser=dsn, database=database)
    command = (
        program.path,
        *("--exit-on-error", "--single-transaction", "--verbose", "--no-password"),
        *(f"--dbname={database.name}", dump),
    )
    progress = Tables(say, "PostgreSQL", "processing data for table", tables)
    run_program(command, dsn=dsn, on_line=progress)


def drop_database(dsn: str, name: str) -> None:
    """Drops a database where it exists, and ends the connections to it."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        connection.execute(statement.format(sql.Identifier(name)))


def count_connections(dsn: str, name: str) -> int:
    """Returns how many connections to a database are open."""
    with psycopg.connect(dsn) as connection:
        return int(
            _query_value(
                connection, "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", name
            )
        )


def known_clusters(dsn: str, name: str) -> set[str]:
    """Returns the ids of all clusters that a database has rows of, deleted ones too."""
    with psycopg.connect(dsn, dbname=name) as connection:
        rows = connection.execute("SELECT id FROM provisioning_cluster").fetchall()
    return {row[0] for row in rows}


def swap_databases(dsn: str, *, staged: str, name: str, before: str) -> bool:
    """Renames the database `name` to `before` and `staged` to `name`, in one transaction.

    Returns whether there was a database `name`. Raises `BackupError` where somebody is connected.
    """
    rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
    try:
        with psycopg.connect(dsn) as connection:
            exists = _query_value(
                connection, "SELECT count(*) FROM pg_database WHERE datname = %s", name
            )
            if exists:
                old, kept = sql.Identifier(name), sql.Identifier(before)
                connection.execute(rename.format(old, kept))
            connection.execute(rename.format(sql.Identifier(staged), sql.Identifier(name)))
    except psycopg.errors.ObjectInUse as error:
        raise BackupError(
            f"Somebody is connected to the database; stop whoever uses it: {str(error).strip()}"
        ) from error
    return bool(exists)


def _query_value(connection: psycopg.Connection, query: str, *parameters: str) -> int | str:
    row = connection.execute(query.encode(), parameters).fetchone()
    assert row is not None  # noqa: S101 (each query of this module gives a row)
    value: int | str = row[0]
    return value
