"""What all tests share: signals, Hypothesis, and Django's database.

The database is an embedded PostgreSQL with the roles of production. Migrations run as the owner,
everything else as the application's role, so that row-level security holds in the tests as it does
in production. A test that asks for no database starts none.
"""

import logging
import os
import signal
import sys
from pathlib import PurePosixPath

import hypothesis
import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.test import TransactionTestCase
from psycopg import sql

from tests import built, left_over, parts
from tests.etcd import running_etcd
from tests.postgres import running_database
from tests.s3 import running_s3
from tests.service.running import running_service

# Tables whose rows migrations or Django itself made.
KEPT_TABLES = {
    "django_migrations",
    "django_content_type",
    "auth_permission",
    "billing_priceversion",
    "billing_price",
}

ALIASES = ("default", "owner")

# How long an example takes says how busy the machine is, nothing of the code.
hypothesis.settings.register_profile(
    "freshet", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("freshet")

# A shell that starts this in its background has it ignore SIGINT, and with it every child, of which
# some are to be interrupted.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    """Adds `--part`, by which a part of `make test-all` runs its own `full` tests alone."""
    parser.addoption("--part", help="of the `full` tests, those of this part of `make test-all`")


def pytest_collection_modifyitems(config, items):
    """Leaves out the `full` tests of other parts; refuses a part that does not exist."""
    known, chosen_part = parts.parts(), config.getoption("part")
    others = []
    for item in items:
        mark = item.get_closest_marker("full")
        if mark is not None:
            path = PurePosixPath(item.path.relative_to(parts.ROOT))
            try:
                part = parts.part_of(path, mark.args, known)
            except parts.UnknownPartError as error:
                message = f"{item.nodeid}: {error}"
                raise pytest.UsageError(message) from error
            if chosen_part not in (None, part):
                others.append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Says which test runs, so that an everyday one that asks for a built server fails."""
    left_over.remember()
    built.begin_test(item.nodeid, full=item.get_closest_marker("full") is not None)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    """Fails a test after which the service's settings are not as before, and puts them back.

    A test changes them by the fixture `settings` alone. Two ways of doing it undo each other in the
    order of the fixtures, and the next test may find the settings of the one before.
    """
    try:
        return (yield)
    finally:
        left_over.check(item.nodeid)


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker):
    """Replaces pytest-django's: its test database belongs to the role that serves."""
    with (
        django_db_blocker.unblock(),
        running_database(f"test_freshet_{os.getpid()}", migrate) as database,
    ):
        connect_to(database)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TransactionTestCase, "_fixture_teardown", empty_filled_tables)
            yield
        close_connections()


def migrate(database):
    """Runs all migrations in a database."""
    connect_to(database)
    call_command("migrate", database="owner", verbosity=0, interactive=False)
    close_connections()


def connect_to(database):
    """Makes Django use this database from now on."""
    close_connections()
    for alias in ALIASES:
        connections[alias].settings_dict.update(HOST=database.host, NAME=database.name)


def close_connections():
    """Closes Django's connections, with which a database can be neither copied nor dropped."""
    for alias in ALIASES:
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


@pytest.fixture(scope="session")
def service():
    """The whole service, up; each test signs up an organization of its own."""
    with running_service() as run:
        yield run


@pytest.fixture(scope="session")
def spark():
    """The one session of Spark in this process, with two cores and as many shuffle partitions."""
    # PySpark takes a second to import, so only tests that use it pay for that.
    from spark_usage.session import open_session  # noqa: PLC0415
    from tests.spark.runs import JAVA_OPTIONS  # noqa: PLC0415

    # It logs its connections' end from finalisers, also when nobody can be logged to any more.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    session = open_session(
        "tests", master="local[2]", driver_memory="1g", java_options=JAVA_OPTIONS
    )
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def uncounted_requests():
    """Requests of one test do not count against the next: all come from one address."""
    rates = sys.modules.get("console.base.common.rates")
    if rates is not None:
        rates.forget_rates()
    concurrency = sys.modules.get("console.base.common.concurrency")
    if concurrency is not None:
        concurrency.forget_places()
    turns = sys.modules.get("console.base.common.turns")
    if turns is not None:
        turns.request_turns.forget_used()


@pytest.fixture(autouse=True)
def strict_transactions(monkeypatch):
    """Whatever waits within a transaction fails, where in production it is only logged.

    Mails are kept in memory, and are something to wait for too.
    """
    transactions = sys.modules.get("console.base.common.transactions")
    if transactions is not None:
        monkeypatch.setattr(transactions, "strict", True)
        monkeypatch.setattr(settings, "EMAIL_BACKEND", "tests.console.mailbox.WaitedForBackend")


def empty_filled_tables(case):
    """Empties the tables after a test that commits: the serving role may not truncate.

    It empties only tables that have rows, because each one takes the server some milliseconds. It
    uses a connection of the superuser's: Django's `owner` may be used only by tests that ask for
    it, and does not see every row.
    """
    tables = sorted(set(connections["default"].introspection.table_names()) - KEPT_TABLES)
    question = sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})").format(name, sql.Identifier(name))
        for name in tables
    )
    settings = connections["default"].settings_dict
    with psycopg.connect(
        host=settings["HOST"], dbname=settings["NAME"], user="postgres"
    ) as connection:
        filled = [name for (name,) in connection.execute(question).fetchall()]
        if filled:
            # Triggers refuse to empty tables of money, but in such a session.
            connection.execute("SET session_replication_role = replica")
            names = sql.SQL(", ").join(map(sql.Identifier, filled))
            connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(names))
