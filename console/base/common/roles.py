"""Makes the database and its two roles, once, as a superuser. Safe to repeat; needs no Django.

The owner role owns and migrates the tables. The application's role serves requests: it may read and
write rows, is subject to row-level security, and can neither switch that off nor change a table.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

from console.settings.sections import Database


def prepare_database(*, superuser: str, database: Database) -> None:
    """Makes the roles, the database and its default privileges, where they are missing.

    `superuser` is a connection string of a role that may make roles and databases; its `dbname` is
    any database that exists. Raises `psycopg.Error`.
    """
    with psycopg.connect(superuser, autocommit=True) as connection:
        _make_role(connection, database.owner_user, database.owner_password)
        _make_role(connection, database.app_user, database.app_password)
        _make_database(connection, database)
    with psycopg.connect(superuser, dbname=database.name, autocommit=True) as connection:
        for statement in _privileges(database):
            connection.execute(statement)


def _make_role(connection: psycopg.Connection, role: str, password: str) -> None:
    row = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone()
    verb = sql.SQL("ALTER" if row else "CREATE")
    secret = sql.SQL("PASSWORD {}").format(sql.Literal(password)) if password else sql.SQL("")
    connection.execute(
        sql.SQL(
            "{} ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOINHERIT {}"
        ).format(verb, sql.Identifier(role), secret)
    )


def _make_database(connection: psycopg.Connection, database: Database) -> None:
    row = connection.execute(
        "SELECT 1 FROM pg_database WHERE datname = %s", [database.name]
    ).fetchone()
    if not row:
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE template0 ENCODING 'UTF8'").format(
                sql.Identifier(database.name), sql.Identifier(database.owner_user)
            )
        )


def _privileges(database: Database) -> list[sql.Composed]:
    owner, app = sql.Identifier(database.owner_user), sql.Identifier(database.app_user)
    name = sql.Identifier(database.name)
    defaults = sql.SQL("ALTER DEFAULT PRIVILEGES FOR ROLE {} IN SCHEMA public ").format(owner)
    return [
        sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name),
        sql.SQL("GRANT CONNECT ON DATABASE {} TO {}, {}").format(name, owner, app),
        sql.SQL("ALTER SCHEMA public OWNER TO {}").format(owner),
        sql.SQL("REVOKE ALL ON SCHEMA public FROM PUBLIC").format(),
        sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(app),
        defaults + sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {}").format(app),
        defaults + sql.SQL("GRANT USAGE, SELECT ON SEQUENCES TO {}").format(app),
    ]
