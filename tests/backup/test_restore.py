"""Backup and restore of a home whose service does not run, with the embedded PostgreSQL."""

import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from brokers.secrets import create_cell_secret
from console.base.common.roles import prepare_database
from console.programs.backup import database, server
from console.programs.backup.errors import BackupError
from console.programs.backup.making import make_backup
from console.programs.backup.restoring import restore_backup
from console.programs.backup.standstill import StillRuns
from console.programs.supervisor.errors import StartError
from console.programs.supervisor.home import make_home
from console.programs.supervisor.lock import HomeLock
from console.programs.supervisor.marker import mark_restoring, refuse_half_restored
from console.settings.config import build_config
from console.settings.home import read_or_make_secret

from .topics import create_topics

pytestmark = pytest.mark.timeout(600)
# The part of the schema that the commands read.
TABLES = """
CREATE TABLE django_migrations (id serial, app text, name text);
CREATE TABLE billing_numberblock (series_id text, key text, first bigint);
CREATE TABLE provisioning_cluster (id text);
CREATE TABLE provisioning_credential (id text);
INSERT INTO django_migrations (app, name) VALUES ('common', '0001_initial');
"""
BLOCK = "v1/series=FR-2026/000000000001-0000.json"


class Home:
    """A home with a database and a metadata store.

    `write` adds a row to one, a topic to the other.
    """

    def __init__(self, folder):
        self.config = build_config(folder / "home", {}, {})
        self.backup = folder / "backup"
        self.metadata = self.config.home / "cell" / "metadata.sqlite"
        self.said: list[str] = []

    def make(self):
        make_home(self.config)
        read_or_make_secret(self.config.secret_key_file)
        self.config.cell.secret.parent.mkdir(parents=True)
        create_cell_secret(self.config.cell.secret)
        with server.embedded_server(self.config, self.said.append) as dsn:
            prepare_database(superuser=dsn, database=self.config.database)
            self.execute(dsn, TABLES)

    def execute(self, dsn, statements, *parameters):
        with psycopg.connect(dsn, dbname=self.config.database.name) as connection:
            connection.execute(statements, parameters or None)

    def write(self, name):
        create_topics(self.metadata, name)
        with server.embedded_server(self.config, self.said.append) as dsn:
            self.execute(dsn, "INSERT INTO provisioning_cluster VALUES (%s)", name)

    def contents(self):
        with server.embedded_server(self.config, self.said.append) as dsn:
            clusters = database.known_clusters(dsn, self.config.database.name)
        return create_topics(self.metadata), clusters

    def back_up(self, **options):
        options = {"superuser": None, "with_secrets": True} | options
        return make_backup(self.config, self.backup, self.said.append, **options)

    def restore(self, **options):
        options = {"superuser": None, "other_secrets": False, "lost_documents": False} | options
        return restore_backup(self.config, self.backup, self.said.append, **options)


@pytest.fixture(scope="module")
def made_home():
    """A home that tests copy, which is quicker than making one."""
    # Not below pytest's own folder: see tests/supervisor/conftest.py.
    with tempfile.TemporaryDirectory(prefix="freshet-test-", ignore_cleanup_errors=True) as name:
        home = Home(Path(name))
        home.make()
        yield home.config.home


@pytest.fixture
def home(made_home):
    with tempfile.TemporaryDirectory(prefix="freshet-test-", ignore_cleanup_errors=True) as name:
        home = Home(Path(name))
        # Owners are kept: under root PostgreSQL runs as an account of its own.
        subprocess.run(["cp", "--archive", made_home, home.config.home], check=True)
        yield home


def run_backup(home, *words):
    environment = {"FRESHET_HOME": str(home.config.home), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [sys.executable, "-m", "console.programs.backup", *words],
        env=environment,
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_home_goes_back_and_keeps_what_it_had(home):
    home.write("old")
    home.back_up()
    home.write("young")
    (home.config.cell.dfs / "cl_younger").mkdir(parents=True)
    done = run_backup(home, "restore", "--from", str(home.backup))
    assert done.returncode == 0, done.stderr
    assert "cl_younger" in done.stdout
    kept = [path.name for path in home.metadata.parent.iterdir() if ".before-" in path.name]
    assert kept
    assert home.contents() == ({"old"}, {"old"})
    with server.embedded_server(home.config, home.said.append) as dsn, psycopg.connect(dsn) as one:
        names = [row[0] for row in one.execute("SELECT datname FROM pg_database")]
    assert any(name.startswith("freshet_before_") for name in names)
    assert "freshet_restored" not in names


def test_a_restore_that_is_refused_changes_nothing(home):
    home.write("old")
    with server.embedded_server(home.config, home.said.append) as dsn:
        home.execute(dsn, "INSERT INTO billing_numberblock VALUES ('FR-2026', %s, 1)", BLOCK)
    home.back_up(with_secrets=False)
    before = home.contents()
    with HomeLock(home.config.home / "up.lock", "http://localhost"), pytest.raises(StillRuns):
        home.restore(lost_documents=True)
    with pytest.raises(BackupError, match="invoice numbers were used"):
        home.restore()
    home.config.secret_key_file.write_text("another")
    with pytest.raises(BackupError, match="secret_key of this service is not that"):
        home.restore(lost_documents=True)
    (home.backup / "postgresql.dump").write_bytes(b"no dump")
    with pytest.raises(BackupError, match="is damaged"):
        home.restore(lost_documents=True, other_secrets=True)
    assert home.contents() == before
    refuse_half_restored(home.config.home)


def test_an_interrupted_backup_or_restore_leaves_nothing(home, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    home.write("old")
    with monkeypatch.context() as patch:
        patch.setattr(database, "dump_database", interrupt)
        with pytest.raises(KeyboardInterrupt):
            home.back_up()
    assert not home.backup.exists()
    assert not home.backup.with_name("backup.partial").exists()
    home.back_up()
    before = home.contents()
    with monkeypatch.context() as patch:
        patch.setattr(database, "run_program", interrupt)
        with pytest.raises(KeyboardInterrupt):
            home.restore()
    assert not home.metadata.with_name("metadata.sqlite.restored").exists()
    assert home.contents() == before


def test_a_restore_that_died_among_its_last_steps_is_run_again(home):
    home.write("old")
    home.back_up()
    mark_restoring(home.config.home, home.backup)
    with pytest.raises(StartError, match="A restore was interrupted"):
        home.back_up()
    done = run_backup(home, "restore", "--from", str(home.backup))
    assert done.returncode == 0, done.stderr
    refuse_half_restored(home.config.home)
