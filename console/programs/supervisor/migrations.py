"""Finds out without Django whether the database must be migrated.

Asking Django takes seconds of each start. So the database has a comment with the fingerprint of all
migrations that were applied; while it equals the fingerprint of the code, nothing is to be done.
The comment is written after the last migration, so an interrupted migration is tried again.
"""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

import psycopg
from psycopg import sql

PACKAGES = ("console", "provisioning", "metering", "billing")
# Other packages that have migrations; their version is a part of the fingerprint.
FOREIGN = ("django",)
_PREFIX = "freshet migrations "


def migrations_fingerprint(root: Path) -> str:
    """Returns a SHA-256 in hex over the names and contents of all migrations below `root`."""
    digest = hashlib.sha256()
    for package in FOREIGN:
        digest.update(f"{package} {metadata.version(package)}\n".encode())
    for package in PACKAGES:
        for file in sorted((root / package).rglob("migrations/*.py")):
            digest.update(f"{file.relative_to(root)} {file.stat().st_size}\n".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


async def is_migrated(dsn: str, expected: str) -> bool:
    """Returns whether exactly the migrations with the fingerprint `expected` were applied."""
    query = (
        "SELECT shobj_description(oid, 'pg_database') FROM pg_database"
        " WHERE datname = current_database()"
    )
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        row = await (await connection.execute(query)).fetchone()
    return row is not None and row[0] == _PREFIX + expected


async def mark_migrated(dsn: str, fingerprint: str) -> None:
    """Writes the fingerprint into the database's comment. `dsn` names the database's owner."""
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        statement = sql.SQL("COMMENT ON DATABASE {} IS {}").format(
            sql.Identifier(connection.info.dbname), sql.Literal(_PREFIX + fingerprint)
        )
        await connection.execute(statement)
