"""The migrated database is made once, anew when migrations change or when making it was cut off."""

import dataclasses

import psycopg
import pytest
from django.db import connections

from console.base.common.conf import config
from tests import template
from tests.imports import ROOT
from tests.postgres import hold_server_lock, superuser_of

pytestmark = pytest.mark.django_db


def test_what_migrations_import_counts():
    names = {str(path.relative_to(ROOT)) for path in template.sources()}
    assert {
        "billing/migrations/0001_initial.py",
        "console/base/accounts/migrations/0001_initial.py",
        "console/base/common/tenancy.py",
        "console/base/common/roles.py",
        "pyproject.toml",
    } <= names
    assert "console/base/accounts/services.py" not in names


@pytest.fixture
def server(monkeypatch):
    """A connection string of the tests' server, where these tests have a template of their own."""
    settings = connections["default"].settings_dict
    database = dataclasses.replace(config().database, host=settings["HOST"], name=settings["NAME"])
    own = settings["NAME"].removeprefix("test_freshet_")
    monkeypatch.setattr(template, "PREFIX", f"own_{own}_")
    monkeypatch.setattr(template, "UNFINISHED", f"own_unfinished_{own}")
    names = [f"test_freshet_copy{number}_{own}" for number in range(3)]
    yield [dataclasses.replace(database, name=name) for name in names]
    with psycopg.connect(superuser_of(database), autocommit=True) as connection:
        for name, *_ in connection.execute("SELECT datname FROM pg_database").fetchall():
            if name in names or name.startswith((template.PREFIX, template.UNFINISHED)):
                connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def run(database, statement):
    """What the serving role gets for a statement."""
    with psycopg.connect(
        host=database.host, dbname=database.name, user=database.app_user
    ) as connection:
        return connection.execute(statement).fetchall()


def copy(database, migrate):
    with hold_server_lock():
        template.copy_migrated(superuser_of(database), database, migrate)


def test_copies_are_made_of_one_that_was_migrated_once(server):
    migrated = []

    def migrate(database):
        migrated.append(database.name)
        with psycopg.connect(
            host=database.host, dbname=database.name, user=database.owner_user
        ) as connection:
            connection.execute("CREATE TABLE made (number integer)")
            connection.execute("INSERT INTO made VALUES (7)")

    def cut_off(database):
        migrate(database)
        raise KeyboardInterrupt

    first, second, third = server
    with pytest.raises(KeyboardInterrupt):
        copy(first, cut_off)
    for database in (first, second):
        copy(database, migrate)
        assert run(database, "SELECT number FROM made") == [(7,)]
    assert migrated == [template.UNFINISHED] * 2
    # A copy is its own.
    run(first, "DELETE FROM made RETURNING number")
    assert run(second, "SELECT number FROM made") == [(7,)]
    # With other migrations there is another one, and the one before is gone.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(template, "digest_of", lambda root, files: "0" * 64)
        copy(third, migrate)
    assert migrated == [template.UNFINISHED] * 3
    with psycopg.connect(superuser_of(first)) as connection:
        names = [name for (name,) in connection.execute("SELECT datname FROM pg_database")]
    templates = [name for name in names if name.startswith(template.PREFIX)]
    assert templates == [template.PREFIX + "0" * 16]
