"""What all tests stand on: signals, Hypothesis, and Django's database.

The database is an embedded PostgreSQL with the roles of production. Migrations run as the owner,
everything else as the application's role, so that row-level security holds in the tests as it does
in production. A test that asks for no database starts none.
"""

import os
import signal
import sys

import hypothesis
import psycopg
import pytest
from django.core.management import call_command
from django.db import connections
from django.test import TransactionTestCase
from psycopg import sql

from tests.etcd import running_etcd
from tests.postgres import running_database
from tests.s3 import running_s3

# Rows that migrations or Django itself made.
KEPT_TABLES = {
    "django_migrations",
    "django_content_type",
    "auth_permission",
    "billing_priceversion",
    "billing_price",
}

# How long an example takes says how busy the machine is, nothing of the code.
hypothesis.settings.register_profile(
    "freshet", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("freshet")

# A shell that starts this in its background has it ignore SIGINT, and with it every child, of which
# some are to be interrupted.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker):
    """Replaces pytest-django's: its test database belongs to the role that serves."""
    with running_database(f"test_freshet_{os.getpid()}") as database, django_db_blocker.unblock():
        for alias in ("default", "owner"):
            connections[alias].close()
            connections[alias].settings_dict.update(HOST=database.host, NAME=database.name)
        call_command("migrate", database="owner", verbosity=0, interactive=False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TransactionTestCase, "_fixture_teardown", truncate_as_owner)
            yield
        for alias in ("default", "owner"):
            connections[alias].close()


@pytest.fixture(scope="session")
def etcd_server(tmp_path_factory):
    """A real etcd without users; each test takes a root of its own."""
    with running_etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture(scope="session")
def guarded_etcd(tmp_path_factory):
    """A real etcd that asks who somebody is; each test takes a root of its own."""
    with running_etcd(tmp_path_factory.mktemp("guarded-etcd")) as server:
        server.guard()
        yield server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory):
    """A real S3-compatible server; each test makes its own bucket."""
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(autouse=True)
def uncounted_requests():
    """Requests of one test do not count against the next: all come from one address."""
    rates = sys.modules.get("console.common.rates")
    if rates is not None:
        rates.forget()


def truncate_as_owner(case):
    """Empties the tables after a test that commits: the serving role may not truncate.

    Over a connection of its own: a test may use Django's `owner` only if it says so.
    """
    del case
    tables = sorted(set(connections["default"].introspection.table_names()) - KEPT_TABLES)
    names = sql.SQL(", ").join(map(sql.Identifier, tables))
    settings = connections["owner"].settings_dict
    with psycopg.connect(
        host=settings["HOST"], dbname=settings["NAME"], user=settings["USER"]
    ) as connection:
        connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(names))
