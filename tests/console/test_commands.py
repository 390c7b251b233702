"""`manage.py migrate`, `await_migrations` and `prepare_database`."""

import dataclasses

import pytest
from django.core.management import (
    CommandError,
    call_command,
    get_commands,
    load_command_class,
)
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder
from psycopg import OperationalError, connect, sql

from console.base.common.conf import config
from tests.postgres import superuser_of

STATEMENTS = [
    "DROP DATABASE IF EXISTS {0}",
    "DROP ROLE IF EXISTS {1}",
    "DROP ROLE IF EXISTS {2}",
]


@pytest.fixture
def fresh(django_db_setup, settings):
    """Settings with roles and a database that do not exist yet on the tests' server."""
    name = "prepared_" + connections["default"].settings_dict["NAME"]
    database = dataclasses.replace(
        config().database,
        host=connections["default"].settings_dict["HOST"],
        name=name,
        owner_user=f"{name}_owner",
        app_user=f"{name}_app",
        app_password="it's a secret",
    )
    settings.FRESHET = dataclasses.replace(config(), database=database)
    superuser = superuser_of(database)
    yield superuser, database
    with connect(superuser, autocommit=True) as connection:
        for statement in (
            "DROP DATABASE IF EXISTS {0}",
            "DROP ROLE IF EXISTS {1}",
            "DROP ROLE IF EXISTS {2}",
        ):
            names = [database.name, database.owner_user, database.app_user]
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def test_roles_and_database_are_made_and_making_them_again_changes_nothing(fresh, capsys):
    superuser, database = fresh
    for _ in range(2):
        call_command("prepare_database", superuser=superuser)
        assert database.name in capsys.readouterr().out
    with connect(host=database.host, dbname=database.name, user=database.owner_user) as owner:
        owner.execute("CREATE TABLE things (id int)")
    with connect(host=database.host, dbname=database.name, user=database.app_user) as app:
        app.execute("INSERT INTO things VALUES (1)")
        assert app.execute("SELECT id FROM things").fetchall() == [(1,)]


def test_without_a_superuser_it_says_how_to_name_one(fresh):
    with pytest.raises(CommandError, match="FRESHET_SUPERUSER_DSN"):
        call_command("prepare_database", superuser=None)


def test_a_server_that_is_away_is_an_error_and_no_traceback(fresh, tmp_path):
    with pytest.raises(CommandError, match="failed"):
        call_command("prepare_database", superuser=f"host={tmp_path} user=x dbname=x")


def test_another_role_may_not_connect(fresh):
    superuser, database = fresh
    call_command("prepare_database", superuser=superuser)
    with pytest.raises(OperationalError, match="permission denied"):
        connect(host=database.host, dbname=database.name, user="freshet_app")


def test_migrate_is_the_owners():
    command = load_command_class("console.base.common", "migrate")
    parser = command.create_parser("manage.py", "migrate")
    assert parser.parse_args([]).database == "owner"
    assert parser.parse_args(["--database", "default"]).database == "default"
    assert get_commands()["migrate"] == "console.base.common"


@pytest.mark.django_db
def test_who_serves_waits_for_what_is_not_migrated(capsys):
    call_command("await_migrations", timeout=0)
    assert capsys.readouterr().out == ""
    MigrationRecorder(connection).record_unapplied("sessions", "0001_initial")
    with pytest.raises(CommandError, match="1 migrations are not applied"):
        call_command("await_migrations", timeout=0)
    assert "Waiting: 1 migrations" in capsys.readouterr().out
