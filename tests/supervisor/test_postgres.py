"""Tests of the embedded PostgreSQL's data folder and server."""

import asyncio
import contextlib
import os
import resource
import signal
import stat
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from console.base.common.roles import prepare_database
from console.programs.supervisor import migrations, postgres
from console.programs.supervisor.errors import StartError
from console.programs.supervisor.processes import working_in
from console.settings.sections import Database

from .run import wait_until


@pytest.fixture
def account():
    return postgres.account_for_root()


@pytest.fixture
def data(folder):
    return folder / "home" / "postgres"


@pytest.fixture
def prepare(data, account):
    data.parent.mkdir(mode=0o700)
    return lambda: asyncio.run(postgres.prepare_data(data.parent, data, account, lambda _: None))


@pytest.fixture(scope="module")
def made_data():
    """A data folder that tests copy, which is quicker than making one."""
    account = postgres.account_for_root()
    with tempfile.TemporaryDirectory(prefix="freshet-test-", ignore_cleanup_errors=True) as name:
        data = Path(name) / "home" / "postgres"
        data.parent.mkdir(mode=0o700)
        asyncio.run(postgres.prepare_data(data.parent, data, account, lambda _: None))
        yield data


@pytest.fixture
def prepared(prepare, made_data, data):
    """An existing data folder that is prepared for another start."""
    # Owners are kept: under root PostgreSQL runs as an account of its own.
    subprocess.run(["cp", "--archive", made_data, data], check=True)
    prepare()


@pytest.fixture
def start_server(data, account):
    """Returns a function that starts the server and waits until it accepts connections."""
    started = []

    def start():
        with (data.parent / "log").open("w") as log:
            server = subprocess.Popen(
                postgres.server_command(data),
                cwd=data,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
                stderr=log,
            )
        started.append(server)
        wait_until(lambda: can_connect(data) or server.poll() is not None, "PostgreSQL is up")
        assert server.poll() is None, (data.parent / "log").read_text()
        return server

    yield start
    for server in started:
        if server.poll() is None:
            server.send_signal(signal.SIGINT)
        server.wait(60)


def can_connect(data, user=postgres.SUPERUSER, database=postgres.SUPERUSER):
    with contextlib.suppress(psycopg.OperationalError):
        psycopg.connect(postgres.connection_string(data, user, database)).close()
        return True
    return False


@pytest.mark.usefixtures("prepared")
def test_the_database_remembers_its_migrations(start_server, data):
    start_server()
    superuser = postgres.connection_string(data, postgres.SUPERUSER, postgres.SUPERUSER)
    prepare_database(superuser=superuser, database=Database(host=str(data)))
    owner = postgres.connection_string(data, "freshet_owner", "freshet")
    assert not asyncio.run(migrations.is_migrated(owner, "abc"))
    asyncio.run(migrations.mark_migrated(owner, "abc"))
    assert asyncio.run(migrations.is_migrated(owner, "abc"))
    assert not asyncio.run(migrations.is_migrated(owner, "abd"))


def test_a_half_made_folder_is_made_anew(prepare, start_server, data):
    half = data.with_name("postgres.new")
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    prepare()
    assert not half.exists()
    assert start_server().poll() is None


@pytest.mark.usefixtures("prepared")
def test_what_a_killed_server_left_is_cleared_though_its_number_is_used_again(
    prepare, start_server, data, account
):
    server = start_server()
    server.kill()
    server.wait()
    stale = data / "postmaster.pid"
    assert stale.exists()
    # Another process of the same account has the number now: PostgreSQL alone would refuse to
    # start.
    with subprocess.Popen(
        ["sleep", "600"],
        user=account.uid if account else None,
        group=account.gid if account else None,
    ) as other:
        stale.write_text(stale.read_text().replace(str(server.pid), str(other.pid), 1))
        prepare()
        assert not stale.exists()
        assert start_server().poll() is None
        other.kill()


@pytest.mark.usefixtures("prepared")
def test_a_server_that_runs_on_the_folder_is_left_alone(prepare, start_server, data, monkeypatch):
    server = start_server()
    monkeypatch.setattr(postgres, "ORPHANS_TIMEOUT_S", 0.1)
    with pytest.raises(StartError, match=f"uses {data}: stop it first"):
        prepare()
    assert server.pid in working_in(data, "postgres")
    assert can_connect(data)


def test_a_disk_without_room_is_one_sentence(prepare, data):
    """A limit of 64 KiB on the size of files stands in for a full disk: `initdb` fails at it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
    try:
        with pytest.raises(StartError) as caught:
            prepare()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert not data.exists()
    assert caught.value.lines
    prepare()
    assert data.exists()


def test_a_home_that_is_too_long_is_named(tmp_path):
    with pytest.raises(StartError, match="too long for PostgreSQL's socket"):
        postgres.check_length(tmp_path / ("x" * 100) / "postgres")


def test_others_may_pass_through_the_folders_above_and_look_into_none(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a").chmod(0o700)
    inner.chmod(0o700)
    assert tmp_path / "a" in postgres.open_way(inner)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o701
    assert stat.S_IMODE(inner.stat().st_mode) == 0o700
    assert os.access(inner, os.X_OK)
