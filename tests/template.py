"""The database that migrations make, kept as a template: whoever comes after copies it.

Its name says what it was made from, so that a changed migration makes another one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
from psycopg import sql

from console.base.common.roles import prepare_database
from console.settings.sections import Database
from tests.digests import digest_of
from tests.imports import PACKAGES, ROOT, with_imported

PREFIX = "template_freshet_"
# PostgreSQL cuts names at 63 bytes.
DIGITS = 16
UNFINISHED = "unfinished_template_freshet"
# What decides which apps there are, the roles' privileges, and the versions of all else.
FURTHER = ("console/settings/assemble.py", "console/base/common/roles.py", "pyproject.toml")


def copy_migrated(superuser: str, database: Database, migrate: Callable[[Database], None]) -> None:
    """Makes `database` as a copy of the migrated one; that one is made where there is none yet.

    `migrate` runs all migrations in the database that it is given, and closes its connections. Only
    one process at a time may call this (`tests.postgres.hold_server_lock`).
    """
    name = PREFIX + digest_of(ROOT, sources())[:DIGITS]
    with psycopg.connect(superuser, autocommit=True) as connection:
        if name not in _databases(connection):
            _drop_templates(connection)
            unfinished = Database(host=database.host, port=database.port, name=UNFINISHED)
            prepare_database(superuser=superuser, database=unfinished)
            migrate(unfinished)
            rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            connection.execute(rename.format(sql.Identifier(UNFINISHED), sql.Identifier(name)))
        copy = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}")
        names = (database.name, database.owner_user, name)
        connection.execute(copy.format(*map(sql.Identifier, names)))
    # Rights that were granted on the database itself are not copied with it.
    prepare_database(superuser=superuser, database=database)


def _databases(connection: psycopg.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT datname FROM pg_database").fetchall()]


def _drop_templates(connection: psycopg.Connection) -> None:
    """Drops templates of other migrations, and one that an interrupted session left half made."""
    for name in _databases(connection):
        if name.startswith(PREFIX) or name == UNFINISHED:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


def sources() -> set[Path]:
    """Every file on which the migrated database depends: migrations, and what they import."""
    return with_imported(_migrations()) | {ROOT / name for name in FURTHER}


def _migrations() -> set[Path]:
    return {path for package in PACKAGES for path in ROOT.glob(f"{package}/**/migrations/*.py")}
