"""Migrating the database, when there is anything to migrate.

Asking Django costs seconds of a start. The database carries, as its comment, the fingerprint of all
migrations that it went through; while it equals that of the code nothing is asked. The comment is
written after the last migration, so whatever interrupts one leads to another attempt.
"""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

import psycopg
from psycopg import sql

PACKAGES = ("console", "provisioning", "metering", "billing")
# Packages with migrations of their own.
FOREIGN = ("django",)
_PREFIX = "freshet migrations "


def fingerprint(root: Path) -> str:
    """Names and contents of all migrations below the checkout, as one hash in hex."""
    digest = hashlib.sha256()
    for package in FOREIGN:
        digest.update(f"{package} {metadata.version(package)}\n".encode())
    for package in PACKAGES:
        for file in sorted((root / package).rglob("migrations/*.py")):
            digest.update(f"{file.relative_to(root)} {file.stat().st_size}\n".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


async def is_migrated(dsn: str, expected: str) -> bool:
    """Tells whether the database went through exactly these migrations."""
    query = (
        "SELECT shobj_description(oid, 'pg_database') FROM pg_database"
        " WHERE datname = current_database()"
    )
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        row = await (await connection.execute(query)).fetchone()
    return row is not None and row[0] == _PREFIX + expected


async def mark_migrated(dsn: str, done: str) -> None:
    """Writes the fingerprint down. The database's owner may."""
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        statement = sql.SQL("COMMENT ON DATABASE {} IS {}").format(
            sql.Identifier(connection.info.dbname), sql.Literal(_PREFIX + done)
        )
        await connection.execute(statement)
