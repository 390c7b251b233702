"""The database that migrations make, kept as a template: whoever comes after copies it.

Its name says what it was made from, so that a changed migration makes another one.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
from psycopg import sql

from console.base.common.roles import prepare_database
from console.settings.sections import Database

ROOT = Path(__file__).parent.parent
PREFIX = "template_freshet_"
UNFINISHED = "unfinished_template_freshet"
# Who makes the template holds it, and who copies waits for that: any number that is always the same.
LOCK = 0x7E3F_1A7E
PACKAGES = ("billing", "brokers", "console", "metering", "provisioning", "spark_usage")
# What decides which apps there are, the roles' privileges, and the versions of all else.
FURTHER = ("console/settings/assemble.py", "console/base/common/roles.py", "uv.lock")


def copy_migrated(
    superuser: str, database: Database, migrate: Callable[[Database], None]
) -> None:
    """Makes `database` as a copy of the migrated one; that one is made where there is none yet.

    `migrate` runs all migrations in the database that it is given, and closes its connections.
    """
    name = PREFIX + digest_of(sources())
    with psycopg.connect(superuser, autocommit=True) as connection:
        # Until the connection is closed.
        connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
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
    # What is granted on a database itself is not copied with it.
    prepare_database(superuser=superuser, database=database)


def _databases(connection: psycopg.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT datname FROM pg_database").fetchall()]


def _drop_templates(connection: psycopg.Connection) -> None:
    """Drops those of other migrations, and one whose making was interrupted."""
    for name in _databases(connection):
        if name.startswith(PREFIX) or name == UNFINISHED:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


def digest_of(files: set[Path]) -> str:
    """16 hexadecimal digits of names and contents."""
    digest = hashlib.sha256()
    for path in sorted(files):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def sources() -> set[Path]:
    """Every file that has a say in what migrations make: they, and all that they import of ours."""
    new = {path for package in PACKAGES for path in ROOT.glob(f"{package}/**/migrations/*.py")}
    found = {ROOT / name for name in FURTHER}
    while new:
        path = new.pop()
        found.add(path)
        new |= set(_imported(path)) - found
    return found


def _imported(path: Path) -> Iterator[Path]:
    """The files of this project that a file imports."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # What is imported from a package may be a module of it.
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        for name in names:
            package, *_ = name.split(".")
            if package in PACKAGES:
                place = ROOT.joinpath(*name.split("."))
                yield from filter(Path.is_file, (place.with_suffix(".py"), place / "__init__.py"))
